"""The command ``store``: check the database file of `bayplan up --store`, or repair it into a new file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

MAX_LINES = 50


class Action(StrEnum):
    """The actions of the command on the database file."""

    CHECK = "check"
    REPAIR = "repair"


def store(
    action: Annotated[
        Action, typer.Argument(help="Print damaged objects, or write intact ones to a new file.", show_default=False)
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Database file of bayplan up --store.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="New file for the repaired cluster. [default: FILE.repaired]")
    ] = None,
) -> None:
    """Check the database file of a cluster, or repair it.

    check reads the whole file and prints each damaged object with its position. repair writes all intact objects to a new file
    and prints what was lost. Neither changes FILE.

    Exit code: 0 if everything is intact, 1 if something is damaged, 2 on bad input.

    Example: bayplan store check cluster.db
    """
    # Imported here, because only this command needs it.
    from bayplan.apiserver.store.repair import StoreReport, check_store, repair_store

    def print_damage(report: StoreReport) -> None:
        for damage in report.damage[:MAX_LINES]:
            place = f" (page {damage.page}, byte {damage.offset})" if damage.page else ""
            print(f"damaged: {damage.what}{place}: {damage.problem}")
        if len(report.damage) > MAX_LINES:
            print(f"and {len(report.damage) - MAX_LINES:,} more")

    if action is Action.CHECK:
        report = check_store(file)
        print_damage(report)
        print(f"{file}: {len(report.rows):,} objects are intact, {len(report.damage):,} places are damaged")
        if not report.is_intact:
            print(f"try: bayplan store repair {file}")
    else:
        new = out or file.with_name(f"{file.name}.repaired")
        report = repair_store(file, new)
        print_damage(report)
        lost = sum(damage.is_lost for damage in report.damage)
        print(f"{new}: {len(report.rows):,} objects; {lost:,} places with objects that are lost")
    if not report.is_intact:
        raise typer.Exit(1)
