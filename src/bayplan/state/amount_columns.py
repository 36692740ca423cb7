"""CPU and memory of many places as floats, for rules that divide: what places offer, what is taken, and what is free anywhere.

A place is a row of the node table (`bayplan.state.usage_floats`), or a state that rows are in (`bayplan.state.usage_states`).
"""

from __future__ import annotations

import numpy as np

from bayplan.state.arrays import Bools, Floats
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, NON_ZERO_MEMORY, POD_COUNT
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.row_log import RowLog


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

    def _take(self, place: int, amounts: list[int], allowed_pods: int) -> None:
        """Take over what pods take of a place (a column of the usage matrix); what it offers is known."""
        all_cpu, all_memory = self.offered.item(CPU, place), self.offered.item(MEMORY, place)
        cpu, memory = amounts[FIRST_RESOURCE + CPU], amounts[FIRST_RESOURCE + MEMORY]
        self.requested[CPU, place], self.requested[MEMORY, place] = cpu, memory
        least_cpu, least_memory = self.least_free
        if all_cpu - cpu < least_cpu or all_memory - memory < least_memory:
            self.least_free = (min(least_cpu, all_cpu - cpu), min(least_memory, all_memory - memory))
        cpu, memory = amounts[NON_ZERO_CPU], amounts[NON_ZERO_MEMORY]
        self.non_zero[CPU, place], self.non_zero[MEMORY, place] = cpu, memory
        left_cpu, left_memory = 100.0 * (all_cpu - cpu), 100.0 * (all_memory - memory)
        self.hundredfold[CPU, place], self.hundredfold[MEMORY, place] = left_cpu, left_memory
        least_cpu, least_memory = self.least_hundredfold
        if left_cpu < least_cpu or left_memory < least_memory:
            self.least_hundredfold = (min(least_cpu, left_cpu), min(least_memory, left_memory))
        crowded = amounts[POD_COUNT] >= allowed_pods
        if crowded is not self.crowded.item(place):
            self.crowded_count += 1 if crowded else -1
            self.crowded[place] = crowded
        self._sum = None


def _smallest(columns: Floats, count: int) -> tuple[float, float]:
    """Return the smallest of the first so many numbers of both columns, 0 where there are none."""
    if not count:
        return 0.0, 0.0
    return float(columns[CPU, :count].min()), float(columns[MEMORY, :count].min())
