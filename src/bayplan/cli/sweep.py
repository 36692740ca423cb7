"""The command ``sweep``: simulate many configurations to find the best one for an objective."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bayplan.base.extras import named_extras


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
        from bayplan.sweeps.executors import make_executor
        from bayplan.sweeps.objectives import OBJECTIVES
        from bayplan.sweeps.plan import read_plan
        from bayplan.sweeps.saving import save_results
        from bayplan.sweeps.sweep import run_sweep

    given = {"objective": objective or None, "search": search or None, "trials": trials or None}
    plan = read_plan(file, **given)
    with _progress_bar() as progress:
        found = run_sweep(plan, out, lambda: make_executor(executor, plan, workers=workers, address=address), progress)
    goal = OBJECTIVES[plan.objective]
    typer.echo(
        f"{plan.objective} ({goal.text}), {'highest' if goal.maximise else 'lowest'} first; mean of {len(plan.seeds)} seeds"
    )
    for candidate in found[:best]:
        score = "failed" if candidate.score is None else goal.format_score(candidate.score)
        why = f": {candidate.error}" if candidate.error else ""
        typer.echo(f"  {score:>12}  {', '.join(f'{name}={each}' for name, each in candidate.parameters.items())}{why}")
    scores = {candidate.score for candidate in found}
    if len(found) > 1 and len(scores) == 1 and None not in scores:
        typer.echo("  All sets have the same score: these parameters do not change this objective here.")
    typer.echo(f"{out / 'trials.parquet'}: {len(found) * len(plan.seeds):,} trials")
    if scores == {None}:
        raise typer.Exit(1)
    if save:
        with _progress_bar() as progress:
            saved = list(save_results(plan, out, found[:save], progress))
        typer.echo(f"{out / 'results'}: {len(saved):,} result directories; try bayplan report {out}")


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
