"""Logs of changed rows: append-only, with any number of readers, each with its own position.

There are no dirty flags, and nothing to clear. A reader whose position is no longer in the log evaluates every row.
`LogReader` serves results that are updated row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    def copy_from(self, position: int, rows: Index, place: int) -> int:
        """Copy the entries from a position (at least `start`) on into `rows` (intp), and return the place after the last.

        The first one goes to `place`; `rows` must be long enough.
        """
        source = self._rows
        for entry in range(position - self.start, self.end - self.start):
            rows[place] = source[entry]
            place += 1
        return place

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
    """One reader of several logs.

    Attributes:
        rows: intp; its first elements, as many as `take` returned, are the new entries, with repetitions.
    """

    def __init__(self, logs: Sequence[RowLog]) -> None:
        self._logs = list(logs)
        # By log, the position up to which it was read; -1 before the first time.
        self._positions: Any = np.full(len(self._logs), -1, dtype=np.intp)
        self.rows: Any = np.zeros(0, dtype=np.intp)

    def skip(self) -> None:
        """Skip all entries that were added."""
        for number in range(len(self._logs)):
            log = self._logs[number]
            self._positions[number] = log.end

    def take(self, limit: int) -> int:
        """Find the entries that were added, and move to the ends of the logs; return their number (see `rows`).

        Return -1 if all rows must be evaluated: some entries were dropped from the logs, there are `limit` entries or
        more, or this is the first call.
        """
        missed, reached = 0, True
        for number in range(len(self._logs)):
            log, position = self._logs[number], self._positions[number]
            missed += log.end - position
            if position < log.start:
                reached = False
        if reached and missed == 0:
            return 0
        if not reached or missed >= limit:
            self.skip()
            return -1
        if missed > len(self.rows):
            self.rows = np.zeros(max(missed, FIRST_ROWS), dtype=np.intp)
        rows, found = self.rows, 0
        for number in range(len(self._logs)):
            log = self._logs[number]
            found = log.copy_from(self._positions[number], rows, found)
            self._positions[number] = log.end
        return found
