"""Which pods rows are supposed to lack, and which to hold beside their own: what rules that count pods ask in dry runs.

Each row is looked at by itself, as if nothing else in the cluster had changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bayplan.objects.requests import HostPort
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter
from bayplan.state.host_ports import collide
from bayplan.state.pod_info import PodInfo


class PodKinds:
    """Pods that count alike and hold the same ports of their node, as numbers; 0 stands for no pod."""

    __slots__ = ("_examples", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        # Of each kind a pod; classes and counters that keys name by their address are held by it.
        self._examples: list[PodInfo | None] = [None]

    def number(self, info: PodInfo) -> int:
        """Return the number of a pod's kind."""
        key = (id(info.pod_class), tuple(map(id, info.owned_counters)), info.footprint.host_ports)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._examples)
            self._examples.append(info)
        return known

    def counted(self, kinds: Index, counter: Counter) -> Ints:
        """Return int64, shaped as `kinds`, how often a counter counts a pod of each."""
        return self._look_up(kinds, lambda info: count_of(info, counter))

    def colliding(self, kinds: Index, wanted: HostPort) -> Bools:
        """Return bool, shaped as `kinds`, whether a pod of each holds a port that collides with a wanted one."""
        return self._look_up(kinds, lambda info: collides(info, wanted)) > 0

    def _look_up(self, kinds: Index, ask: Callable[[PodInfo], int]) -> Ints:
        found: Ints = np.zeros(len(self._examples), dtype=np.int64)
        for number in np.unique(kinds).tolist():
            example = self._examples[number]
            found[number] = 0 if example is None else ask(example)
        return found[kinds]


def count_of(info: PodInfo, counter: Counter) -> int:
    """Return how often a counter counts a pod: for its class, and for each of its terms."""
    counters = (*info.pod_class.counters, *info.owned_counters)
    return sum(item is counter for item in counters)


def collides(info: PodInfo, wanted: HostPort) -> bool:
    """Return whether a pod holds a port that collides with a wanted one."""
    return any(collide(wanted, port) for port in info.footprint.host_ports)


class SupposedPods:
    """Pods of some rows as they are supposed to be.

    Args:
        state: the cluster.
        index: intp, the rows.
        more: per row pods that are supposed to run there, too; None: nowhere.
        kinds: what the numbers in `present` mean.
        present: intp[slots, rows], the kinds of the pods that are on each row; None where nobody is supposed to be gone.
        gone: bool[slots, rows], who is supposed to be gone. May be changed while this is in use.
    """

    __slots__ = ("_counted", "_index", "_kinds", "_more", "_present", "_state", "gone")

    def __init__(
        self,
        state: ClusterState,
        index: Index,
        more: Sequence[Sequence[PodInfo]] | None = None,
        kinds: PodKinds | None = None,
        present: Index | None = None,
        gone: Bools | None = None,
    ) -> None:
        self._state = state
        self._index = index
        self._more = more
        self._kinds = kinds
        self._present = present
        self.gone = gone
        self._counted: dict[Counter, Ints] = {}

    def count_change(self, counter: Counter) -> Ints:
        """Return int64[rows], by how much each row's own count is another one than it is."""
        change: Ints = np.zeros(len(self._index), dtype=np.int64)
        if self._kinds is not None and self._present is not None and self.gone is not None:
            counted = self._counted.get(counter)
            if counted is None:
                counted = self._counted[counter] = self._kinds.counted(self._present, counter)
            change -= (counted * self.gone).sum(axis=0)
        if self._more is not None:
            added = [sum(count_of(info, counter) for info in infos) for infos in self._more]
            change += np.array(added, dtype=np.int64)
        return change

    def host_port_conflicts(self, wanted: HostPort) -> Bools:
        """Return bool[rows], whether a wanted port collides with one that is then in use.

        No two pods on a row may hold the same port (see `HostPorts`).
        """
        if self._kinds is not None and self._present is not None and self.gone is not None:
            conflicts: Bools = np.any(self._kinds.colliding(self._present, wanted) & ~self.gone, axis=0)
        else:
            conflicts = self._state.host_ports.column(wanted, self._state.nodes.capacity)[self._index]
        if self._more is not None:
            more = [any(collides(info, wanted) for info in infos) for infos in self._more]
            conflicts = conflicts | np.array(more, dtype=np.bool_)
        return conflicts

    def at(self, places: Index, more: Sequence[Sequence[PodInfo]] | None) -> SupposedPods:
        """Return the same of some of the rows (intp, places among them), perhaps with pods that run there, too."""
        present = None if self._present is None else self._present[:, places]
        gone = None if self.gone is None else self.gone[:, places]
        return SupposedPods(self._state, self._index[places], more, self._kinds, present, gone)
