"""Read a CSV table as a stream of rows, with the position of every value for errors."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.formats.bounded_reading import ByteStream
from bayplan.formats.traces.streams import line_blocks

MAX_AMOUNT = 2**40
"""Maximum amount: far beyond any machine, and small enough to sum up bytes in int64."""

LAST_SECOND = 2**62 // SECOND_NS
"""The latest possible time of a trace, in seconds."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RowError(InputError):
    """A row can't be read; a reader may skip it."""


MIN_COMPARED = 6
"""Shorter names of columns are not compared with optional columns: a column of the user may have a similar name."""


class CsvTable:
    """The rows of one file.

    Args:
        name: the name of the file, for errors.
        stream: the bytes of the file.
        columns: the columns to read, in the published order. If the first row contains all of their names, it is a
            header, and the columns may be in any order; otherwise the file must have exactly these columns in this
            order.
        header: whether a header is required.
        optional: columns that may be missing in the header; they are then empty. In each row they follow `columns`.
        invalid: called with the error about a row with the wrong number of columns; raises or counts the error.
    """

    def __init__(
        self,
        name: str,
        stream: ByteStream,
        columns: Sequence[str],
        *,
        invalid: Callable[[RowError], None],
        header: bool = False,
        optional: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.names: Sequence[str] = ()
        self._all = (*columns, *optional)
        self._stream = stream
        self._needs_header = header
        self._invalid = invalid
        self._block_line = 0
        self._cut = False
        self._reader = csv.reader(chain.from_iterable(self._lines()), strict=True)
        self.found = False

    @property
    def where(self) -> str:
        """File and line of the current row."""
        return f"{self.name}:{self.line}"

    @property
    def line(self) -> int:
        """The line of the current row, counted from 1."""
        return self._reader.line_num

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows after the header, each with its values in the order of `columns`. Skip empty lines.

        Raises:
            InputError: the text is not CSV or not UTF-8, the header or the number of columns is wrong, or there are no
                rows.
        """
        reader, width = self._reader, 0
        pick: _Picked | None = None
        try:
            for values in reader:
                if not values:
                    continue
                if not width:
                    width, pick = self._start(values)
                    if self.names:
                        continue
                if len(values) != width:
                    self._invalid(self._wrong_width(values, width))
                    continue
                self.found = True
                yield pick(values) if pick is not None else values
        except csv.Error as problem:
            raise InputError("row", where=self.where, wanted="CSV", got=str(problem)) from None
        if not self.found:
            got = "only a header" if self.names else "none"
            raise InputError("table", where=self.name, wanted="at least one row", got=got)

    def error(self, column: str, got: str, *, wanted: str) -> RowError:
        """Return an error about a value in the current row."""
        return RowError(f"column {column}", where=self.where, wanted=wanted, got=repr(got))

    # --- values -------------------------------------------------------------------------------------------------------

    def whole(self, text: str, column: str) -> int:
        """Parse an integer from 0 to `MAX_AMOUNT`; ``8.0`` is accepted."""
        if text.isdigit() and text.isascii() and len(text) <= 12:
            return int(text)
        number = _number(text)
        if not (0 <= number <= MAX_AMOUNT and number.is_integer()):
            raise self.error(column, text, wanted=f"a whole number from 0 to {MAX_AMOUNT}")
        return int(number)

    def amount(self, text: str, column: str) -> float:
        """Parse a number from 0 to `MAX_AMOUNT`."""
        number = _number(text)
        if not 0 <= number <= MAX_AMOUNT:
            raise self.error(column, text, wanted=f"a number from 0 to {MAX_AMOUNT}")
        return number

    def time_ns(self, text: str, column: str) -> int | None:
        """Parse a time in seconds; return nanoseconds, or None if the text is empty. Times before the trace are negative."""
        if text.isdigit() and text.isascii() and len(text) <= 9:
            return int(text) * SECOND_NS
        if not text:
            return None
        try:
            seconds = Decimal(text.replace("_", "x"))
        except InvalidOperation:
            raise self.error(column, text, wanted="a time in seconds") from None
        if not seconds.is_finite() or not -LAST_SECOND <= seconds <= LAST_SECOND:
            raise self.error(column, text, wanted=f"a time in seconds from -{LAST_SECOND} to {LAST_SECOND}")
        return int(seconds * SECOND_NS)

    # --- lines --------------------------------------------------------------------------------------------------------

    def _lines(self) -> Iterator[list[str]]:
        for block in line_blocks(self._stream, self.name):
            if not self._block_line:
                block = block.removeprefix(_BYTE_ORDER_MARK)
            self._cut = not block.endswith(b"\n")
            try:
                lines = block.removesuffix(b"\n").decode().split("\n")
            except UnicodeDecodeError as problem:
                line = self._block_line + block.count(b"\n", 0, problem.start) + 1
                raise InputError("table", where=f"{self.name}:{line}", wanted="UTF-8", got="another encoding") from None
            self._block_line += len(lines)
            yield lines

    def _start(self, values: list[str]) -> tuple[int, _Picked | None]:
        """Return the number of columns of the first row, and the function that selects the columns to read (None for all)."""
        names = [value.strip() for value in values]
        if set(self.columns) <= set(names):
            self.names = names
            self._check_names()
            order = [names.index(name) if name in names else len(names) for name in self._all]
            if order == list(range(len(names))):
                return len(names), None
            return len(names), _Picked(order)
        if self._needs_header:
            wanted = f"a header with {','.join(self.columns)}"
            raise InputError("table", where=self.where, wanted=wanted, got=repr(",".join(names)[:80]))
        return len(self._all), None

    def _check_names(self) -> None:
        """Check the header.

        Raises:
            InputError: a column that is read occurs twice, or a missing optional column is probably misspelt.
        """
        known = set(self._all)
        unknown = [name for name in self.names if name not in known and len(name) >= MIN_COMPARED]
        for name in self._all:
            if self.names.count(name) > 1:
                raise InputError(
                    "table", where=self.where, wanted=f"one column {name}", got=str(self.names.count(name))
                )
            if name not in self.names and len(name) >= MIN_COMPARED and (close := near_name(name, unknown)):
                raise InputError("table", where=self.where, wanted="a known column", got=repr(close), hint=name)

    def _wrong_width(self, values: list[str], width: int) -> RowError:
        where, hint = self.where, ""
        if len(values) < width and self._cut and self._reader.line_num == self._block_line:
            hint = "another copy of the file: this one ends within a row"
        return RowError("row", where=where, wanted=f"{width} columns", got=str(len(values)), hint=hint)


def _number(text: str) -> float:
    """Parse a number; NaN if the text is not a number. Unlike in Python, underscores between digits are not allowed."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


class _Picked:
    """Selects columns of rows, by index. An index past the last column selects ""."""

    def __init__(self, order: list[int]) -> None:
        self._order = order

    def __call__(self, values: list[str]) -> list[str]:
        values.append("")
        return [values[index] for index in self._order]
