"""Rows that agree in a few columns, as one: topology keys, and counts of pods.

Thousands of rows lie in a few zones, and hold one of a few numbers of the pods that a rule counts. A rule that follows from
these columns is evaluated once for each class, through the same functions, and looked up for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter
from bayplan.state.views import Rows

Column = str | Counter
"""What classes are made of: a label key, or a counter of pods per row."""

MOST_CLASSES = 1024
"""With more classes than this, evaluating them is no cheaper than evaluating rows."""

HEADROOM = 64
"""Counts may grow by so much, or to the double, before classes are numbered anew."""

LARGEST_KEY = 1 << 62
"""What a row says in all columns is one integer below this."""


class RowClasses:
    """The class of every row by some columns, as the nodes are now. Classes that rows come to later get the next numbers.

    Args:
        state: the cluster.
        columns: each once.

    Attributes:
        codes: intp[rows in use], the class of each row.
        size: how many classes there are, held or not; 0 where they would be more than `MOST_CLASSES`, and nothing else holds then.
        view: one row for each class.
    """

    __slots__ = ("_base", "_counters", "_numbers", "codes", "columns", "size", "view")

    def __init__(self, state: ClusterState, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        count = state.nodes.count
        # What labels make of the key of a row; counts are added to it.
        self._base: Index = np.zeros(count, dtype=np.intp)
        # Of counters: what one pod more adds to the key, and from how many on keys must be made anew.
        self._counters: list[tuple[Counter, int, int]] = []
        places: dict[Column, tuple[int, int]] = {}
        stride = 1
        for column in self.columns:
            if isinstance(column, str):
                names = state.nodes.label_column(column)
                number = len(names.values) + 1
                # Rows without the label come last, as their code picks the last slot of every table.
                codes = names.codes[:count] % number
            else:
                codes = column.values[:count]
                largest = int(codes.max(initial=0))
                number = largest + max(largest, HEADROOM) + 1
                self._counters.append((column, stride, number))
            if stride * number >= LARGEST_KEY:
                break
            places[column] = (stride, number)
            if isinstance(column, str):
                self._base += codes * stride
            stride *= number
        keys = self._base.copy()
        for counter, step, _ in self._counters:
            keys += counter.values[:count] * step
        found, self.codes = np.unique(keys, return_inverse=True)
        self.size = len(found) if len(found) <= MOST_CLASSES and len(places) == len(self.columns) else 0
        self._numbers: dict[int, int] = {key: number for number, key in enumerate(found[: self.size].tolist())}
        self.view = ClassRows(state, found[: self.size], places)

    def follow(self, rows: Iterable[int]) -> bool:
        """Bring the classes of rows whose counts may have changed up to date; return False where they must be made anew."""
        counters, numbers = self._counters, self._numbers
        if not counters:
            return True
        for row in rows:
            key = self._base.item(row)
            for counter, stride, limit in counters:
                count = counter.values.item(row)
                if count >= limit:
                    return False
                key += count * stride
            code = numbers.get(key)
            if code is None:
                if self.size == MOST_CLASSES:
                    return False
                code = numbers[key] = self.size
                self.size += 1
                self.view.add(key)
            self.codes[row] = code
        return True


class ClassRows(Rows):
    """One row for each class. Only the columns that classes are made of can be read.

    Args:
        state: the cluster.
        keys: what rows of each class say in all columns.
        places: per column what one more in it adds to the key, and how many values it has.
    """

    __slots__ = ("_counts", "_keys", "_labels", "_places")

    def __init__(self, state: ClusterState, keys: Index, places: dict[Column, tuple[int, int]]) -> None:
        # Whoever reads another column gets one without rows, which goes with nothing.
        super().__init__(state, np.zeros(0, dtype=np.intp))
        self._keys = keys
        self._places = places
        self._labels: dict[str, Index] = {}
        self._counts: dict[Counter, Ints] = {}
        self._read(keys)

    def add(self, key: int) -> None:
        """Add a class."""
        self._keys = np.append(self._keys, key)
        self._read(self._keys)

    def _read(self, keys: Index) -> None:
        for column, (stride, number) in self._places.items():
            values = keys // stride % number
            if isinstance(column, str):
                values[values == number - 1] = -1
                self._labels[column] = values
            else:
                self._counts[column] = values

    def __len__(self) -> int:
        return len(self._keys)

    def row_numbers(self) -> Index:
        """Return the numbers of the classes."""
        return np.arange(len(self._keys), dtype=np.intp)

    def label(self, key: str) -> Index:
        """Return each class's code in the column of a label key."""
        return self._labels[key]

    def has_label(self, key: str) -> Bools:
        """Return which classes have a label key; one that no class is made of, all nodes have."""
        codes = self._labels.get(key)
        return self.everywhere(True) if codes is None else codes >= 0

    def counts(self, counter: Counter) -> Ints:
        """Return each class's count."""
        return self._counts[counter]
