"""The report: readable in 80 columns, plain in a pipe, and correct for empty and for very large runs."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from bayplan.analysis.report import print_report, render_report, report_console
from bayplan.analysis.run_facts import InputFacts, PodCounts, RunFacts, WarningFacts, run_facts
from bayplan.engine.records import RecordLevel
from bayplan.formats.manifest import LoadWarning, WarningKind
from bayplan.sim.result import InputSummary, SimulationResult, WallClock
from tests.analysis.runs import busy_run, node, pod, run


def text_of(result: SimulationResult, width: int = 80) -> str:
    out = io.StringIO()
    print_report(result, Console(file=out, width=width, highlight=False))
    return out.getvalue()


@pytest.fixture(scope="module")
def busy() -> SimulationResult:
    return busy_run()


def test_the_report_contains_all_sections(busy: SimulationResult) -> None:
    text = text_of(busy)
    assert f"seed 1, digest {busy.digest}" in text
    for heading in (
        "Pending:",
        "Utilisation: requested and allocatable",
        "Fragmentation: idle amounts",
    ):
        assert heading in text
    assert "9 in 3 zones; 1 removed" in text
    assert "waiting for scheduling gates: [example.com/wait]" in text
    assert "(unattended)" in text
    assert "records" in text


def test_lines_have_at_most_80_columns_and_no_trailing_spaces(busy: SimulationResult) -> None:
    lines = text_of(busy).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\x1b" not in "".join(lines)


def test_colours_are_used_only_on_terminals(busy: SimulationResult) -> None:
    out = io.StringIO()
    print_report(busy, Console(file=out, width=80, force_terminal=True, color_system="standard"))
    assert "\x1b[1mbayplan" in out.getvalue()


def test_wall_clock_time_is_printed_but_not_part_of_the_facts(busy: SimulationResult) -> None:
    busy.wall = WallClock(load_seconds=0.25, simulate_seconds=0.5)
    try:
        assert f"{len(busy.records) * 2:,} a second (0.50 s, and 0.25 s for loading)" in " ".join(
            text_of(busy, 200).split()
        )
        without = Console(file=io.StringIO(), width=200)
        without.print(*render_report(run_facts(busy)))
        assert "a second" not in str(without.file)
    finally:
        busy.wall = WallClock()


def test_output_to_a_pipe_has_80_columns() -> None:
    assert report_console().width == 80


@pytest.mark.parametrize("level", list(RecordLevel), ids=[str(level) for level in RecordLevel])
def test_empty_clusters_have_a_report(level: RecordLevel) -> None:
    assert "no pod got a node in this run" in text_of(run(level=level))
    assert "no nodes available to schedule pods" in text_of(run(pod("p").obj(), level=level))
    lonely = text_of(run(node("n").obj(), level=level))
    assert re.search(r"cpu +0 +4 +0 %", lonely)
    assert "Pending: " not in lonely


def test_ignored_input_is_counted_and_the_first_warnings_are_listed() -> None:
    result = run(node("n").obj())
    warnings = [
        LoadWarning(
            kind=WarningKind.UNKNOWN_FIELD,
            where=f"some/where/a.yaml:{number}",
            what=f"Pod default/p{number} $.spec.replica",
            problem="no field of a PodSpec, some/where/a.yaml:1 neither",
            hint="'replicas'",
        )
        for number in range(30)
    ]
    result.input = InputSummary(
        files=["some/where/a.yaml"], objects={"Node": 1}, unused={"v1 ConfigMap": 2}, warnings=warnings
    )
    result.failures["Deployment default/web"] = "wrong annotation"
    text = text_of(result)
    assert "  kinds that kube-scheduler does not read: 2 v1 ConfigMap\n  30 unknown fields\n" in text
    line = "Pod $.spec.replica: no field of a PodSpec, a.yaml:1 neither; try 'replicas' (30 times: "
    assert f"{line}a.yaml:0, a.yaml:1, a.yaml:2 and 27 more)" in " ".join(text.split())
    assert "some/where" not in text
    assert "Deployment default/web: wrong annotation" in text
    facts = run_facts(result).input
    assert (facts.warnings, len(facts.first_warnings)) == ({"unknown field": 30}, 30)
    assert facts.first_warnings[0] == WarningFacts(
        kind="unknown field",
        where="a.yaml:0",
        what="Pod default/p0 $.spec.replica",
        problem="no field of a PodSpec, a.yaml:1 neither",
        hint="'replicas'",
    )


def test_text_is_never_interpreted_as_markup() -> None:
    facts = RunFacts(
        pods=PodCounts(total=1),
        stopped="[bold]it was[/bold] told to",
        input=InputFacts(unused={"example.com/v1 [red]Thing[/red]": 1}),
    )
    console = Console(file=io.StringIO(), width=80)
    console.print(*render_report(facts))
    out = console.file
    assert isinstance(out, io.StringIO)
    assert "[bold]it was[/bold] told to" in out.getvalue()
    assert "[red]Thing[/red]" in out.getvalue()


def test_long_lists_are_truncated_with_a_count() -> None:
    pods = [pod(f"p{number}", cpu=f"{number + 20}").obj() for number in range(12)]
    pods += [pod(f"q{number}").node_selector({f"label-{number}": "x"}).obj() for number in range(3)]
    nodes = [node(f"n{number}", zone=f"zone-{number:02}").obj() for number in range(12)]
    text = text_of(run(*nodes, *pods))
    assert "default/p0, default/p1, default/p2 and 9 more" in text
    assert "... 4 more zones" in text
    assert "... and 5 more sizes of pending pods" in text
