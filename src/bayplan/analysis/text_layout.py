"""The terminal layout of explanations: headings, indented parts, tables without lines, lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import TextWrapper

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDTH = 80
"""The width if standard output is not a terminal, and the minimum width that the tables are designed for."""

_BULLET = TextWrapper(
    WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)

SHOWN_NODES = 4
"""Default number of nodes shown; the rest is counted. ``--nodes`` and ``--json`` print all."""


def section(heading: str, body: Sequence[RenderableType]) -> list[RenderableType]:
    """Return the parts of a section: an empty line, the heading, and the indented body."""
    return [Text(), Text(heading, style="bold"), *(indented(part) for part in body)]


def bullet_lines(heading: str, texts: Sequence[str]) -> list[str]:
    """Return the lines of a section whose body is a bullet list; [] if there are no texts."""
    return ["", heading, *bulleted(texts)] if texts else []


def bulleted(texts: Sequence[str]) -> list[str]:
    """Return the texts as items of a bullet list, wrapped at `WIDTH` columns."""
    return [line for text in texts for line in _BULLET.wrap(text)]


def bullets(heading: str, texts: Sequence[str]) -> list[RenderableType]:
    """Return the section of `bullet_lines` with styles: a bold heading and dim items."""
    lines = bullet_lines(heading, texts)
    return [Text(line, style="bold" if line == heading else "dim") for line in lines]


def indented(part: RenderableType) -> Padding:
    """Indent a part by two columns."""
    return Padding(part, (0, 0, 0, 2))


def grid(*columns: str) -> Table:
    """Return an empty table without lines. Its last column folds; columns without a name are right-aligned."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    for place, name in enumerate(columns):
        last = place == len(columns) - 1
        table.add_column(name, justify="left" if name or last else "right", no_wrap=not last, overflow="fold")
    return table


def shown_nodes() -> Table:
    """Return an empty table for groups of nodes: the number of nodes, and a text that folds."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def add(table: Table, *cells: str | Text, style: str = "") -> None:
    """Add a row of cells. Strings are shown literally: markup is not interpreted."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), style=style)


def named(names: Sequence[str], all_nodes: bool, *, count: int | None = None) -> str:
    """Join names into one text; if there are many, list the first ones and the number of the rest.

    `count` is the number of all names if `names` contains only some of them.
    """
    count = len(names) if count is None else count
    shown = names if all_nodes or count <= SHOWN_NODES + 1 else names[:SHOWN_NODES]
    listed = ", ".join(shown)
    return listed if len(shown) == count else f"{listed} and {count - len(shown):,} more"
