"""Logs of changed rows: append-only, with any number of readers, each with its own position.

There are no dirty flags, and nothing to clear. A reader whose position is no longer in the log evaluates every row.
`LogReader` serves results that are updated row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.state.arrays import Index

FIRST_CAPACITY = 256

LIMIT = 1 << 20
"""Default maximum number of entries; the older half is dropped then, and readers so far behind evaluate all rows."""


class RowLog:
    """An append-only log of row numbers.

    Args:
        limit: the maximum number of entries, an even number.

    Attributes:
        start: the position of the oldest entry in the log.
        end: the position after the newest entry, at which a reader that has read everything is.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rows: Index = np.zeros(min(FIRST_CAPACITY, limit), dtype=np.intp)
        self.start = 0
        self.end = 0

    def append(self, row: int) -> None:
        """Append a row."""
        length = self.end - self.start
        if length == len(self._rows):
            self._make_room()
            length = self.end - self.start
        self._rows[length] = row
        self.end += 1

    def copy_from(self, position: int, rows: Index) -> None:
        """Copy the entries from a position (at least `start`) on into `rows` (intp), which must be long enough."""
        source, first = self._rows, position - self.start
        for number in range(self.end - position):
            rows[number] = source[first + number]

    def since(self, position: int) -> list[int] | None:
        """Return the entries from a position on, with repetitions, or None if some of them have been dropped."""
        if position < self.start:
            return None
        return [int(self._rows[number - self.start]) for number in range(position, self.end)]

    def _make_room(self) -> None:
        old = np.asarray(self._rows)
        if len(old) < self._limit:
            grown = np.zeros(min(len(old) * 2, self._limit), dtype=np.intp)
            grown[: len(old)] = old
            self._rows = grown
            return
        cut = self._limit // 2
        old[: self._limit - cut] = old[cut:].copy()
        self.start += cut


FIRST_ROWS = 64
"""Minimum number of elements of `LogReader.rows`; readers with few changes then allocate it only once."""


class LogReader:
    """One reader of a log.

    Attributes:
        rows: intp; its first elements, as many as `take` returned, are the new entries, with repetitions.
    """

    def __init__(self, log: RowLog) -> None:
        self._log = log
        # The position up to which the log was read; -1 before the first time.
        self._position = -1
        self.rows: Any = np.zeros(0, dtype=np.intp)

    def skip(self) -> None:
        """Skip all entries that were added."""
        self._position = self._log.end

    def take(self, limit: int) -> int:
        """Find the entries that were added, and move to the end of the log; return their number (see `rows`).

        Return -1 if all rows must be evaluated: some entries were dropped from the log, there are `limit` entries or
        more, or this is the first call.
        """
        log, position = self._log, self._position
        if position == log.end:
            return 0
        self._position = log.end
        count = log.end - position
        if position < log.start or count >= limit:
            return -1
        if count > len(self.rows):
            self.rows = np.zeros(max(count, FIRST_ROWS), dtype=np.intp)
        log.copy_from(position, self.rows)
        return count
