"""The pods of every node as columns, the least important first: what dry runs over many nodes at once are made of.

One table serves preemptors of every priority: the pods that one of them may evict are the first so many of each node. It follows
the logs of changed rows, so that between two preemptions only the nodes that the first one touched are sorted again.
"""

from __future__ import annotations

import numpy as np

from bayplan.framework.preemption.importance import importance, start_time_ns
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import Footprint, PodInfo
from bayplan.state.supposed_pods import PodKinds

NO_POD = np.iinfo(np.int64).max
"""The priority in slots without a pod: nothing can preempt it."""

FIRST_SLOTS = 8

MOST_CELLS = 1 << 23
"""A table with more slots than this is not made; such clusters are dry-run node by node."""


class VictimTable:
    """Pods by slot and row.

    Args:
        state: the cluster.

    Attributes:
        priorities: int64[slots, capacity], ascending along slots.
        starts: int64[slots, capacity], start times in nanoseconds.
        footprints: intp[slots, capacity], numbers of columns of `amounts`.
        amounts: int64[3 + resources, footprints]; column 0 is of nothing.
        kinds: intp[slots, capacity], what `pod_kinds` says of them.
        shares_ports: bool[capacity], rows where two pods hold the same port.
        pods: per row its pods, in the order of slots.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._usage_position = -1
        self._pod_position = -1
        self._numbers: dict[int, tuple[Footprint, int]] = {}
        self._count = 1
        self.pod_kinds = PodKinds()
        self.pods: list[list[PodInfo]] = []
        self.amounts: Ints = np.zeros((0, 0), dtype=np.int64)
        self._shape(FIRST_SLOTS)

    def _shape(self, slots: int) -> None:
        """Start anew with so many slots."""
        capacity = self._state.nodes.capacity
        self.priorities: Ints = np.full((slots, capacity), NO_POD, dtype=np.int64)
        self.starts: Ints = np.zeros((slots, capacity), dtype=np.int64)
        self.footprints: Index = np.zeros((slots, capacity), dtype=np.intp)
        self.kinds: Index = np.zeros((slots, capacity), dtype=np.intp)
        self.shares_ports: Bools = np.zeros(capacity, dtype=np.bool_)
        self.pods = [[] for _ in range(capacity)]
        self._usage_position = self._pod_position = -1

    def refresh(self) -> bool:
        """Bring the table up to date; return False where it would be too large."""
        state = self._state
        if self.priorities.shape[1] != state.nodes.capacity:
            self._shape(len(self.priorities))
        if self.amounts.shape[0] != state.usage.shape[0] or self._count > 2 * len(state.pods) + 1024:
            # Resources came, or most footprints are of pods long gone.
            self._numbers, self._count = {}, 1
            self.amounts = np.zeros((state.usage.shape[0], 256), dtype=np.int64)
            self._usage_position = -1
        usage, touched = state.usage_log.since(self._usage_position), state.pod_log.since(self._pod_position)
        if self._usage_position < 0 or usage is None or touched is None:
            rows = list(range(state.nodes.count))
        else:
            rows = list(dict.fromkeys((*usage, *touched)))
        most = max((len(state.pods_on[row]) for row in rows), default=0)
        if most > len(self.priorities):
            slots = max(most, 2 * len(self.priorities))
            if most * state.nodes.capacity > MOST_CELLS:
                return False
            self._shape(min(slots, max(most, MOST_CELLS // state.nodes.capacity)))
            rows = list(range(state.nodes.count))
        for row in rows:
            self._fill(row)
        self._usage_position, self._pod_position = state.usage_log.end, state.pod_log.end
        return True

    def _fill(self, row: int) -> None:
        pods = sorted(self._state.pods_on[row].values(), key=importance)
        pods.reverse()
        before = len(self.pods[row])
        self.pods[row] = pods
        for slot, info in enumerate(pods):
            self.priorities[slot, row] = info.priority
            self.starts[slot, row] = start_time_ns(info.pod)
            self.footprints[slot, row] = self._number(info.footprint)
            self.kinds[slot, row] = self.pod_kinds.number(info)
        held = sum(len(info.footprint.host_ports) for info in pods)
        self.shares_ports[row] = held > 0 and held != len(self._state.host_ports.used(row))
        if before > len(pods):
            self.priorities[len(pods) : before, row] = NO_POD
            self.footprints[len(pods) : before, row] = 0
            self.kinds[len(pods) : before, row] = 0

    def _number(self, footprint: Footprint) -> int:
        known = self._numbers.get(id(footprint))
        if known is None:
            if self._count == self.amounts.shape[1]:
                grown = np.zeros((self.amounts.shape[0], 2 * self._count), dtype=np.int64)
                grown[:, : self._count] = self.amounts
                self.amounts = grown
            self.amounts[: len(footprint.vector), self._count] = footprint.vector
            # The footprint is held, so that its address is not given to another one.
            known = self._numbers[id(footprint)] = (footprint, self._count)
            self._count += 1
        return known[1]
