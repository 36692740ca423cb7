"""Rows where a cycle found another verdict than the plan keeps, because pods are nominated to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bayplan.state.arrays import Codes, Index


class Overrides(Mapping[int, tuple[int, int]]):
    """(filter, verdict) by row. There may be thousands, so they are columns, and a dictionary only for those who ask for one.

    Attributes:
        rows: intp, ascending. first: intp, the number of the failing filter. verdicts: uint16.
    """

    __slots__ = ("_by_row", "first", "rows", "verdicts")

    def __init__(self, rows: Index, first: Index, verdicts: Codes) -> None:
        self.rows = rows
        self.first = first
        self.verdicts = verdicts
        self._by_row: dict[int, tuple[int, int]] | None = None

    def apply(self, first: Index, verdicts: Codes) -> None:
        """Write them into columns over all rows."""
        first[self.rows] = self.first
        verdicts[self.rows] = self.verdicts

    def _dictionary(self) -> dict[int, tuple[int, int]]:
        if self._by_row is None:
            pairs = zip(self.first.tolist(), self.verdicts.tolist(), strict=True)
            self._by_row = dict(zip(self.rows.tolist(), pairs, strict=True))
        return self._by_row

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self._dictionary())

    def __getitem__(self, row: int) -> tuple[int, int]:
        return self._dictionary()[row]


NO_OVERRIDES = Overrides(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.uint16))
