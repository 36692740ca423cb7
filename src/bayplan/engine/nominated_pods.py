"""The pods that count as if they ran on the node they are nominated to, by row: the nominator as filters see it.

Thousands of unchanged nominations cost little: pod records are cached and updated from the nominator's changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.engine.nominator import NominatedPod, Nominator
from bayplan.engine.queued_pod import uid_of
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo
from bayplan.state.row_log import RowLog


class Crowd:
    """The nominated pods that count for one pod. Valid until nominations change.

    Args:
        infos: nominated pods by row, then by uid; also an attribute.
        floor: the lowest priority that counts; also an attribute.
        own_uid: the uid of the pod itself, which does not count.
        own_row: the row that the pod itself is nominated to, or -1; also an attribute.
    """

    __slots__ = ("_own_uid", "floor", "infos", "own_row")

    def __init__(self, infos: Mapping[int, Mapping[str, PodInfo]], floor: int, own_uid: str, own_row: int) -> None:
        self.infos = infos
        self._own_uid = own_uid
        self.floor = floor
        self.own_row = own_row

    def __bool__(self) -> bool:
        return bool(self.infos)

    @property
    def rows(self) -> Index:
        """Return the rows that hold such pods (intp, ascending)."""
        return np.array(sorted(row for row in self.infos if self.pods_at(row)), dtype=np.intp)

    def pods_at(self, row: int) -> list[PodInfo]:
        """Return the pods that count on a row, oldest nomination first."""
        infos = self.infos.get(row)
        if not infos:
            return []
        return [info for uid, info in infos.items() if info.priority >= self.floor and uid != self._own_uid]


NOBODY = Crowd({}, 0, "", -1)


class NominatedPods:
    """The nominations of a nominator in the form that filtering needs.

    Args:
        state: the cluster.
        nominator: the nominations by node.
        pods: the newest versions of pods, by key.

    Attributes:
        log: rows whose nominations changed, up to the last call. If nodes changed, all may have.
    """

    def __init__(self, state: ClusterState, nominator: Nominator, pods: Mapping[str, Pod]) -> None:
        self._state = state
        self._nominator = nominator
        self._pods = pods
        self._infos: dict[int, dict[str, PodInfo]] = {}
        self._node_position = -1
        self.log = RowLog()

    def __call__(self, pod: Pod) -> Crowd:
        """Return the nominated pods that count when a pod is filtered: other pods of at least its priority."""
        if not len(self._nominator) and not self._infos:
            return NOBODY
        self._follow()
        return Crowd(self._infos, pod.spec.priority or 0, uid_of(pod), self.row_of(pod))

    def row_of(self, pod: Pod) -> int:
        """Return the row that a pod itself is nominated to, or -1."""
        node_name = self._nominator.node_by_uid.get(uid_of(pod))
        return self._state.nodes.row_of.get(node_name, -1) if node_name else -1

    def _follow(self) -> None:
        """Apply the nominator's changes."""
        row_of = self._state.nodes.row_of
        changed = self._nominator.take_changed_nodes()
        if self._node_position != self._state.node_log.end:
            self._node_position = self._state.node_log.end
            self._infos = {}
            changed = list(self._nominator)
        for node_name in changed:
            row = row_of.get(node_name)
            if row is None:
                continue
            old = self._infos.get(row, {})
            self.log.append(row)
            infos = {}
            for nominated in self._nominator.on_node(node_name):
                info = self._info(nominated, old)
                if info is not None:
                    infos[nominated.uid] = info
            self._infos[row] = infos
            if not infos:
                del self._infos[row]

    def _info(self, nominated: NominatedPod, old: Mapping[str, PodInfo]) -> PodInfo | None:
        pod = self._pods.get(nominated.key)
        if pod is None:
            return None
        known = old.get(nominated.uid)
        if known is not None and known.pod is pod:
            return known
        return self._state.pod_info(pod)
