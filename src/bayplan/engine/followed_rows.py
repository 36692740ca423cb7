"""Ascending rows from which single ones are taken and to which single ones are added, while others read them."""

from __future__ import annotations

from bisect import bisect_left, insort

from bayplan.engine.tie_set import BestRows
from bayplan.state.arrays import Index

WORTH_A_LIST = 3
"""From so many changes on rows are a list: making one of an array takes as long as some ten changes of the array."""


class FollowedRows:
    """Rows that were found at once, as an array, and change one by one from then on.

    Attributes:
        rows: ascending. An array stays as it is; a list may change with the next change.
    """

    __slots__ = ("_changes", "rows")

    def __init__(self, rows: BestRows) -> None:
        self.rows = rows
        self._changes = 0

    def remove(self, row: int) -> None:
        """Take out a row that is there."""
        rows = self._rows_to_change()
        if isinstance(rows, list):
            del rows[bisect_left(rows, row)]
            return
        place = int(rows.searchsorted(row))
        others = rows[:-1].copy()
        others[place:] = rows[place + 1 :]
        self.rows = others

    def add(self, row: int) -> None:
        """Add a row that is not there."""
        rows = self._rows_to_change()
        if not isinstance(rows, list):
            rows = self.rows = rows.tolist()
        insort(rows, row)

    def _rows_to_change(self) -> list[int] | Index:
        rows = self.rows
        if not isinstance(rows, list):
            self._changes += 1
            if self._changes >= WORTH_A_LIST:
                rows = self.rows = rows.tolist()
        return rows
