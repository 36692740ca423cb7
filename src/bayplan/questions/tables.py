"""Rows of an answer: typed structs, readable as an Arrow table or a pandas data frame."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Generic, TypeVar, overload

import msgspec

from bayplan.base.errors import InputError

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa

Row = TypeVar("Row", bound=msgspec.Struct)


class Table(Sequence[Row], Generic[Row]):
    """Rows of one type.

    Args:
        kind: the type of the rows. rows: these.
    """

    def __init__(self, kind: type[Row], rows: Iterable[Row] = ()) -> None:
        self.kind = kind
        self.rows = tuple(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        return self.rows[place]

    def __repr__(self) -> str:
        return f"Table of {len(self.rows):,} {self.kind.__name__}"

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a column for each field.

        Fields that end in ``_at_ns`` become timestamps in UTC, others that end in ``_ns`` durations; both in nanoseconds.
        """
        # Takes a while to import, and text output does not need it.
        import pyarrow as pa

        hints = typing.get_type_hints(self.kind)
        columns, names = [], [field.name for field in msgspec.structs.fields(self.kind)]
        for name in names:
            values = [getattr(row, name) for row in self.rows]
            columns.append(pa.array(values, type=_arrow_type(name, hints[name])))
        return pa.Table.from_arrays(columns, names=[_column(name) for name in names])

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas data frame.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401 - pyarrow needs it, and says so less clearly.
        except ImportError:
            raise InputError("to_pandas()", got="no pandas", wanted="pandas", hint="pip install 'bayplan[pandas]'") from None
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame


def _column(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_at") if name.endswith("_ns") else name


def _arrow_type(name: str, hint: object) -> pa.DataType:
    import pyarrow as pa

    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        hint = next(each for each in typing.get_args(hint) if each is not NoneType)
    if typing.get_origin(hint) in (tuple, list, Sequence):
        return pa.list_(_arrow_type("", typing.get_args(hint)[0]))
    if typing.get_origin(hint) is dict:
        key, value = typing.get_args(hint)
        return pa.map_(_arrow_type("", key), _arrow_type("", value))
    if hint is int:
        if name.endswith("_at_ns"):
            return pa.timestamp("ns", tz="UTC")
        return pa.duration("ns") if name.endswith("_ns") else pa.int64()
    if hint is float:
        return pa.float64()
    return pa.bool_() if hint is bool else pa.string()
