"""Rows as they would be if pods came or left: the view behind nominated pods and dry runs of preemption."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.objects.requests import HostPort
from bayplan.state.arrays import Bools, Floats, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, POD_COUNT
from bayplan.state.supposed_pods import SupposedPods
from bayplan.state.views import NON_ZERO_CPU_MEMORY, REQUESTED_CPU_MEMORY, Row, Rows


class HypotheticalRows(Rows):
    """Rows of an index with usage that is not the cluster's own.

    Only what pods take is supposed (`Reads.USAGE`), and with `pods` which ports they hold (`Reads.PORTS`); all else is as it is.

    Args:
        state: the cluster.
        index: intp row numbers.
        usage: int64[3 + resources, rows], columns of the usage matrix. May be changed while the view is in use.
        pods: the pods that it is of; None where nobody asks for more than usage.
    """

    __slots__ = ("_allocatable", "_allowed_pods", "pods", "usage")

    def __init__(self, state: ClusterState, index: Index, usage: Ints, pods: SupposedPods | None = None) -> None:
        super().__init__(state, index)
        self.usage = usage
        self.pods = pods
        self._allocatable: dict[int, Ints] = {}
        self._allowed_pods: Ints | None = None

    def allocatable(self, resource: int) -> Ints:
        """Return what nodes offer of a resource; gathered once."""
        found = self._allocatable.get(resource)
        if found is None:
            found = self._allocatable[resource] = self.state.nodes.allocatable[resource][self._all]
        return found

    def allowed_pods(self) -> Ints:
        """Return the number of pods that each node allows; gathered once."""
        if self._allowed_pods is None:
            self._allowed_pods = self.state.nodes.allowed_pods[self._all]
        return self._allowed_pods

    def requested(self, resource: int) -> Ints:
        """Return the supposed requests for a resource."""
        column: Ints = self.usage[FIRST_RESOURCE + resource]
        return column

    def non_zero_requested(self, resource: int) -> Ints:
        """Return the supposed requests for scoring of cpu (0) or memory (1)."""
        column: Ints = self.usage[NON_ZERO_CPU + resource]
        return column

    def cpu_memory_requested(self) -> Floats:
        """Return the supposed requests of cpu and memory."""
        return self.usage[REQUESTED_CPU_MEMORY].astype(np.float64)

    def cpu_memory_non_zero_requested(self) -> Floats:
        """Return the supposed requests for scoring."""
        return self.usage[NON_ZERO_CPU_MEMORY].astype(np.float64)

    def cpu_memory_hundredfold(self) -> Floats:
        """Return 100 times what the supposed requests for scoring leave."""
        return 100.0 * (self.cpu_memory_divisors() - self.usage[NON_ZERO_CPU_MEMORY])

    def count_change(self, counter: Counter) -> Ints:
        """Return by how much each row's own count of a counter is supposed to be another one than it is."""
        assert self.pods is not None
        return self.pods.count_change(counter)

    def host_port_conflicts(self, wanted: HostPort) -> Bools:
        """Return on which rows a port collides with one that is supposed to be in use."""
        return super().host_port_conflicts(wanted) if self.pods is None else self.pods.host_port_conflicts(wanted)

    def crowded(self) -> Bools:
        """Return which nodes have as many pods as they allow."""
        return self.pod_count() >= self.allowed_pods()

    def pod_count(self) -> Ints:
        """Return the supposed number of pods."""
        column: Ints = self.usage[POD_COUNT]
        return column


class HypotheticalRow(Row):
    """One row with usage that is not the cluster's own, as plain Python numbers; only for amounts that are small.

    Attributes:
        usage: one column of the usage matrix, as a list.
    """

    __slots__ = ("usage",)

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.usage: list[int] = []

    def requested(self, resource: int) -> Any:
        """Return the supposed requests for a resource."""
        return self.usage[FIRST_RESOURCE + resource]

    def non_zero_requested(self, resource: int) -> Any:
        """Return the supposed requests for scoring of cpu (0) or memory (1)."""
        return self.usage[NON_ZERO_CPU + resource]

    def pod_count(self) -> Any:
        """Return the supposed number of pods."""
        return self.usage[POD_COUNT]
