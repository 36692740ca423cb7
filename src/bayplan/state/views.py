"""Views of rows, for plugins that return arrays.

A plugin uses NumPy, except where ``//``, ``round`` or ``astype`` would differ from Go: the view's `quotient` and
`trunc` compute as Go does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayplan.state.arrays import Bools, Codes, Floats, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT


class Rows:
    """The columns of some rows as arrays.

    Args:
        state: the cluster.
        index: intp, the row numbers, or None for all rows in use. These include freed rows, which the caller must mask.
    """

    __slots__ = ("_all", "index", "state")

    def __init__(self, state: ClusterState, index: Index | None = None) -> None:
        self.state = state
        self.index = index
        self._all: slice | Index = slice(0, state.nodes.count) if index is None else index

    def __len__(self) -> int:
        return self.state.nodes.count if self.index is None else len(self.index)

    # Columns.

    def row_numbers(self) -> Index:
        """Return the row numbers of this view."""
        return np.arange(self.state.nodes.count, dtype=np.intp) if self.index is None else self.index

    def select(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the elements of these rows in an array with an element for every row."""
        return column[self._all]

    def allocatable(self, resource: int) -> Ints:
        """Return the allocatable amounts of a resource (milli for cpu)."""
        return self.state.nodes.allocatable[resource, self._all]

    def requested(self, resource: int) -> Ints:
        """Return the sums of the requests for a resource of the pods on each node."""
        return self.state.usage[FIRST_RESOURCE + resource, self._all]

    def pod_count(self) -> Ints:
        """Return the number of pods on each node."""
        return self.state.usage[POD_COUNT, self._all]

    def allowed_pods(self) -> Ints:
        """Return the number of pods that each node allows."""
        return self.state.nodes.allowed_pods[self._all]

    def unschedulable(self) -> Bools:
        """Return which nodes are cordoned (bool)."""
        return self.state.nodes.unschedulable[self._all]

    def taints(self) -> Index:
        """Return each node's index in ``state.nodes.taint_sets``."""
        return self.state.nodes.taint_codes[self._all]

    def label(self, key: str) -> Index:
        """Return each node's code in the column of a label key; -1 if it lacks the key."""
        return self.state.nodes.label_column(key).codes[self._all]

    # Arithmetic as in Go.

    def quotient(self, dividend: Ints, divisor: Ints | int) -> Ints:
        """Return quotients of integers, truncated towards zero as in Go. The divisor must not be 0.

        If the state is ``small``, dividend and divisor must be below 2^53.
        """
        if self.state.small:
            # Both are exact in float64, and so is the truncated quotient.
            return np.true_divide(dividend, divisor).astype(np.int64)
        with np.errstate(over="ignore"):
            quotient: Ints = np.floor_divide(dividend, divisor)
        inexact = quotient * divisor != dividend
        quotient += inexact & ((np.asarray(dividend) < 0) != (np.asarray(divisor) < 0))
        return quotient

    def everywhere(self, condition: bool) -> Bools:
        """Return a bool array with the same value for every row."""
        return np.full(len(self), condition, dtype=np.bool_)

    def verdicts(self, *cases: tuple[Bools, int]) -> Codes:
        """Return for each row the bitwise OR of the verdicts of all cases whose condition is true for it."""
        union = np.zeros(len(self), dtype=np.uint16)
        for condition, verdict in cases:
            union |= condition * np.uint16(verdict)
        return union

    def trunc(self, values: Floats) -> Ints:
        """Return float64 values as integers, truncated towards zero, like Go's int64() on amd64."""
        if self.state.small:
            return values.astype(np.int64)
        fits = np.abs(values) < 2.0**63
        return np.where(fits, np.where(fits, values, 0.0).astype(np.int64), np.iinfo(np.int64).min)
