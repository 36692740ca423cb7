"""The verb ``store``: check the file that `bayplan up --store` keeps a cluster in, or repair it into a new file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

MAX_LINES = 50


class Action(StrEnum):
    """Things to do with the file."""

    CHECK = "check"
    REPAIR = "repair"


def store(
    action: Annotated[Action, typer.Argument(help="What to do.", show_default=False)],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of `bayplan up --store FILE`.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The new file of a repair. [default: FILE.repaired]")
    ] = None,
) -> None:
    """Check the file of a cluster, or repair it into a new one.

    check reads the whole file and prints each object that is damaged, with its position. repair writes everything that is
    intact to a new file and prints what was lost. Neither changes FILE.

    Exit code: 0 when everything is intact, 1 when something is damaged, 2 on bad input.
    """
    # Only this verb needs it.
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
