"""What is taken and free of CPU and memory as floats: columns for rules that divide, kept from one full pass to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.state.arrays import Bools, Floats
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, NON_ZERO_MEMORY, POD_COUNT
from bayplan.state.resource_table import CPU, MEMORY

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState

FEW_ROWS = 64
"""Up to here rows that changed are copied one by one; more of them, all at once."""

REQUESTED = slice(FIRST_RESOURCE, FIRST_RESOURCE + 2)
NON_ZERO = slice(NON_ZERO_CPU, NON_ZERO_CPU + 2)
"""Rows of CPU and memory in the usage matrix."""


class UsageFloats:
    """Follows the usage of a cluster. Exact while the state is ``small``.

    Attributes, each float64[2, capacity], of CPU and memory, as of the last `follow`; not to be written to:
        offered: what nodes offer, 1 where they have nothing.
        requested: what pods request.
        non_zero: the same where containers without requests count with the defaults for scoring.
        hundredfold: 100 times what that leaves of `offered`.
    And:
        crowded: bool[capacity], nodes with as many pods as they allow; crowded_count: how many these are.
        least_free, least_hundredfold: of CPU and of memory, no node has less free, and no row of `hundredfold` is below.
    """

    __slots__ = (
        "_node_position",
        "_state",
        "_sum",
        "_usage_position",
        "crowded",
        "crowded_count",
        "hundredfold",
        "least_free",
        "least_hundredfold",
        "non_zero",
        "offered",
        "requested",
    )

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._node_position = self._usage_position = -1
        nothing: Floats = np.zeros((2, 0), dtype=np.float64)
        self.offered = self.requested = self.non_zero = self.hundredfold = nothing
        self.crowded: Bools = np.zeros(0, dtype=np.bool_)
        self.crowded_count = 0
        self.least_free = self.least_hundredfold = (0.0, 0.0)
        # What somebody asked for last.
        self._sum: tuple[Floats, Floats] | None = None

    def follow(self) -> UsageFloats:
        """Bring the columns up to date with the usage matrix; return this object."""
        state = self._state
        end = state.usage_log.end
        if self._usage_position == end and self._node_position == state.node_log.end:
            return self
        rows = state.usage_log.since(self._usage_position)
        self._sum = None
        if (
            rows is None
            or len(rows) > FEW_ROWS
            or self._node_position != state.node_log.end
            or self.offered.shape[1] != state.usage.shape[1]
        ):
            self.offered = state.nodes.divisors[:2].copy()
            self.requested = state.usage[REQUESTED].astype(np.float64)
            self.non_zero = state.usage[NON_ZERO].astype(np.float64)
            self.hundredfold = 100.0 * (self.offered - self.non_zero)
            self.crowded = (state.usage[POD_COUNT] >= state.nodes.allowed_pods) & state.nodes.alive
            self.crowded_count = int(np.count_nonzero(self.crowded))
            self.least_free = _smallest(self.offered - self.requested, state.nodes.count)
            self.least_hundredfold = _smallest(self.hundredfold, state.nodes.count)
        else:
            for row in rows:
                self._take(row)
        self._usage_position, self._node_position = end, state.node_log.end
        return self

    def _take(self, row: int) -> None:
        usage = self._state.usage
        all_cpu, all_memory = self.offered.item(CPU, row), self.offered.item(MEMORY, row)
        cpu, memory = usage.item(FIRST_RESOURCE + CPU, row), usage.item(FIRST_RESOURCE + MEMORY, row)
        self.requested[CPU, row], self.requested[MEMORY, row] = cpu, memory
        self.least_free = (min(self.least_free[0], all_cpu - cpu), min(self.least_free[1], all_memory - memory))
        cpu, memory = usage.item(NON_ZERO_CPU, row), usage.item(NON_ZERO_MEMORY, row)
        self.non_zero[CPU, row], self.non_zero[MEMORY, row] = cpu, memory
        left, least = (100.0 * (all_cpu - cpu), 100.0 * (all_memory - memory)), self.least_hundredfold
        self.hundredfold[CPU, row], self.hundredfold[MEMORY, row] = left
        self.least_hundredfold = (min(least[0], left[0]), min(least[1], left[1]))
        crowded = usage.item(POD_COUNT, row) >= self._state.nodes.allowed_pods.item(row)
        self.crowded_count += crowded - self.crowded.item(row)
        self.crowded[row] = crowded

    def requested_with(self, requests: Floats) -> Floats:
        """Return float64[2, capacity], `requested` and what a pod (float64[2, 1]) adds; the same array for who asks again."""
        self.follow()
        known = self._sum
        if known is None or known[0] is not requests:
            known = self._sum = (requests, self.requested + requests)
        return known[1]


def _smallest(columns: Floats, count: int) -> tuple[float, float]:
    """Return the smallest of the first so many numbers of both columns, 0 where there are none."""
    if not count:
        return 0.0, 0.0
    return float(columns[CPU, :count].min()), float(columns[MEMORY, :count].min())
