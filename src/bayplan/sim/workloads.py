"""The workload of a pod: the topmost of its controlling owners."""

from __future__ import annotations

from bayplan.cluster.store import ObjectStore
from bayplan.objects.kinds import find_kind
from bayplan.objects.meta import KubernetesObject, OwnerReference
from bayplan.objects.pod import Pod

_MAX_OWNERS = 8
"""Maximum length of a chain of owners; longer chains are probably cycles."""


class Workloads:
    """Finds the workloads of pods, and remembers them. The host calls `update` and `forget` after changes of owners.

    Args:
        store: the store that contains the owners of pods.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[tuple[str, str, str], str] = {}

    def of(self, pod: Pod) -> tuple[str, bool]:
        """Return the topmost object that controls a pod, and whether the object that controls the pod itself is stored.

        If it is not stored, it counts as the topmost one. The form is `Kind namespace/name`, or `""` without a controller.
        """
        namespace = pod.metadata.namespace
        owner = pod.metadata.controller()
        if owner is None:
            return "", True
        key = (owner.kind, namespace, owner.name)
        known = self._known.get(key)
        if known is None:
            name, item = self._find(owner, namespace)
            if item is None:
                return f"{owner.kind} {name}", False
            known = self._known[key] = self._topmost(owner, namespace)
        return known, True

    def update(self, item: KubernetesObject) -> str:
        """Return the workload of the pods that an object controls, after it was added or got other owners."""
        metadata, kind = item.metadata, type(item).__name__
        owner = metadata.controller()
        found = f"{kind} {item.key}" if owner is None else self._topmost(owner, metadata.namespace)
        self._known[(kind, metadata.namespace, metadata.name)] = found
        return found

    def forget(self, item: KubernetesObject) -> None:
        """Forget an object that was deleted."""
        self._known.pop((type(item).__name__, item.metadata.namespace, item.metadata.name), None)

    def _topmost(self, owner: OwnerReference, namespace: str) -> str:
        """Follow the controlling owners upwards, as far as they exist."""
        for _ in range(_MAX_OWNERS):
            key, item = self._find(owner, namespace)
            above = item.metadata.controller() if item is not None else None
            if above is None:
                break
            owner = above
        return f"{owner.kind} {key}"

    def _find(self, owner: OwnerReference, namespace: str) -> tuple[str, KubernetesObject | None]:
        """Return the key of an owner, and the owner if it is stored."""
        row = find_kind(owner.api_version, owner.kind)
        key = owner.name if row is not None and not row.namespaced else f"{namespace}/{owner.name}"
        return key, None if row is None else self._store.get(row.struct, key)
