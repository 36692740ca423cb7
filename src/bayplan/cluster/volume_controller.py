"""Binds claims to the volumes that the scheduler chose for a pod, and provisions missing volumes.

In a real cluster, the volume controller and provisioners do this; here it happens at once.
`bayplan.controllers.persistent_volumes` binds claims without a pod.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.meta import KubernetesObject, ObjectMeta, ObjectReference
from bayplan.objects.node import Node
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from bayplan.objects.volumes import CSIPersistentVolumeSource
from bayplan.plugins.csi_migration import DRIVERS
from bayplan.plugins.pod_claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, STORAGE, class_of_claim

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def volume_writes(item: KubernetesObject, objects: ObjectLookup, node: Node | None = None) -> list[KubernetesObject]:
    """Return the writes that follow from the scheduler's write of a volume or claim: the object and all consequences, in order.

    Their metadata has no resource version; the store assigns one.

    Args:
        item: a volume that is now reserved for a claim, or a claim with a selected node.
        objects: the objects of the cluster.
        node: the selected node; a volume provisioned for a claim is accessible from the node's topology, as known to
            the driver.
    """
    if isinstance(item, PersistentVolume):
        reference = item.spec.claim_ref
        key = f"{reference.namespace}/{reference.name}" if reference is not None else ""
        claim = objects.get(PersistentVolumeClaim, key)
        volume = replace(item, metadata=_new_version(item.metadata), status=PersistentVolumeStatus(phase="Bound"))
        return [volume] if claim is None else [volume, bound_claim(claim, volume)]
    if not isinstance(item, PersistentVolumeClaim):
        return [item]
    storage_class = objects.get(StorageClass, class_of_claim(item))
    if storage_class is None or item.spec.volume_name or SELECTED_NODE not in item.metadata.annotations:
        return [replace(item, metadata=_new_version(item.metadata))]
    volume = provisioned_volume(item, storage_class, objects, node)
    return [volume, bound_claim(item, volume)]


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """Return a claim bound to a volume. If the claim did not name the volume, annotate it as bound by the controller."""
    metadata = _new_version(claim.metadata)
    annotations = {**metadata.annotations, BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER] = "yes"
    return replace(
        claim,
        metadata=replace(metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=volume.metadata.name),
        status=replace(
            claim.status, phase="Bound", access_modes=volume.spec.access_modes, capacity=volume.spec.capacity
        ),
    )


def provisioned_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, objects: ObjectLookup, node: Node | None
) -> PersistentVolume:
    """Return the volume that a class's driver provisions for a claim; without a node, it is accessible from all nodes."""
    metadata, spec = claim.metadata, claim.spec
    driver = DRIVERS.get(storage_class.provisioner, storage_class.provisioner)
    name = f"pvc-{metadata.uid or f'{metadata.namespace}-{metadata.name}'}"
    reference = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )
    requested = spec.resources.requests.get(STORAGE)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: driver}),
        spec=PersistentVolumeSpec(
            capacity={} if requested is None else {STORAGE: requested},
            # Names of provisioners that are not CSI drivers may contain slashes, but names of drivers may not.
            csi=CSIPersistentVolumeSource(driver=driver.replace("/", "."), volume_handle=name),
            access_modes=spec.access_modes,
            claim_ref=reference,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            storage_class_name=storage_class.metadata.name,
            volume_mode=spec.volume_mode,
            node_affinity=_reachable_from(node, driver, objects) if node is not None else None,
            volume_attributes_class_name=spec.volume_attributes_class_name,
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )


def _reachable_from(node: Node, driver: str, objects: ObjectLookup) -> VolumeNodeAffinity | None:
    """Return the node affinity of a volume provisioned for a node: the node's labels with the driver's topology keys."""
    csi_node = objects.get(CSINode, node.metadata.name)
    drivers = csi_node.spec.drivers if csi_node is not None else ()
    keys = next((item.topology_keys for item in drivers if item.name == driver), ())
    labels = node.metadata.labels
    requirements = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=(labels[key],)) for key in keys if key in labels
    )
    if not requirements:
        return None
    term = NodeSelectorTerm(match_expressions=requirements)
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))


def _new_version(metadata: ObjectMeta) -> ObjectMeta:
    return replace(metadata, resource_version="")
