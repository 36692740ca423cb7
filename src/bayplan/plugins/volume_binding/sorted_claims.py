"""The claims of a pod in this cycle, and all that the choice of volumes for them depends on."""

from __future__ import annotations

import msgspec

from bayplan.framework.status import Status, error, unresolvable
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.pod_claims import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    PodVolumes,
    claim_not_found,
    class_of_claim,
    ownership_error,
)
from bayplan.plugins.volume_binding.assumed_objects import AssumedObjects
from bayplan.state.object_catalog import ObjectCatalog

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class SortedClaims(msgspec.Struct, frozen=True):
    """The claims of a pod, those that must have been bound long ago left out: with them a pod is rejected.

    Attributes:
        bound: per bound claim the name of its volume and the volume, None if it does not exist.
        delayed: claims that wait for their first consumer.
        classes: the storage classes of those, in the same order.
    """

    bound: tuple[tuple[str, PersistentVolume | None], ...]
    delayed: tuple[PersistentVolumeClaim, ...]
    classes: tuple[StorageClass, ...]


def claims_error(spec: PodVolumes, catalog: ObjectCatalog) -> str:
    """Return why one of a pod's claims can't be used at all, or the empty text. Assumed versions don't count here."""
    for volume in spec.volumes:
        if volume.claim is None:
            continue
        claim = catalog.get(PersistentVolumeClaim, f"{spec.namespace}/{volume.claim}")
        if claim is None:
            if volume.ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{volume.claim}"'
            return claim_not_found(volume.claim)
        name = claim.metadata.name
        if claim.status.phase == "Lost":
            volume_name = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if volume.ephemeral:
            text = ownership_error(claim, spec.namespace, spec.pod_name, spec.pod_uid)
            if text:
                return text
    return ""


def sort_claims(
    spec: PodVolumes,
    catalog: ObjectCatalog,
    claims: AssumedObjects[PersistentVolumeClaim],
    volumes: AssumedObjects[PersistentVolume],
) -> SortedClaims | Status:
    """Return a pod's claims by what is to be done about them, or why the pod is rejected. All claims must exist."""
    bound: list[tuple[str, PersistentVolume | None]] = []
    delayed: list[PersistentVolumeClaim] = []
    classes: list[StorageClass] = []
    immediate = False
    for volume in spec.volumes:
        if volume.claim is None:
            continue
        claim = claims.get(f"{spec.namespace}/{volume.claim}")
        assert claim is not None
        name = claim.spec.volume_name
        if name and BIND_COMPLETED in claim.metadata.annotations:
            bound.append((name, volumes.get(name)))
            continue
        class_name = class_of_claim(claim)
        storage_class = catalog.get(StorageClass, class_name) if class_name else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return error(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class is None or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER or name:
            # A claim that a user bound to a volume in advance is left to the volume controller, too.
            immediate = True
        else:
            delayed.append(claim)
            classes.append(storage_class)
    if immediate:
        return unresolvable(UNBOUND_IMMEDIATE)
    return SortedClaims(tuple(bound), tuple(delayed), tuple(classes))
