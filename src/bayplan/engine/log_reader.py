"""Reader of the change logs: finds the rows added since its last call, for results that are updated row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.state.row_log import RowLog

FIRST_ROWS = 64


class LogReader:
    """One reader of several logs.

    Attributes:
        rows: intp; its first elements, as many as `take` returned, are the changed rows, with repetitions.
    """

    def __init__(self, logs: Sequence[RowLog]) -> None:
        self._bookmarks = [Bookmark(log) for log in logs]
        self.rows: Any = NO_ROWS

    def is_current(self) -> bool:
        """Return whether nothing was added to the logs since the last `take` or `skip`."""
        added = 0
        for mark in self._bookmarks:
            added += mark.log.end - mark.position
        return added == 0

    def skip(self) -> None:
        """Skip all entries that were added."""
        for mark in self._bookmarks:
            mark.position = mark.log.end

    def take(self, limit: int) -> int:
        """Find the rows that were added, and move to the ends of the logs; return their number (see `rows`).

        Return -1 if all rows must be evaluated: some entries were dropped from the logs, there are `limit` rows or
        more, or this is the first call.
        """
        missed, reached = 0, True
        for mark in self._bookmarks:
            missed += mark.log.end - mark.position
            if mark.position < mark.log.start:
                reached = False
        if not reached or missed >= limit:
            self.skip()
            return -1
        if missed > len(self.rows):
            self.rows = np.zeros(max(missed, FIRST_ROWS), dtype=np.intp)
        rows, found = self.rows, 0
        for mark in self._bookmarks:
            found = mark.log.copy_from(mark.position, rows, found)
            mark.position = mark.log.end
        return found


class Bookmark:
    """The position up to which a reader has read a log; -1 before it has read anything."""

    def __init__(self, log: RowLog) -> None:
        self.log = log
        self.position = -1


NO_ROWS: Any = np.zeros(0, dtype=np.intp)
