"""Parts of the tables of pods and nodes: rows assigned to names, the order of names and values, and codes for texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from threading import Lock

import numpy as np

from bayplan.state.arrays import Bools, Index, Ints

MAX_INSERTED = 2_000
"""Maximum number of new names to insert one by one into the order; for more, sort all names again."""


class NamedRows:
    """The rows of a table whose entries are added and removed by name. Use on one thread.

    Args:
        first_rows: the initial number of rows.
        tables: dictionaries of columns by name, which grow with the rows.

    Attributes:
        version: changes when a name is added or removed.
        names: the name of each row; "" if the row is free.
        rows: the row of each name.
        used: bool[capacity], whether the row has a name.
        born: int64[capacity], the version in which the name was added.
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
        """Assign a row to a new name, and return it."""
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
        """Remove a name. Return its row, which may be reused at once, or None if there is no such name."""
        row = self.rows.pop(name, None)
        if row is not None:
            self.version += 1
            # Readers have copies, so the row can be reused at once.
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
    """A cached order of rows by name, for the newest version that was read. For any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._version = 0
        self._rows: Index = np.zeros(0, dtype=np.intp)

    def at(self, version: int, names: Sequence[str], used: Bools, born: Ints) -> Index:
        """Return the rows that have a name, ordered by name. Merge the changes since the cached version.

        Args:
            version, names, used, born: the attributes of `NamedRows`, all from the same version.
        """
        with self._lock:
            if version < self._version:
                # The caller reads an older version than the cached one.
                return _sorted(np.flatnonzero(used), names)
            if version > self._version:
                kept = self._rows[used[self._rows] & (born[self._rows] <= self._version)]
                fresh = np.flatnonzero(used & (born > self._version))
                if len(fresh) > MAX_INSERTED:
                    self._rows = _sorted(np.flatnonzero(used), names)
                else:
                    self._rows = _merged(kept, _sorted(fresh, names), names)
                self._version = version
            return self._rows


def _sorted(rows: Index, names: Sequence[str]) -> Index:
    return np.array(sorted(rows.tolist(), key=names.__getitem__), dtype=np.intp)


def _merged(rows: Index, others: Index, names: Sequence[str]) -> Index:
    """Merge two sets of rows, each ordered by name."""
    places = [bisect_left(rows, names[row], key=names.__getitem__) for row in others.tolist()]
    merged: Index = np.insert(rows, places, others)
    return merged


class TextCodes:
    """A two-way table of texts and integer codes, so that columns of texts are arrays of integers. The code of "" is 0."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str) -> int:
        """Return the code of a text. Assign a new code to a new text."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return found

    def find(self, text: str) -> int | None:
        """Return the code of a text, or None."""
        return self._codes.get(text)

    def keep_only(self, codes: Iterable[int]) -> Ints:
        """Drop all texts except those with the given codes. Return int64[old codes]: the new codes, 0 for dropped texts.

        For texts that rarely repeat, such as messages with numbers in them.
        """
        texts = self.texts
        self.texts, self._codes = [""], {"": 0}
        moved = np.zeros(len(texts), dtype=np.int64)
        for old in codes:
            moved[old] = self.code(texts[old])
        return moved


def ranks(texts: Sequence[str]) -> Ints:
    """Return int64[texts]: the rank of each text in alphabetical order."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order))
    return found


def sorted_rows(rows: Index, values: Ints, descending: bool) -> Index:
    """Return rows sorted by their values (int64[all rows]); rows with equal values stay in order."""
    chosen = values[rows]
    found: Index = rows[np.argsort(-chosen if descending else chosen, kind="stable")]
    return found
