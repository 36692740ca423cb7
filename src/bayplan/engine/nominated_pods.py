"""Which pods count as if they ran on the node they are nominated to, by row: what filtering reads of the nominator.

Thousands of nominations cost nothing while they stand: records of the pods, and their sums per row, are kept and follow the
nominator's changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import structs

from bayplan.engine.nominator import NominatedPod, Nominator
from bayplan.engine.queued_pod import uid_of
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo
from bayplan.state.row_log import RowLog

PRIORITIES_KEPT = 8
"""Sums are kept for so many different priorities of pods that asked."""


class Crowd:
    """The nominated pods that one pod has to count in. To be read before nominations change.

    Args:
        held: bool[capacity], the rows that hold such pods. count: how many these are.
        extra: int64[3 + resources, capacity], what they take there together.
        infos: nominated pods by row, then by uid.
        floor: the lowest priority that counts.
        own: the row that the pod itself is nominated to, its uid and its record; it is in `extra`, and must not count.
    """

    __slots__ = ("_count", "_extra", "_floor", "_held", "_infos", "_own_info", "_own_row", "_own_uid")

    def __init__(
        self,
        held: Bools,
        count: int,
        extra: Ints,
        infos: Mapping[int, Mapping[str, PodInfo]],
        floor: int,
        own: tuple[int, str, PodInfo | None],
    ) -> None:
        self._extra = extra
        self._infos = infos
        self._floor = floor
        self._own_row, self._own_uid, self._own_info = own
        if self._own_info is not None and not self.pods_at(self._own_row):
            held = held.copy()
            count -= held.item(self._own_row)
            held[self._own_row] = False
            self._own_info = None
        self._held = held
        self._count = count

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Index:
        """Return the rows that hold such pods (intp)."""
        return self._held.nonzero()[0]

    @property
    def own_row(self) -> int:
        """Return the row that the pod itself is nominated to; -1: none."""
        return self._own_row

    def places_in(self, rows: Index) -> Index:
        """Return the places within `rows` (intp) of those that hold such pods."""
        places: Index = self._held[rows].nonzero()[0]
        return places

    def pods_at(self, row: int) -> list[PodInfo]:
        """Return the pods that count on a row, oldest nomination first."""
        infos = self._infos.get(row)
        if not infos:
            return []
        return [info for uid, info in infos.items() if info.priority >= self._floor and uid != self._own_uid]

    def extra_on(self, row: int) -> list[int] | None:
        """Return what such pods take on one row, as a column of the usage matrix; None where there are none."""
        if not self._count or not self._held.item(row):
            return None
        extra: list[int] = self._extra[:, row].tolist()
        if self._own_info is not None and row == self._own_row:
            for number, amount in self._own_info.footprint.amounts:
                extra[number] -= amount
        return extra

    def extra_at(self, rows: Index) -> tuple[Index, Ints]:
        """Return the places within `rows` where such pods count, and int64[3 + resources, places] what they take."""
        places = self.places_in(rows)
        chosen = rows[places]
        extra = self._extra[:, chosen]
        if self._own_info is not None:
            vector = self._own_info.footprint.vector
            extra[: len(vector), chosen == self._own_row] -= vector.reshape(-1, 1)
        return places, extra


NOBODY = Crowd(np.zeros(0, dtype=np.bool_), 0, np.zeros((0, 0), dtype=np.int64), {}, 0, (-1, "", None))


class _Sums:
    """What nominated pods of a priority or above take, per row."""

    __slots__ = ("count", "extra", "floor", "held")

    def __init__(self, floor: int, height: int, capacity: int) -> None:
        self.floor = floor
        # How many rows are held.
        self.count = 0
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
        self.count += held - self.held.item(row)
        self.held[row] = held


class NominatedPods:
    """The nominations of a nominator as filtering needs them.

    Args:
        state: the cluster.
        nominator: who is nominated where.
        pods: the newest versions of pods, by key.

    Attributes:
        log: rows whose nominations changed, as far as somebody has asked since. Where nodes changed, all may have.
    """

    def __init__(self, state: ClusterState, nominator: Nominator, pods: Mapping[str, Pod]) -> None:
        self._state = state
        self._nominator = nominator
        self._pods = pods
        self._infos: dict[int, dict[str, PodInfo]] = {}
        self._sums: dict[int, _Sums] = {}
        self._node_position = -1
        self._expected: tuple[Pod, PodInfo] | None = None
        self.log = RowLog()

    def __call__(self, pod: Pod) -> Crowd:
        """Return the nominated pods that count when a pod is filtered: others of at least its priority."""
        if not len(self._nominator) and not self._infos:
            return NOBODY
        self._follow()
        floor = pod.spec.priority or 0
        sums = self._sums_from(floor)
        uid, row = uid_of(pod), self.row_of(pod)
        own = self._infos.get(row, {}).get(uid)
        if own is not None and own.priority < floor:
            own = None
        crowd = Crowd(sums.held, sums.count, sums.extra, self._infos, floor, (row, uid, own))
        return crowd if len(crowd) or row >= 0 else NOBODY

    def expect(self, pod: Pod, info: PodInfo) -> None:
        """Note what is known of a pod that is about to be nominated: it need not be found out again."""
        self._expected = (pod, info)

    def row_of(self, pod: Pod) -> int:
        """Return the row that a pod itself is nominated to; -1: none."""
        node_name = self._nominator.node_by_uid.get(uid_of(pod))
        return self._state.nodes.row_of.get(node_name, -1) if node_name else -1

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
            self.log.append(row)
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
        if known is not None and known.pod is pod:
            return known
        if self._expected is not None and _take_the_same(self._expected[0], pod):
            info = self._expected[1]
            return PodInfo(info.key, pod, info.footprint, info.pod_class, info.priority, info.owned_counters)
        return self._state.pod_info(pod)


def _take_the_same(before: Pod, after: Pod) -> bool:
    """Return whether two versions of one pod are the same in all that its record follows from."""
    old, new = before.metadata, after.metadata
    return (
        before.spec is after.spec
        and old.name == new.name
        and old.namespace == new.namespace
        and old.labels is new.labels
        and (old.deletion_timestamp is None) == (new.deletion_timestamp is None)
        # The status says what a pod takes while it is resized; it differs in the nomination and in conditions.
        and before.status
        == structs.replace(
            after.status, nominated_node_name=before.status.nominated_node_name, conditions=before.status.conditions
        )
    )
