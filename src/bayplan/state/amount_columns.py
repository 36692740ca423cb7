"""CPU and memory of many places as floats, for rules that divide: what places offer, what is taken, and what is free anywhere.

A place is a row of the node table (`bayplan.state.usage_floats`), or a state that rows are in (`bayplan.state.usage_states`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.state.arrays import Bools, Floats
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, NON_ZERO_MEMORY, POD_COUNT
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.row_log import RowLog

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState


class AmountColumns:
    """What is kept of places. Exact while the state is ``small``.

    Attributes, each float64[2, places], of CPU and memory; not to be written to:
        offered: what places offer, 1 where they have nothing.
        requested: what pods request.
        non_zero: the same where containers without requests count with the defaults for scoring.
        hundredfold: 100 times what that leaves of `offered`.
    And:
        crowded: bool[places], places with as many pods as they allow; crowded_count: how many these are.
        least_free, least_hundredfold: of CPU and of memory, no place has less free, and none in `hundredfold` is below.
        log: which places changed. era: moves when they are others than before, and no log tells which.
    """

    __slots__ = (
        "_sum",
        "crowded",
        "crowded_count",
        "era",
        "hundredfold",
        "least_free",
        "least_hundredfold",
        "log",
        "non_zero",
        "offered",
        "requested",
    )

    def __init__(self, log: RowLog) -> None:
        nothing: Floats = np.zeros((2, 0), dtype=np.float64)
        self.offered = self.requested = self.non_zero = self.hundredfold = nothing
        self.crowded: Bools = np.zeros(0, dtype=np.bool_)
        self.crowded_count = 0
        self.least_free = self.least_hundredfold = (0.0, 0.0)
        self.log = log
        self.era = 0
        # What somebody asked for last.
        self._sum: tuple[Floats, Floats] | None = None

    def requested_with(self, requests: Floats, count: int) -> Floats:
        """Return float64[2, count], `requested` of the first places and what a pod (float64[2, 1]) adds.

        Who asks again gets the same array.
        """
        known = self._sum
        if known is None or known[0] is not requests or known[1].shape[1] != count:
            known = self._sum = (requests, self.requested[:, :count] + requests)
        return known[1]

    def _bound(self, count: int) -> None:
        """Find out what is free anywhere in the first so many places, and how many of all are crowded."""
        self.crowded_count = int(np.count_nonzero(self.crowded))
        self.least_free = _smallest(self.offered - self.requested, count)
        self.least_hundredfold = _smallest(self.hundredfold, count)

    def _take_usage(self, place: int, state: ClusterState, row: int) -> None:
        """Take over what pods take of a row; what the place offers is known."""
        usage = state.usage
        all_cpu, all_memory = self.offered.item(CPU, place), self.offered.item(MEMORY, place)
        cpu, memory = usage.item(FIRST_RESOURCE + CPU, row), usage.item(FIRST_RESOURCE + MEMORY, row)
        self.requested[CPU, place], self.requested[MEMORY, place] = cpu, memory
        self.least_free = (min(self.least_free[0], all_cpu - cpu), min(self.least_free[1], all_memory - memory))
        cpu, memory = usage.item(NON_ZERO_CPU, row), usage.item(NON_ZERO_MEMORY, row)
        self.non_zero[CPU, place], self.non_zero[MEMORY, place] = cpu, memory
        left, least = (100.0 * (all_cpu - cpu), 100.0 * (all_memory - memory)), self.least_hundredfold
        self.hundredfold[CPU, place], self.hundredfold[MEMORY, place] = left
        self.least_hundredfold = (min(least[0], left[0]), min(least[1], left[1]))
        crowded = usage.item(POD_COUNT, row) >= state.nodes.allowed_pods.item(row)
        self.crowded_count += crowded - self.crowded.item(place)
        self.crowded[place] = crowded
        self._sum = None


def _smallest(columns: Floats, count: int) -> tuple[float, float]:
    """Return the smallest of the first so many numbers of both columns, 0 where there are none."""
    if not count:
        return 0.0, 0.0
    return float(columns[CPU, :count].min()), float(columns[MEMORY, :count].min())
