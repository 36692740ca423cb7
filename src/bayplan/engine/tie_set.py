"""The nodes with the highest total, kept while single totals change."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeAlias

from bayplan.state.arrays import Index, Ints

BestRows: TypeAlias = list[int] | Index
"""Row numbers, ascending."""


class TieSet:
    """The rows with the highest total, ascending. Finding them reads all totals; taking one row out or in does not."""

    __slots__ = ("_highest", "_rows")

    def __init__(self) -> None:
        self._highest = -1
        # An array as it was found; a list from the first move on.
        self._rows: BestRows | None = None

    def forget(self) -> None:
        """Note that totals changed in ways that nobody told."""
        self._rows = None

    def move(self, row: int, before: int, after: int) -> None:
        """Note that the total of one row changed; -1 stands for a row that is not feasible."""
        rows = self._rows
        if rows is None or before == after or (after < self._highest and before != self._highest):
            return
        if after > self._highest:
            self._rows = None
            return
        if not isinstance(rows, list):
            rows = self._rows = rows.tolist()
        if after == self._highest:
            insort(rows, row)
        else:
            del rows[bisect_left(rows, row)]

    def of(self, total: Ints, count: int) -> tuple[int, BestRows]:
        """Return the highest of the first `count` totals and the rows that have it; -1 and none where no row is feasible.

        The rows are the set's own and may change with the next `move`.
        """
        rows = self._rows
        if rows is None or not len(rows):
            total = total[:count]
            self._highest = int(total[total.argmax()]) if count else -1
            rows = self._rows = (total == self._highest).nonzero()[0] if self._highest >= 0 else []
        return self._highest, rows
