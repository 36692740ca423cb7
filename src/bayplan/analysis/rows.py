"""Typed rows as tables: Arrow, pandas, HTML."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from bayplan.base.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row", bound=msgspec.Struct)


class Rows(Sequence[Row], Generic[Row]):
    """Rows of one type, in order.

    Args:
        rows: of the type. kind: the type; its fields are the columns.
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
        return f"Rows({list(self._rows)!r})"

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(each.name for each in msgspec.structs.fields(self._kind))

    def to_dicts(self) -> list[dict[str, object]]:
        """Return the rows as plain data."""
        found: list[dict[str, object]] = msgspec.to_builtins(self._rows)
        return list(found)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; fields that are documents become JSON texts."""
        import pyarrow as pa

        rows = [{name: _cell(cell) for name, cell in row.items()} for row in self.to_dicts()]
        return pa.table({name: [row.get(name) for row in rows] for name in self.columns})

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Raises:
            InputError: pandas is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise InputError("to_pandas()", got="no pandas", wanted="the extra", hint="pip install 'bayplan[pandas]'")
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(row.get(name, '')))}</td>" for name in self.columns) + "</tr>"
            for row in self.to_dicts()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: object) -> object:
    if isinstance(cell, dict) or (isinstance(cell, list) and any(isinstance(each, dict) for each in cell)):
        return msgspec.json.encode(cell).decode()
    return cell
