"""Rows grouped by what a few columns say of them: rows of one class look the same to a rule that reads nothing else.

A zone and the number of pods of a kind on a node make some dozens of classes of thousands of nodes. A rule that follows from
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

HEADROOM = 8
"""Counts may grow by so much, or to the double, before classes are numbered anew."""


class RowClasses:
    """The class of every row by some columns, as the nodes are now.

    Args:
        state: the cluster.
        columns: each once.

    Attributes:
        codes: intp[rows in use], the class of each row.
        size: how many classes there are, held or not; 0 where they would be more than `MOST_CLASSES`, and nothing else holds then.
        view: one row for each class.
    """

    __slots__ = ("_base", "_counters", "_state", "codes", "columns", "size", "view")

    def __init__(self, state: ClusterState, columns: Sequence[Column]) -> None:
        self._state = state
        self.columns = tuple(columns)
        count = state.nodes.count
        self._base: Index = np.zeros(count, dtype=np.intp)
        # Of counters: what one pod more adds to the class, and from how many on they must be numbered anew.
        self._counters: list[tuple[Counter, int, int]] = []
        labels: dict[str, tuple[int, int]] = {}
        counts: dict[Counter, tuple[int, int]] = {}
        size = 1
        for column in self.columns:
            if isinstance(column, str):
                names = state.nodes.label_column(column)
                number = len(names.values) + 1
                # Rows without the label come last, as their code picks the last slot of every table.
                self._base += (names.codes[:count] % number) * size
                labels[column] = (size, number)
            else:
                largest = int(column.values[:count].max(initial=0))
                number = largest + max(largest, HEADROOM) + 1
                self._counters.append((column, size, number))
                counts[column] = (size, number)
            size *= number
        self.codes: Index = self._base
        self.size = size if size <= MOST_CLASSES else 0
        if self._counters and self.size:
            self.codes = self._base.copy()
            for counter, stride, _ in self._counters:
                self.codes += counter.values[:count] * stride
        self.view = ClassRows(state, self.size, labels, counts)

    def follow(self, rows: Iterable[int]) -> bool:
        """Bring the classes of rows whose counts may have changed up to date; return False where they must be made anew."""
        for row in rows:
            code = self._base.item(row)
            for counter, stride, limit in self._counters:
                count = counter.values.item(row)
                if count >= limit:
                    return False
                code += count * stride
            self.codes[row] = code
        return True


class ClassRows(Rows):
    """One row for each class. Only the columns that classes are made of can be read."""

    __slots__ = ("_counts", "_labels", "_size")

    def __init__(
        self,
        state: ClusterState,
        size: int,
        labels: dict[str, tuple[int, int]],
        counts: dict[Counter, tuple[int, int]],
    ) -> None:
        # Whoever reads another column gets one without rows, which goes with nothing.
        super().__init__(state, np.zeros(0, dtype=np.intp))
        self._size = size
        numbers = np.arange(size, dtype=np.intp)
        self._labels: dict[str, Index] = {}
        self._counts: dict[Counter, Ints] = {}
        for key, (stride, number) in labels.items():
            codes = numbers // stride % number
            codes[codes == number - 1] = -1
            self._labels[key] = codes
        for counter, (stride, number) in counts.items():
            self._counts[counter] = numbers // stride % number

    def __len__(self) -> int:
        return self._size

    def row_numbers(self) -> Index:
        """Return the numbers of the classes."""
        return np.arange(self._size, dtype=np.intp)

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
