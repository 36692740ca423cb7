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
        self._logs = list(logs)
        self._positions = [-1] * len(self._logs)
        self.rows: Any = NO_ROWS

    def is_current(self) -> bool:
        """Return whether nothing was added to the logs since the last `take` or `skip`."""
        for number in range(len(self._logs)):
            log: RowLog = self._logs[number]
            if log.end != self._positions[number]:
                return False
        return True

    def skip(self) -> None:
        """Skip all entries that were added."""
        for number in range(len(self._logs)):
            log: RowLog = self._logs[number]
            self._positions[number] = log.end

    def take(self, limit: int) -> int:
        """Find the rows that were added, and move to the ends of the logs; return their number (see `rows`).

        Return -1 if all rows must be evaluated: some entries were dropped from the logs, there are `limit` rows or
        more, or this is the first call.
        """
        missed, reached = 0, True
        for number in range(len(self._logs)):
            log: RowLog = self._logs[number]
            start = self._positions[number]
            missed += log.end - start
            if start < log.start:
                reached = False
        if not reached or missed >= limit:
            self.skip()
            return -1
        if missed > len(self.rows):
            self.rows = np.zeros(max(missed, FIRST_ROWS), dtype=np.intp)
        rows, found = self.rows, 0
        for number in range(len(self._logs)):
            log = self._logs[number]
            for position in range(self._positions[number], log.end):
                rows[found] = log.at(position)
                found += 1
            self._positions[number] = log.end
        return found


NO_ROWS: Any = np.zeros(0, dtype=np.intp)
