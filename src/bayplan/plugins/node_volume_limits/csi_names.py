"""The CSI names of a pod's volumes: driver and handle, by which attached volumes are counted."""

from __future__ import annotations

import msgspec

from bayplan.framework.status import ERROR_BIT, UNRESOLVABLE_BIT
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.csi_migration import (
    DRIVERS,
    MIGRATED,
    TranslationError,
    handle_of,
    in_tree_plugin,
    translate_inline_volume,
)
from bayplan.plugins.pod_claims import PodVolumes, claim_not_found, class_of_claim, ownership_error
from bayplan.state.object_catalog import ObjectCatalog

NOT_PROVISIONED = "\0"
"""Prefix of the handles of volumes that don't exist yet; upstream uses 32 random letters."""


class CsiNames(msgspec.Struct, frozen=True):
    """The volumes of one pod that a node must attach.

    Attributes:
        drivers: the driver of each volume, by unique name (``driver/handle``).
        error: why the volumes are unknown, or "".
        flags: the bits of a verdict with that error.
        migrates: whether the names may differ on nodes without CSINode.
    """

    drivers: dict[str, str] = msgspec.field(default_factory=dict)
    error: str = ""
    flags: int = ERROR_BIT
    migrates: bool = False


def csi_names(volumes: PodVolumes, catalog: ObjectCatalog, *, migrated: bool, new_pod: bool) -> CsiNames:
    """Return the CSI names of a pod's volumes.

    `migrated`: whether the node has a CSINode; only then in-tree volumes have CSI names. `new_pod`: whether the pod is
    being scheduled and needs all its claims; for other pods, claims may be missing.
    """
    found: dict[str, str] = {}
    migrates = False
    for volume in volumes.volumes:
        if volume.claim is None:
            if in_tree_plugin(volume.source) not in MIGRATED:
                continue
            migrates = True
            if not migrated:
                continue
            try:
                inline = translate_inline_volume(volume.source)
            except TranslationError as problem:
                text = f"converting volume({volume.source.name}) from inline to csi: {problem}"
                return CsiNames(error=text, migrates=True)
            found[f"{inline.driver}/{inline.handle}"] = inline.driver
            continue
        if not volume.claim:
            return CsiNames(error="PersistentVolumeClaim had no name", migrates=migrates)
        key = f"{volumes.namespace}/{volume.claim}"
        claim = catalog.get(PersistentVolumeClaim, key)
        if claim is None:
            if new_pod:
                text = f"looking up PVC {key}: {claim_not_found(volume.claim)}"
                return CsiNames(error=text, flags=UNRESOLVABLE_BIT, migrates=migrates)
            continue
        if volume.ephemeral:
            text = ownership_error(claim, volumes.namespace, volumes.pod_name, volumes.pod_uid)
            if text:
                return CsiNames(error=text, migrates=migrates)
        driver, handle, in_tree = _name_of_claim(claim, catalog, migrated=migrated)
        migrates |= in_tree
        if driver and handle:
            found[f"{driver}/{handle}"] = driver
    return CsiNames(found, migrates=migrates)


def _name_of_claim(claim: PersistentVolumeClaim, catalog: ObjectCatalog, *, migrated: bool) -> tuple[str, str, bool]:
    """Return driver and handle of a claim's volume ("" if it is not a CSI volume), and whether `migrated` matters."""
    volume = catalog.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _name_by_class(claim, catalog, migrated=migrated)
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle, False
    plugin = in_tree_plugin(volume.spec)
    if plugin not in MIGRATED:
        return "", "", False
    if not migrated:
        return "", "", True
    try:
        return DRIVERS[plugin], handle_of(volume.spec, volume.metadata.name, volume.metadata.labels), True
    except TranslationError:
        return "", "", True


def _name_by_class(claim: PersistentVolumeClaim, catalog: ObjectCatalog, *, migrated: bool) -> tuple[str, str, bool]:
    """Return the driver that will provision a claim's volume, a placeholder handle, and whether `migrated` matters."""
    storage_class = catalog.get(StorageClass, class_of_claim(claim))
    if storage_class is None:
        return "", "", False
    handle = f"{NOT_PROVISIONED}{claim.metadata.namespace}/{claim.metadata.name}"
    provisioner = storage_class.provisioner
    if provisioner not in DRIVERS:
        return provisioner, handle, False
    if provisioner not in MIGRATED:
        return "", "", False
    return (DRIVERS[provisioner], handle, True) if migrated else ("", "", True)
