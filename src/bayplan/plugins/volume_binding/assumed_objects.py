"""Volumes and claims as Reserve assumes them until the cluster has newer versions.

The writes of a pod's binding may reach the catalog only after the next pod is scheduled.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec.structs import replace

from bayplan.objects.meta import ObjectReference
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.pod_claims import BOUND_BY_CONTROLLER, SELECTED_NODE
from bayplan.plugins.volume_binding.matching import is_bound_to
from bayplan.state.object_catalog import ObjectCatalog

SWEEP_AT = 1024
"""Minimum number of entries at which obsolete ones are removed, so that they don't accumulate in long runs."""

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class AssumedObjects(Generic[T]):
    """The assumed versions of the objects of one type. `version` changes whenever one is assumed or restored."""

    def __init__(self, kind: type[T], catalog: ObjectCatalog) -> None:
        self._kind: type[T] = kind
        self._catalog = catalog
        self._assumed: dict[str, tuple[T, T]] = {}
        self._sweep_at = SWEEP_AT
        self.version = 0

    def get(self, key: str) -> T | None:
        """Return an object by its key, or None: the assumed version if there is one, else that of the cluster."""
        item, entry = self._catalog.get(self._kind, key), self._assumed.get(key)
        return entry[1] if item is not None and entry is not None and item.is_version_of(entry[0]) else item

    def assume(self, key: str, item: T) -> None:
        """Assume a version of an object until the cluster has a newer one, if the cluster has the object."""
        base = self._catalog.get(self._kind, key)
        if base is not None:
            if len(self._assumed) >= self._sweep_at:
                self._assumed = {known: entry for known, entry in self._assumed.items() if self.get(known) is entry[1]}
                self._sweep_at = max(SWEEP_AT, 2 * len(self._assumed))
            self._assumed[key] = (base, item)
            self.version += 1

    def restore(self, key: str) -> None:
        """Drop the assumed version of an object, if there is one."""
        if self._assumed.pop(key, None) is not None:
            self.version += 1


def volume_for_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a volume with a ``claimRef`` to a claim; the same object if it needs no change."""
    metadata, reference = claim.metadata, volume.spec.claim_ref
    bound = is_bound_to(volume, claim)
    if reference is None or not bound or reference.uid != metadata.uid:
        wanted = ObjectReference(
            api_version="v1",
            kind="PersistentVolumeClaim",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )
        volume = replace(volume, spec=replace(volume.spec, claim_ref=wanted))
    if not bound and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
        annotations = {**volume.metadata.annotations, BOUND_BY_CONTROLLER: "yes"}
        volume = replace(volume, metadata=replace(volume.metadata, annotations=annotations))
    return volume


def claim_for_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return a claim with the annotation that requests provisioning of its volume for a node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))
