"""The workload of a pod: the topmost of its controlling owners."""

from __future__ import annotations

from bayplan.cluster.store import ObjectStore
from bayplan.objects.kinds import find_kind
from bayplan.objects.meta import KubernetesObject, OwnerReference
from bayplan.objects.pod import Pod

_MAX_OWNERS = 8
"""Maximum length of a chain of owners; longer chains are probably cycles."""


class Workloads:
    """Finds the workloads of pods, and remembers them.

    Args:
        store: the store that contains the owners of pods.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def of(self, pod: Pod) -> str:
        """Return the topmost object that controls a pod, as `Kind namespace/name`; `""` if it has no controller."""
        metadata = pod.metadata
        owner = _controller(metadata.owner_references)
        if owner is None:
            return ""
        known = self._known.get(owner.uid)
        if known is None:
            known = self._known[owner.uid] = self._topmost(owner, metadata.namespace)
        return known

    def above(self, item: KubernetesObject) -> str:
        """Return the topmost object that controls an owner that was added after its pods; `""` if none controls it."""
        owner = _controller(item.metadata.owner_references)
        if owner is None:
            return ""
        found = self._known[item.metadata.uid] = self._topmost(owner, item.metadata.namespace)
        return found

    def _topmost(self, owner: OwnerReference, namespace: str) -> str:
        """Follow the controlling owners upwards, as far as they exist."""
        for _ in range(_MAX_OWNERS):
            row = find_kind(owner.api_version, owner.kind)
            key = owner.name if row is not None and not row.namespaced else f"{namespace}/{owner.name}"
            item = self._store.get(row.struct, key) if row is not None else None
            above = _controller(item.metadata.owner_references) if item is not None else None
            if above is None:
                break
            owner = above
        return f"{owner.kind} {key}"


def _controller(owners: tuple[OwnerReference, ...]) -> OwnerReference | None:
    for owner in owners:
        if owner.controller:
            return owner
    return None
