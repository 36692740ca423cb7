"""The verb ``simulate``: manifests and traces in, a schedule in virtual time and a report out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bayplan.analysis.export import export
from bayplan.analysis.report import print_report
from bayplan.analysis.units import format_duration
from bayplan.app.simulation import SimulationOptions, prepare_simulation
from bayplan.base.errors import InputError
from bayplan.cluster.go_duration import parse_go_duration
from bayplan.engine.records import RecordLevel
from bayplan.formats import manifests
from bayplan.sim.result import SimulationResult
from bayplan.sim.simulator import Progress as SimulatorProgress

PIPE_WIDTH = 120
"""Columns of the report where standard output is not a terminal."""

DAY_NS = 24 * 3600 * 1_000_000_000


class Level(StrEnum):
    """How much of every decision is recorded, as an option."""

    OFF = "off"
    SUMMARY = "summary"
    FULL = "full"

    @property
    def record_level(self) -> RecordLevel:
        """The engine's name for it."""
        return RecordLevel[self.name]


def simulate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Manifests (YAML, JSON, gzip; files, folders, patterns, - for standard input), OpenB traces (CSV), or both.",
        ),
    ],
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")] = None,
    feature_gates: Annotated[str, typer.Option(metavar="A=true,B=false", help="As kube-scheduler has them.")] = "",
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py:CLASS[=WEIGHT]",
            help="Enable a plugin of yours in every profile; or one that is installed, by its name. Can be repeated.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of everything that is random: ties between nodes, names.")
    ] = 0,
    until: Annotated[
        str,
        typer.Option(metavar="DURATION", help="End after this much virtual time: 90s, 1h30m, 7d. [default: at rest]"),
    ] = "",
    creation_times: Annotated[
        bool, typer.Option("--creation-times", help="Let objects arrive at their creationTimestamp, not all at once.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the decisions and a summary here.")] = None,
    records: Annotated[
        Level | None,
        typer.Option(
            help="How much of each decision is kept. [default: full with --out, else summary]", show_default=False
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse input that is otherwise warned about.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check all invariants after every event; slow.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="End after the report. It always does; the option is there for scripts.")
    ] = False,
) -> None:
    """Schedule workloads on a cluster in virtual time, and report.

    All objects arrive at the start; controllers make the pods of workloads, pods run for as long as the annotation
    bayplan.io/run-time says (20m), and virtual time jumps from one event to the next. The run ends when nothing can
    change any more.
    """
    _ = once
    if out is not None and out.exists() and not out.is_dir():
        raise InputError("--out", where=str(out), got="a file", wanted="a folder")
    level = records or (Level.FULL if out is not None else Level.SUMMARY)
    options = SimulationOptions(
        paths=paths,
        config=config,
        feature_gates=feature_gates,
        plugins=plugin or (),
        seed=seed,
        record_level=level.record_level,
        until_ns=parse_duration(until) if until else None,
        creation_times=creation_times,
        strict=strict,
        check=check,
    )
    result = run(options)
    terminal = sys.stdout.isatty()
    print_report(result, Console(width=None if terminal else PIPE_WIDTH, highlight=False))
    if out is not None:
        export(result, out)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a duration in Go's form, which may begin with days: ``7d``, ``1d12h``.

    Raises:
        InputError: no duration, or one below zero.
    """
    days, separator, rest = text.partition("d")
    try:
        if not separator:
            duration_ns = parse_go_duration(text)
        else:
            duration_ns = int(days) * DAY_NS + (parse_go_duration(rest) if rest else 0)
    except (InputError, ValueError):
        duration_ns = -1
    if duration_ns < 0:
        raise InputError("--until", got=repr(text), wanted="a duration", hint="'90s', '1h30m' or '7d'")
    return duration_ns


def run(options: SimulationOptions) -> SimulationResult:
    """Run a simulation with a progress bar on standard error, where that is a terminal."""
    with _progress_bar() as (loaded, simulated):
        prepared = prepare_simulation(options, stdin=sys.stdin.buffer, load_progress=loaded)
        return prepared.run(simulated)


@contextmanager
def _progress_bar() -> Iterator[tuple[manifests.Progress | None, Callable[[SimulatorProgress], None] | None]]:
    """Show what goes on, in one line that goes away at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None, None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        start_ns: int | None = None

        def loaded(file: str, documents: int) -> None:
            bar.update(task, description=f"{Path(file).name}: {documents:,} documents")

        def simulated(progress: SimulatorProgress) -> None:
            nonlocal start_ns
            start_ns = progress.now_ns if start_ns is None else start_ns
            done = progress.operations - progress.operations_left
            text = (
                f"{format_duration(progress.now_ns - start_ns)}, {progress.decisions:,} decisions, "
                f"{progress.waiting:,} pods waiting"
            )
            bar.update(task, description=text, total=progress.operations, completed=done)

        yield loaded, simulated
