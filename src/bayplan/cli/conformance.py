"""The command ``conformance``: compare Bayplan with recorded decisions of a real scheduler, as tables or JSON."""

import gzip
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from bayplan.base.errors import InputError
from bayplan.base.output_paths import check_output_file
from bayplan.conformance.answers import answer
from bayplan.conformance.cases import CaseFile, Json, RecordedCase, read_case_files
from bayplan.conformance.comparer import FOLLOWED, compare
from bayplan.conformance.summary import CaseDifference, PartSummary, Summary

PIPE_WIDTH = 120
"""Columns of the report if standard output is not a terminal."""

CYCLE_COLUMNS = ("filterAll", "filter", "scores", "best", "message", "preemption", "chosen", FOLLOWED)
"""The parts of cycle cases that have a column in the table of families; the table of parts shows all parts."""

LONG_RUN = 100
"""Minimum number of cases for a progress bar."""


def conformance(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Recorded cases (JSON lines, also gzipped), or folders of them."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write Bayplan's results to FILE, in the format of the recordings. [default: none]"
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=0, metavar="N", help="Differing cases to print.")] = 10,
    only: Annotated[str, typer.Option(metavar="PREFIX", help="Prefix of the ids of cases to run. [default: all]")] = "",
) -> None:
    """Compare Bayplan's answers with recordings of kube-scheduler.

    The report counts the cases that agree, by family (a kind of case) and by part of the answer, then shows the first
    differences. A case that can't be run counts as a difference. A scheduling cycle is compared only if the cycles before it
    agreed on the state of the cluster; the column "followed" counts the compared cycles.

    Exit code: 0 if all cases agree, 1 on any difference, 2 on bad input.

    Example: bayplan conformance conformance/cycles
    """
    case_files = read_case_files(files)
    summary = Summary()
    if answers is not None:
        _check_answer_file(answers, case_files)
    with _answer_file(answers) as write:
        for case in _with_progress(case_files, only):
            ours = answer(case)
            if write is not None:
                write(msgspec.json.encode(ours.body) + b"\n")
            summary.add(case, compare(case, ours))
        if not summary.cases:
            raise InputError(
                "cases",
                got="none",
                wanted=f"at least one whose id begins with '{only}'" if only else "at least one case",
            )
    if as_json:
        sys.stdout.write(msgspec.json.encode(summary.as_json()).decode() + "\n")
    else:
        _print_report(summary, show)
    if summary.agreed != summary.cases:
        raise typer.Exit(1)


def _check_answer_file(path: Path, case_files: list[CaseFile]) -> None:
    check_output_file(path, "--answers")
    if path.resolve() in {Path(each.path).resolve() for each in case_files}:
        raise InputError("--answers", got=f"'{path}', a file of recorded cases", wanted="another file")


@contextmanager
def _answer_file(path: Path | None) -> Iterator[Callable[[bytes], object] | None]:
    """Yield a function that writes to a temporary file, which is renamed on success; yield None without a path."""
    if path is None:
        yield None
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=plain, mode="wb", mtime=0) as packed:
                    yield packed.write
            else:
                yield plain.write
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _with_progress(case_files: list[CaseFile], only: str) -> Iterator[RecordedCase]:
    total = sum(len(each) for each in case_files)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal or total < LONG_RUN) as progress:
        task = progress.add_task("cases", total=total)
        for case_file in case_files:
            for case in case_file:
                if case.id.startswith(only):
                    yield case
                progress.advance(task)


def _print_report(summary: Summary, show: int) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    for kind in dict.fromkeys(family.kind for family in summary.families.values()):
        tables = {"family": _family_table(summary, kind), "part": _part_table(summary, kind)}
        if kind in ("cycles", "classic"):
            tables["plugin, in cycles"] = _plugin_table(summary, kind)
        for unit, table in tables.items():
            console.print(f"{kind}: agreement by {unit}", style="bold")
            console.print(table, "")
    by_case: dict[str, list[CaseDifference]] = {}
    for each in summary.differences:
        by_case.setdefault(each.case.where, []).append(each)
    for found in list(by_case.values())[:show]:
        _print_difference(console, found)
    if len(by_case) > show:
        console.print(f"... and {len(by_case) - show:,} more cases that differ (--show, --json)")
    share = _percent(summary.agreed, summary.cases)
    console.print(f"{summary.agreed:,} of {summary.cases:,} cases agree ({share})", style="bold")


def _family_table(summary: Summary, kind: str) -> Table:
    columns = CYCLE_COLUMNS if kind == "cycles" else ()
    table = _plain_table()
    table.add_column("family", no_wrap=True)
    for name in ("cases", "agreed", "", *columns):
        table.add_column(name, justify="right", no_wrap=True)
    for family in summary.families.values():
        if family.kind == kind:
            shares = [_percent_of(family.parts.get(name)) for name in columns]
            counts = (f"{family.cases:,}", f"{family.agreed:,}", _percent(family.agreed, family.cases))
            table.add_row(family.name, *counts, *shares)
    return table


def _part_table(summary: Summary, kind: str) -> Table:
    unit = {"cycles": "cycles", "classic": "cycles", "queue": "steps", "classic-queue": "steps"}.get(kind, "checks")
    table = _plain_table()
    table.add_column("part", no_wrap=True)
    for name in ("cases", "agreed", "", unit, "agreed", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for name, part in summary.parts(kind).items():
        if "/" not in name or name.startswith("preemption/"):
            table.add_row(name, *_counts(part))
    return table


def _plugin_table(summary: Summary, kind: str) -> Table:
    alone, scores = ("filterAll", "scores") if kind == "cycles" else ("predicates", "priorities")
    table = _plain_table()
    table.add_column("plugin", no_wrap=True)
    for name in (alone, "agreed", "", scores, "agreed", ""):
        table.add_column(name, justify="right", no_wrap=True)
    parts = summary.parts(kind)
    plugins = sorted({name.partition("/")[2] for name in parts if name.startswith((f"{alone}/", f"{scores}/"))})
    for plugin in plugins:
        cells = [_counts(parts.get(f"{part}/{plugin}"))[3:] for part in (alone, scores)]
        table.add_row(plugin, *cells[0], *cells[1])
    return table


def _plain_table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0))


def _counts(part: PartSummary | None) -> list[str]:
    if part is None:
        return [""] * 6
    return [
        f"{part.cases:,}",
        f"{part.agreed:,}",
        _percent(part.agreed, part.cases),
        f"{part.checks:,}",
        f"{part.checks_agreed:,}",
        _percent(part.checks_agreed, part.checks),
    ]


def _percent_of(part: PartSummary | None) -> str:
    return "" if part is None else _percent(part.checks_agreed, part.checks)


def _percent(agreed: int, cases: int) -> str:
    """Return a share in percent, truncated so that only all cases are 100 %."""
    tenths = agreed * 1000 // cases if cases else 0
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths / 10} %"


def _print_difference(console: Console, found: list[CaseDifference]) -> None:
    first = found[0]
    part, where, want, got = first.difference
    others = [each.difference.part for each in found[1:]]
    console.print(f"[bold]{escape(first.case.id)}[/bold]  {escape(part)}  {escape(where)}", soft_wrap=True)
    if first.case.note:
        console.print(f"  note  {escape(first.case.note)}", soft_wrap=True)
    console.print(f"  want  {escape(_short(want))}", soft_wrap=True)
    console.print(f"  got   {escape(_short(got))}", soft_wrap=True)
    if first.more or others:
        also = ", ".join(([f"{first.more} more in {part}"] if first.more else []) + others)
        console.print(f"  also  {escape(also)}", soft_wrap=True)


def _short(value: Json) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 400 else f"{text[:400]}..."
