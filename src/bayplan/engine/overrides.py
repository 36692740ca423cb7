"""Rows where a cycle found another verdict than the plan keeps, because pods are nominated to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bayplan.state.arrays import Codes, Index


class Overrides(Mapping[int, tuple[int, int]]):
    """(filter, verdict) by row. There may be thousands, so they are columns, and a dictionary only for those who ask for one.

    Args:
        find: returns rows (intp, ascending), the number of the filter that fails on each (intp), and its verdict (uint16). Asked
            when somebody reads them: before the cluster changes.
    """

    __slots__ = ("_by_row", "_columns", "_find")

    def __init__(self, find: Callable[[], tuple[Index, Index, Codes]]) -> None:
        self._find = find
        self._columns: tuple[Index, Index, Codes] | None = None
        self._by_row: dict[int, tuple[int, int]] | None = None

    @classmethod
    def of(cls, rows: Index, first: Index, verdicts: Codes) -> Overrides:
        """Return overrides that are known already."""
        return cls(lambda: (rows, first, verdicts))

    def _found(self) -> tuple[Index, Index, Codes]:
        if self._columns is None:
            self._columns = self._find()
        return self._columns

    def apply(self, first: Index, verdicts: Codes) -> None:
        """Write them into columns over all rows."""
        rows, numbers, codes = self._found()
        first[rows] = numbers
        verdicts[rows] = codes

    def _dictionary(self) -> dict[int, tuple[int, int]]:
        if self._by_row is None:
            rows, numbers, codes = self._found()
            pairs = zip(numbers.tolist(), codes.tolist(), strict=True)
            self._by_row = dict(zip(rows.tolist(), pairs, strict=True))
        return self._by_row

    def __len__(self) -> int:
        return len(self._found()[0])

    def __iter__(self) -> Iterator[int]:
        return iter(self._dictionary())

    def __getitem__(self, row: int) -> tuple[int, int]:
        return self._dictionary()[row]


NO_OVERRIDES = Overrides.of(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.uint16))
