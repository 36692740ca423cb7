"""Which pods count as if they ran on the node they are nominated to, by row: what filtering reads of the nominator.

Thousands of nominations cost nothing while they stand: records of the pods, and their sums per row, are kept and follow the
nominator's changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.engine.nominator import NominatedPod, Nominator
from bayplan.engine.queued_pod import uid_of
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo

PRIORITIES_KEPT = 8
"""Sums are kept for so many different priorities of pods that asked."""


class Crowd:
    """The nominated pods that one pod has to count in.

    Attributes:
        rows: intp, ascending, the rows that hold such pods.
        extra: int64[3 + resources, rows], what they take there together.
    """

    __slots__ = ("_floor", "_infos", "_own_uid", "extra", "rows")

    def __init__(
        self, rows: Index, extra: Ints, infos: Mapping[int, Mapping[str, PodInfo]], floor: int, own_uid: str
    ) -> None:
        self.rows = rows
        self.extra = extra
        self._infos = infos
        self._floor = floor
        self._own_uid = own_uid

    def __len__(self) -> int:
        return len(self.rows)

    def pods_at(self, row: int) -> list[PodInfo]:
        """Return the pods that count on a row, oldest nomination first."""
        infos = self._infos.get(row)
        if not infos:
            return []
        return [info for uid, info in infos.items() if info.priority >= self._floor and uid != self._own_uid]

    def extra_at(self, rows: Index) -> tuple[Index, Ints]:
        """Return the places within `rows` where such pods count, and int64[3 + resources, places] what they take."""
        if not len(self.rows):
            return self.rows, self.extra
        found = np.searchsorted(self.rows, rows)
        found[found == len(self.rows)] = 0
        places: Index = np.flatnonzero(self.rows[found] == rows)
        return places, self.extra[:, found[places]]


NOBODY = Crowd(np.zeros(0, dtype=np.intp), np.zeros((0, 0), dtype=np.int64), {}, 0, "")


class _Sums:
    """What nominated pods of a priority or above take, per row."""

    __slots__ = ("extra", "floor", "held")

    def __init__(self, floor: int, height: int, capacity: int) -> None:
        self.floor = floor
        self.held: Bools = np.zeros(capacity, dtype=np.bool_)
        self.extra: Ints = np.zeros((height, capacity), dtype=np.int64)

    def fill(self, row: int, infos: Mapping[str, PodInfo]) -> None:
        """Sum one row up anew."""
        column = self.extra[:, row]
        column[:] = 0
        held = False
        for info in infos.values():
            if info.priority >= self.floor:
                vector = info.footprint.vector
                column[: len(vector)] += vector
                held = True
        self.held[row] = held


class NominatedPods:
    """The nominations of a nominator as filtering needs them.

    Args:
        state: the cluster.
        nominator: who is nominated where.
        pods: the newest versions of pods, by key.
    """

    def __init__(self, state: ClusterState, nominator: Nominator, pods: Mapping[str, Pod]) -> None:
        self._state = state
        self._nominator = nominator
        self._pods = pods
        self._infos: dict[int, dict[str, PodInfo]] = {}
        self._sums: dict[int, _Sums] = {}
        self._node_position = -1

    def __call__(self, pod: Pod) -> Crowd:
        """Return the nominated pods that count when a pod is filtered: others of at least its priority."""
        if not len(self._nominator):
            return NOBODY
        self._follow()
        floor = pod.spec.priority or 0
        sums = self._sums_from(floor)
        rows: Index = np.flatnonzero(sums.held)
        if not len(rows):
            return NOBODY
        extra = sums.extra[:, rows]
        uid = uid_of(pod)
        node_name = self._nominator.node_by_uid.get(uid)
        if node_name:
            rows, extra = self._without(uid, self._state.nodes.row_of.get(node_name, -1), floor, rows, extra)
        return Crowd(rows, extra, self._infos, floor, uid)

    def _without(self, uid: str, row: int, floor: int, rows: Index, extra: Ints) -> tuple[Index, Ints]:
        """Take a pod's own nomination out."""
        own = self._infos.get(row, {}).get(uid)
        if own is None or own.priority < floor:
            return rows, extra
        place = int(np.searchsorted(rows, row))
        if all(other == uid or info.priority < floor for other, info in self._infos[row].items()):
            return np.delete(rows, place), np.delete(extra, place, axis=1)
        vector = own.footprint.vector
        extra[: len(vector), place] -= vector
        return rows, extra

    def _sums_from(self, floor: int) -> _Sums:
        height, capacity = self._state.usage.shape
        sums = self._sums.get(floor)
        if sums is None or sums.extra.shape != (height, capacity):
            if len(self._sums) >= PRIORITIES_KEPT:
                del self._sums[next(iter(self._sums))]
            sums = self._sums[floor] = _Sums(floor, height, capacity)
            for row, infos in self._infos.items():
                sums.fill(row, infos)
        return sums

    def _follow(self) -> None:
        """Take over what changed in the nominator."""
        row_of = self._state.nodes.row_of
        changed = self._nominator.take_changed_nodes()
        if self._node_position != self._state.node_log.end:
            self._node_position = self._state.node_log.end
            self._infos = {}
            self._sums = {}
            changed = list(self._nominator)
        for node_name in changed:
            row = row_of.get(node_name)
            if row is None:
                continue
            old = self._infos.get(row, {})
            infos = {}
            for nominated in self._nominator.on_node(node_name):
                info = self._info(nominated, old)
                if info is not None:
                    infos[nominated.uid] = info
            self._infos[row] = infos
            for sums in self._sums.values():
                if sums.extra.shape == self._state.usage.shape:
                    sums.fill(row, infos)
            if not infos:
                del self._infos[row]

    def _info(self, nominated: NominatedPod, old: Mapping[str, PodInfo]) -> PodInfo | None:
        pod = self._pods.get(nominated.key)
        if pod is None:
            return None
        known = old.get(nominated.uid)
        return known if known is not None and known.pod is pod else self._state.pod_info(pod)
