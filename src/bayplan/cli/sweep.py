"""The command ``sweep``: simulate many configurations to find the best one for an objective."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.base.termination import exit_on_sigterm

if TYPE_CHECKING:
    from bayplan.sweeps.plan import SweepPlan
    from bayplan.sweeps.sweep import Candidate

MAX_ERRORS = 5
"""Number of different errors of trials that are printed."""


class ExecutorName(StrEnum):
    """The executors of trials."""

    LOCAL = "local"
    PROCESSES = "processes"
    RAY = "ray"


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Sweep file: input, parameters and objective (docs/sweeps.md).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory for the results.")],
    executor: Annotated[
        ExecutorName, typer.Option(help="Run trials in this process, in worker processes, or on Ray.")
    ] = ExecutorName.PROCESSES,
    workers: Annotated[int, typer.Option(metavar="N", min=0, help="Number of parallel trials; 0 for one per CPU.")] = 0,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address of a Ray cluster. [default: a new local one]")
    ] = "",
    objective: Annotated[str, typer.Option(metavar="NAME", help="Objective to optimise. [default: as in FILE]")] = "",
    search: Annotated[
        str, typer.Option(metavar="NAME", help="Search method: grid, random or optuna. [default: as in FILE]")
    ] = "",
    trials: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of parameter sets to try in random or optuna search. [default: trials in the sweep file]",
            show_default=False,
        ),
    ] = 0,
    save: Annotated[
        int, typer.Option(metavar="N", min=0, help="Write result folders of the N best sets, for bayplan report.")
    ] = 0,
    best: Annotated[int, typer.Option(metavar="N", min=1, help="Number of parameter sets to print.")] = 10,
) -> None:
    """Simulate many configurations and print the best ones.

    To continue an interrupted sweep, run the same command again. All results are in DIR/trials.parquet.

    Exit code: 0 if at least one set of parameters could be simulated, 1 if none, 2 on bad input.

    Example: bayplan sweep weights.yaml --out sweep
    """
    with named_extras():
        from bayplan.base.counted_nouns import format_count, plural
        from bayplan.sweeps.executors import make_executor
        from bayplan.sweeps.plan import read_plan
        from bayplan.sweeps.saving import save_results
        from bayplan.sweeps.sweep import distinct, run_sweep

    given = {"objective": objective or None, "search": search or None, "trials": trials or None}
    plan = read_plan(file, **given)
    if trials and plan.search == "grid":
        raise InputError("--trials doesn't apply to a grid, which tries all sets", hint="--search random")
    try:
        with exit_on_sigterm(128 + signal.SIGTERM), _progress_bar() as progress:
            found = run_sweep(
                plan, out, lambda: make_executor(executor, plan, workers=workers, address=address), progress
            )
    except KeyboardInterrupt:
        typer.echo("interrupted; to continue, run the same command again", err=True)
        raise typer.Exit(128 + signal.SIGINT) from None
    sets = distinct(found)
    scored = [candidate for candidate in sets if candidate.score is not None]
    _print_best(plan, sets, best)
    typer.echo(f"{out / 'trials.parquet'}: {format_count(len(found) * len(plan.seeds), 'trial')}")
    if not scored:
        raise typer.Exit(1)
    if save:
        with _progress_bar() as progress:
            saved = list(save_results(plan, out, scored[:save], progress))
        directories = plural("result directory", len(saved))
        typer.echo(f"{out / 'results'}: {len(saved):,} {directories}; try bayplan report {out}")


def _print_best(plan: SweepPlan, sets: Sequence[Candidate], best: int) -> None:
    """Print the objective, the best parameter sets with their scores, and the errors of those that failed."""
    from bayplan.base.counted_nouns import format_count, is_or_are
    from bayplan.sweeps.objectives import OBJECTIVES

    goal = OBJECTIVES[plan.objective]
    scored = [candidate for candidate in sets if candidate.score is not None]
    seeds = f"mean of {len(plan.seeds)} seeds" if len(plan.seeds) > 1 else f"seed {plan.seeds[0]}"
    typer.echo(f"{plan.objective} ({goal.text}), {'highest' if goal.maximise else 'lowest'} first; {seeds}")
    for candidate in scored[:best]:
        typer.echo(f"  {goal.format_score(candidate.score or 0.0):>12}  {_parameters_text(candidate)}")
    if len(scored) > best:
        typer.echo(f"  and {format_count(len(scored) - best, 'more set')} (--best)")
    if len(scored) == len(sets) > 1 and len({candidate.score for candidate in scored}) == 1:
        typer.echo("  All sets have the same score: these parameters do not change this objective here.")
    unplaced = [candidate for candidate in scored if candidate.waiting]
    if unplaced and not plan.until and goal.grows_with_time:
        most = max(each.waiting for each in unplaced)
        count, pods = format_count(len(unplaced), "set"), format_count(most, "pod")
        typer.echo(
            f"  Up to {pods} {is_or_are(most)} still pending at the end of {count}. They count only up to the end of the "
            "run, which differs between sets: set `until` in the sweep file."
        )
    _print_failed([candidate for candidate in sets if candidate.score is None])


def _print_failed(failed: Sequence[Candidate]) -> None:
    """Print each error once, with the first parameter set that has it."""
    from bayplan.base.counted_nouns import format_count

    by_error: dict[str, list[Candidate]] = {}
    for candidate in failed:
        by_error.setdefault(candidate.error, []).append(candidate)
    for error, candidates in list(by_error.items())[:MAX_ERRORS]:
        others = f" and {format_count(len(candidates) - 1, 'other set')}" if len(candidates) > 1 else ""
        typer.echo(f"  {'failed':>12}  {_parameters_text(candidates[0])}{others}: {error}")
    if len(by_error) > MAX_ERRORS:
        typer.echo(f"  and {format_count(len(by_error) - MAX_ERRORS, 'more error')} (column error of trials.parquet)")


def _parameters_text(candidate: Candidate) -> str:
    return ", ".join(f"{name}={value}" for name, value in candidate.parameters.items())


@contextmanager
def _progress_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that updates a progress bar with the remaining time; yield None if there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("trials", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
