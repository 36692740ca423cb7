"""Sequences of typed rows that convert to Arrow, pandas and HTML tables."""

from __future__ import annotations

import html
import importlib.util
import reprlib
import typing
from collections.abc import Iterable, Iterator, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from bayplan.base.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row", bound=msgspec.Struct)

MAX_SHOWN_ROWS = 20
"""Maximum number of rows in a `repr`."""

_ABRIDGED = reprlib.Repr()
"""Shortens values, because whole objects of the cluster would fill a notebook."""
_ABRIDGED.maxlevel = 2
_ABRIDGED.maxstring = _ABRIDGED.maxother = 100
_ABRIDGED.maxlist = _ABRIDGED.maxdict = 3


class Rows(Sequence[Row], Generic[Row]):
    """An immutable sequence of rows of one type.

    Args:
        rows: the rows.
        kind: the struct type of the rows; its fields are the columns.
    """

    def __init__(self, rows: Iterable[Row], kind: type[Row]) -> None:
        self._rows = tuple(rows)
        self._kind = kind

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        lines = [f"{self._text_of(row)}," for row in self._rows[:MAX_SHOWN_ROWS]]
        if len(self._rows) > MAX_SHOWN_ROWS:
            lines.append(f"... {len(self._rows) - MAX_SHOWN_ROWS:,} more")
        inside = "".join(f"\n    {line}" for line in lines)
        return f"Rows([{inside}\n])" if lines else "Rows([])"

    def _text_of(self, row: Row) -> str:
        cells = ", ".join(f"{name}={_ABRIDGED.repr(getattr(row, name))}" for name in self.columns)
        return f"{self._kind.__name__}({cells})"

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(each.name for each in msgspec.structs.fields(self._kind))

    def to_dicts(self) -> list[dict[str, object]]:
        """Return the rows as dictionaries of plain data."""
        found: list[dict[str, object]] = msgspec.to_builtins(self._rows)
        return list(found)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table. Fields that contain dictionaries become JSON texts.

        Integers named ``..._at_ns`` become timestamps (UTC), and other integers named ``..._ns`` durations, both in
        nanoseconds; the names of their columns lack the ``_ns``. Columns have the types of the fields even if there are
        no rows.
        """
        import pyarrow as pa

        rows = self.to_dicts()
        hints = typing.get_type_hints(self._kind)
        arrays = [
            pa.array(_column([row.get(name) for row in rows]), type=_arrow_type(name, hints[name]))
            for name in self.columns
        ]
        return pa.Table.from_arrays(arrays, names=[name.removesuffix("_ns") for name in self.columns])

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise MissingExtra("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name, '')))}</td>" for name in self.columns) + "</tr>"
            for row in self.to_dicts()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _arrow_type(name: str, hint: object) -> pa.DataType | None:
    """Return the Arrow type for a field's annotation; None to let Arrow infer it."""
    import pyarrow as pa

    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [each for each in typing.get_args(hint) if each is not NoneType]
        hint = kinds[0] if len(kinds) == 1 else None
    if hint is int and name.endswith("_ns"):
        return pa.timestamp("ns", tz="UTC") if name.endswith("_at_ns") else pa.duration("ns")
    if isinstance(hint, type) and issubclass(hint, str):
        return pa.string()
    return {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}.get(hint) if isinstance(hint, type) else None


def _cell(value: object) -> str:
    """Return a value as text for a table: texts in full, lists and dictionaries abridged."""
    return _ABRIDGED.repr(value) if isinstance(value, list | dict) else str(value)


def _column(cells: list[object]) -> list[object]:
    """Return the cells of a column for Arrow: as JSON texts if any cell is a dictionary or a list with dictionaries."""
    if any(isinstance(each, dict) for cell in cells for each in (cell if isinstance(cell, list) else [cell])):
        return [msgspec.json.encode(cell).decode() for cell in cells]
    return cells
