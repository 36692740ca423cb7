"""Nominations: the pods that preemption (or their status) has nominated to a node, before they run there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.objects.pod import Pod

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
