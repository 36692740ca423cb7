"""One label key as a column of value codes: a selector becomes a table look-up, a topology key an index."""

import numpy as np

from bayplan.objects.selectors import Requirement
from bayplan.state.arrays import Bools, Index

ABSENT = -1
"""The code of a row that lacks the key. As an index it selects the last element, which tables reserve for such rows."""


class LabelColumn:
    """The values of one label key on all nodes.

    Attributes:
        key: the label key.
        codes: intp[capacity], by row the index in `values`, or `ABSENT`.
        values: the distinct values, in the order of their first occurrence.
        index: the index in `values` of each value.
    """

    __slots__ = ("_tables", "codes", "index", "key", "values")

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.codes: Index = np.full(capacity, ABSENT, dtype=np.intp)
        self.values: list[str] = []
        self.index: dict[str, int] = {}
        self._tables: dict[Requirement, Bools] = {}

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        grown = np.full(capacity, ABSENT, dtype=np.intp)
        grown[: len(self.codes)] = self.codes
        self.codes = grown

    def set(self, row: int, value: str | None) -> None:
        """Set the value of one node; None if the node lacks the key."""
        if value is None:
            self.codes[row] = ABSENT
            return
        code = self.index.get(value)
        if code is None:
            code = self.index[value] = len(self.values)
            self.values.append(value)
        self.codes[row] = code

    def table(self, requirement: Requirement) -> Bools:
        """Return which values meet a requirement: bool[len(values) + 1], the last for nodes without the key."""
        table = self._tables.get(requirement)
        if table is None or len(table) != len(self.values) + 1:
            known = 0 if table is None else len(table) - 1
            grown = np.empty(len(self.values) + 1, dtype=np.bool_)
            if table is not None:
                grown[:known] = table[:known]
            grown[known:-1] = [requirement.matches_value(value) for value in self.values[known:]]
            grown[-1] = requirement.matches_value(None)
            table = self._tables[requirement] = grown
        return table

    def copy(self) -> "LabelColumn":
        """Return an independent copy."""
        other = LabelColumn(self.key, 0)
        other.codes = self.codes.copy()
        other.values = self.values.copy()
        other.index = self.index.copy()
        return other
