"""Nominations: the pods that preemption (or their status) has nominated to a node, before they run there.

Filters see them by row, as if they already ran on their nominated node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo, counts_the_same
from bayplan.state.row_log import RowLog

PodLister: TypeAlias = Callable[[str], Pod | None]
"""The cluster's newest version of the pod ``namespace/name``, or None: what upstream's informer cache holds."""


class Nominator:
    """Nominations by node, in the order in which they were made. A pod has at most one nomination.

    Attributes:
        node_by_uid: the node that each nominated pod is nominated to; read-only for callers.
    """

    def __init__(self, pod_lister: PodLister) -> None:
        self._pod_lister = pod_lister
        self.node_by_uid: dict[str, str] = {}
        self._by_node: dict[str, dict[str, str]] = {}
        self._changed: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        """Yield the nodes that have nominated pods."""
        return iter(self._by_node)

    def on_node(self, node_name: str) -> Mapping[str, str]:
        """Return the keys of the pods nominated to a node, by uid, oldest nomination first. Valid until a change."""
        return self._by_node.get(node_name, {})

    def take_changed_nodes(self) -> list[str]:
        """Return the nodes whose nominations changed since the last call, each once. There must be only one reader."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def add(self, pod: Pod, nominated_node_name: str | None = None) -> None:
        """Nominate a pod, replacing its nomination: to the given node or, if None, to the node in its status, if any.

        A pod that the lister does not know, or knows as assigned, is not nominated. The name "" clears a nomination; as
        upstream does, the pod is then stored under the node `""`, which no node is called.
        """
        self.remove(uid_of(pod))
        node_name = pod.status.nominated_node_name if nominated_node_name is None else nominated_node_name
        if nominated_node_name is None and not node_name:
            return
        key = key_of(pod)
        known = self._pod_lister(key)
        if known is None or known.spec.node_name:
            return
        uid = uid_of(pod)
        self.node_by_uid[uid] = node_name
        self._changed[node_name] = None
        self._by_node.setdefault(node_name, {})[uid] = key

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod by its new version; it moves to the end of the list.

        If neither version names a node, the update may have arrived after this scheduler nominated the pod: the
        nomination stays.
        """
        own = not old.status.nominated_node_name and not new.status.nominated_node_name
        node_name = self.node_by_uid.get(uid_of(old)) if own else None
        self.remove(uid_of(old))
        self.add(new, node_name)

    def remove(self, uid: str) -> None:
        """Remove the nomination of a pod, if it has one."""
        node_name = self.node_by_uid.pop(uid, None)
        if node_name is None:
            return
        self._changed[node_name] = None
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]


class NominatedPods:
    """The nominated pods that count for one pod. Valid until nominations change.

    Args:
        infos: nominated pods by row, then by uid; also an attribute.
        floor: the lowest priority that counts; also an attribute.
        own_uid: the uid of the pod itself, which does not count.
        own_row: the row that the pod itself is nominated to, or -1; also an attribute.
    """

    def __init__(self, infos: dict[int, dict[str, PodInfo]], floor: int, own_uid: str, own_row: int) -> None:
        self.infos = infos
        self._own_uid = own_uid
        self.floor = floor
        self.own_row = own_row

    def __bool__(self) -> bool:
        return bool(self.infos)

    @property
    def rows(self) -> list[int]:
        """Return the rows with nominated pods that count, ascending."""
        return sorted(row for row in self.infos if self.pods_at(row))

    def pods_at(self, row: int) -> list[PodInfo]:
        """Return the pods that count on a row, oldest nomination first."""
        infos: dict[str, PodInfo] | None = self.infos.get(row)
        found: list[PodInfo] = []
        for uid, info in infos.items() if infos else ():
            if info.priority >= self.floor and uid != self._own_uid:
                found.append(info)
        return found


NO_NOMINATED_PODS = NominatedPods({}, 0, "", -1)


class NominatedPodLister:
    """Lists the nominated pods that count for a pod, from a nominator.

    Their records are cached, so thousands of unchanged nominations cost little.

    Attributes:
        log: the rows whose nominations changed, up to the last call. It is incomplete when nodes changed.
    """

    def __init__(self, state: ClusterState, nominator: Nominator, pods: Mapping[str, Pod]) -> None:
        self._state = state
        self._nominator = nominator
        self._pods = pods
        self._infos: dict[int, dict[str, PodInfo]] = {}
        self._node_position = -1
        self.log = RowLog()

    def __call__(self, pod: Pod) -> NominatedPods:
        """Return the nominated pods that count when a pod is filtered: other pods of at least its priority."""
        if not self._nominator.node_by_uid and not self._infos:
            return NO_NOMINATED_PODS
        self._apply_changes()
        uid = uid_of(pod)
        node_name = self._nominator.node_by_uid.get(uid)
        own_row = self._state.nodes.row_of.get(node_name, -1) if node_name else -1
        return NominatedPods(self._infos, pod.spec.priority or 0, uid, own_row)

    def _apply_changes(self) -> None:
        state = self._state
        changed = self._nominator.take_changed_nodes()
        if self._node_position != state.node_log.end:
            self._node_position = state.node_log.end
            self._infos = {}
            changed = list(self._nominator)
        for node_name in changed:
            row = state.nodes.row_of.get(node_name)
            if row is None:
                continue
            old = self._infos.pop(row, {})
            self.log.append(row)
            infos: dict[str, PodInfo] = {}
            for uid, key in self._nominator.on_node(node_name).items():
                pod = self._pods.get(key)
                if pod is not None:
                    infos[uid] = self._info(pod, old.get(uid))
            if infos:
                self._infos[row] = infos

    def _info(self, pod: Pod, known: PodInfo | None) -> PodInfo:
        """Return the record of a pod; reuse `known` if it counts the same in all columns."""
        if known is None or not counts_the_same(known.pod, pod):
            return self._state.pod_info(pod)
        known.replace_version(pod)
        return known
