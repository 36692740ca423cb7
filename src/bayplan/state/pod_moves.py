"""Hypothetical moves of pods on and off rows, in the columns and counters that rules read, and their undo.

The logs of changed rows are written only `with_pods`, for rules that examine single pods: else, the state is the same
afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.base import go_arithmetic as go
from bayplan.objects.requests import HostPort
from bayplan.state.columns import Columns
from bayplan.state.pod_info import PodInfo

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState


class PodMoves:
    """Moves of pods on one cluster state; `undo` reverts them, the last one first.

    Args:
        state: the cluster.
        with_pods: whether to change the lists of pods (`ClusterState.pods_on`, `pods`), too, for rules that examine
            single pods.
    """

    def __init__(self, state: ClusterState, *, with_pods: bool) -> None:
        self._state = state
        self._columns = state.columns
        self._host_ports = state.host_ports
        self._with_pods = with_pods
        self._moved: list[PodInfo] = []
        # For each move, the row of an added pod, or (-1 - row) of a removed pod.
        self._rows: list[int] = []
        # By number of the move, the host ports that it marked as used or freed.
        self._ports: dict[int, list[HostPort]] = {}
        self._pods_before: dict[int, dict[str, PodInfo]] = {}

    def add(self, info: PodInfo, row: int) -> None:
        """Add a pod to a row."""
        self._count(info, row, 1)
        if info.footprint.host_ports:
            self._ports[len(self._moved)] = self._host_ports.add(row, info.footprint.host_ports)
        if self._with_pods:
            self._keep_order(row)
            info.row = row
            self._state.pods[info.key] = info
            self._state.pods_on[row][info.key] = info
        self._moved.append(info)
        self._rows.append(row)

    def remove(self, info: PodInfo, row: int) -> None:
        """Remove a pod from its row."""
        self._count(info, row, -1)
        if info.footprint.host_ports:
            self._ports[len(self._moved)] = self._host_ports.remove(row, info.footprint.host_ports)
        if self._with_pods:
            self._keep_order(row)
            del self._state.pods[info.key]
            del self._state.pods_on[row][info.key]
        self._moved.append(info)
        self._rows.append(-1 - row)

    def undo(self, length: int = 0) -> None:
        """Undo all moves except the first `length`."""
        while len(self._moved) > length:
            info, moved_to = self._moved.pop(), self._rows.pop()
            row = moved_to if moved_to >= 0 else -1 - moved_to
            self._count(info, row, -1 if moved_to >= 0 else 1)
            if self._ports:
                self._move_ports_back(len(self._moved), row, moved_to >= 0)
            if self._with_pods:
                if moved_to >= 0:
                    del self._state.pods[info.key]
                    del self._state.pods_on[row][info.key]
                else:
                    self._state.pods[info.key] = info
                    self._state.pods_on[row][info.key] = info
        if length == 0 and self._pods_before:
            # The order of pods on a row is that of their addition, and breaks ties, so restore it, too.
            for changed, pods in self._pods_before.items():
                self._state.pods_on[changed] = pods
            self._pods_before = {}

    def __len__(self) -> int:
        return len(self._moved)

    def _count(self, info: PodInfo, row: int, count: int) -> None:
        if self._with_pods:
            self._state.usage_log.append(row)
        count_pod(self._columns, info, row, count)

    def _move_ports_back(self, number: int, row: int, added: bool) -> None:
        ports = self._ports.pop(number, None)
        if ports:
            if added:
                self._host_ports.remove(row, ports)
            else:
                self._host_ports.add(row, tuple(ports))

    def _keep_order(self, row: int) -> None:
        if row not in self._pods_before:
            self._pods_before[row] = self._state.pods_on[row]
            self._state.pods_on[row] = dict(self._state.pods_on[row])


def count_pod(columns: Columns, info: PodInfo, row: int, count: int) -> None:
    """Add (1) or remove (-1) a pod on a row, in the columns and counters that rules read."""
    entries, usage = info.footprint.entries, columns.usage
    for index in range(entries.shape[1]):
        number = entries[0, index]
        usage[number, row] = go.add(usage[number, row], go.mul(count, entries[1, index]))
    counters = info.pod_class.counters
    for number in range(len(counters)):
        counter = counters[number]
        counter.add(row, count)
    for counter in info.owned_counters:
        counter.add(row, count)
    if counters or info.owned_counters:
        columns.counted += 1
