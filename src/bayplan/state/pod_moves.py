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
        # For each move, the pod, the row, 1 if the pod was added or -1, and the host ports in use before if they changed.
        self._moves: list[tuple[PodInfo, int, int, list[HostPort] | None]] = []
        self._pods_before: dict[int, dict[str, PodInfo]] = {}

    def add(self, info: PodInfo, row: int) -> None:
        """Add a pod to a row."""
        self._move(info, row, 1)

    def remove(self, info: PodInfo, row: int) -> None:
        """Remove a pod from its row."""
        self._move(info, row, -1)

    def _move(self, info: PodInfo, row: int, sign: int) -> None:
        ports, used = info.footprint.host_ports, None
        if ports:
            used = self._host_ports.used(row)
            change = self._host_ports.add if sign > 0 else self._host_ports.remove
            change(row, ports)
        if self._with_pods and row not in self._pods_before:
            self._pods_before[row] = self._state.pods_on[row]
            self._state.pods_on[row] = dict(self._state.pods_on[row])
        self._apply(info, row, sign)
        self._moves.append((info, row, sign, used))

    def undo(self, length: int = 0) -> None:
        """Undo all moves except the first `length`."""
        while len(self._moves) > length:
            info, row, sign, used = self._moves.pop()
            self._apply(info, row, -sign)
            if used is not None:
                self._host_ports.restore(row, used)
        if length == 0 and self._pods_before:
            # The order of pods on a row is that of their addition, and breaks ties, so restore it, too.
            for changed, pods in self._pods_before.items():
                self._state.pods_on[changed] = pods
            self._pods_before = {}

    def __len__(self) -> int:
        return len(self._moves)

    def _apply(self, info: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod, without its host ports."""
        if self._with_pods:
            self._state.shift(info, row, sign)
        else:
            count_pod(self._columns, info, row, sign)


def count_pod(columns: Columns, info: PodInfo, row: int, sign: int) -> None:
    """Add (1) or remove (-1) a pod on a row, in the columns and counters that rules read."""
    entries, usage = info.footprint.entries, columns.usage
    for index in range(entries.shape[1]):
        number = entries[0, index]
        usage[number, row] = go.add(usage[number, row], go.mul(sign, entries[1, index]))
    for counter in info.pod_class.counters:
        counter.add(row, sign)
    for counter in info.owned_counters:
        counter.add(row, sign)
    if info.pod_class.counters or info.owned_counters:
        columns.counted += 1
