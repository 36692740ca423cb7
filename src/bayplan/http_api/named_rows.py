"""Rows that have names: which row a name has, which rows are free again, and the order of the rows by name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from threading import Lock

import numpy as np

from bayplan.state.arrays import Bools, Index, Ints

MOST_INSERTED = 2_000
"""So many new names are put in their places one by one; of more, all are sorted again."""


class NamedRows:
    """The rows of a table of things that come and go. Written on one thread.

    Args:
        first_rows: how many rows columns have in the beginning. tables: of columns by name, which grow with the rows.

    Attributes:
        version: moves with names that come and go.
        names: by row, "" where there is none. rows: by name.
        used: bool[capacity], whether there is a name. born: int64[capacity], the version with which it came.
    """

    def __init__(self, first_rows: int, *tables: dict[str, Ints]) -> None:
        self.version = 0
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.used = np.zeros(first_rows, dtype=np.bool_)
        self.born = np.zeros(first_rows, dtype=np.int64)
        self._tables = tables
        self._free: list[int] = []

    def add(self, name: str) -> int:
        """Return a row for a name that has none."""
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            if row >= len(self.used):
                self._grow()
        self.version += 1
        self.rows[name] = row
        self.used[row], self.born[row] = True, self.version
        return row

    def remove(self, name: str) -> int | None:
        """Take a name out; return the row that it had, which the next name may get, or None."""
        row = self.rows.pop(name, None)
        if row is not None:
            self.version += 1
            # Readers hold copies, so that a row may be given to another name at once.
            self.names[row], self.used[row] = "", False
            self._free.append(row)
        return row

    def _grow(self) -> None:
        for table in self._tables:
            for name, values in table.items():
                table[name] = np.concatenate((values, np.zeros_like(values)))
        self.used = np.concatenate((self.used, np.zeros_like(self.used)))
        self.born = np.concatenate((self.born, np.zeros_like(self.born)))


class NameOrder:
    """The rows of the newest moment that somebody asked about, in the order of their names. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._version = 0
        self._rows: Index = np.zeros(0, dtype=np.intp)

    def at(self, version: int, names: Sequence[str], used: Bools, born: Ints) -> Index:
        """Return the rows that have a name, by name: what is different from the moment before is put in its place.

        Args:
            version, names, used, born: of `NamedRows`, as they were at the moment.
        """
        with self._lock:
            if version < self._version:
                # Somebody asks about a moment that is over for others.
                return _sorted(np.flatnonzero(used), names)
            if version > self._version:
                kept = self._rows[used[self._rows] & (born[self._rows] <= self._version)]
                fresh = np.flatnonzero(used & (born > self._version))
                if len(fresh) > MOST_INSERTED:
                    self._rows = _sorted(np.flatnonzero(used), names)
                else:
                    self._rows = _merged(kept, _sorted(fresh, names), names)
                self._version = version
            return self._rows


def _sorted(rows: Index, names: Sequence[str]) -> Index:
    return np.array(sorted(rows.tolist(), key=names.__getitem__), dtype=np.intp)


def _merged(rows: Index, others: Index, names: Sequence[str]) -> Index:
    """Return both in one order; each is in order already."""
    places = [bisect_left(rows, names[row], key=names.__getitem__) for row in others.tolist()]
    merged: Index = np.insert(rows, places, others)
    return merged
