"""Naive rules of the volume plugins for one pod and one node, on typed objects, in the order of the documentation.

They do not know volumes that are translated to CSI; these are tested with tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import parse_quantity, value
from bayplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.objects.volumes import Volume
from tests.oracle.selectors import matches_labels, matches_node

T = TypeVar("T", bound=KubernetesObject)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
WRONG_ZONE = "node(s) had no available volume zone"
DISK_CONFLICT = "node(s) had no available disk"
TOO_MANY = "node(s) exceed max volume count"

ZONES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


@dataclass(frozen=True)
class World:
    """A cluster: nodes, pods with the names of their nodes, all other objects, and the pod to schedule."""

    nodes: Sequence[Node]
    pods: Sequence[tuple[Pod, str]]
    objects: Sequence[KubernetesObject]
    pod: Pod

    def find(self, kind: type[T], key: str) -> T | None:
        """Return the object with a type and a key, or None."""
        return next((item for item in self.objects if isinstance(item, kind) and item.key == key), None)

    def all(self, kind: type[T]) -> list[T]:
        """Return the objects of a type, sorted by key."""
        return sorted((item for item in self.objects if isinstance(item, kind)), key=lambda item: item.key)

    def on(self, node: Node) -> list[Pod]:
        """Return the pods on a node."""
        return [pod for pod, name in self.pods if name == node.metadata.name]

    def claims(self, pod: Pod) -> list[PersistentVolumeClaim]:
        """Return the existing claims that a pod uses."""
        names = [item.persistent_volume_claim for item in pod.spec.volumes]
        found = [
            self.find(PersistentVolumeClaim, f"{pod.metadata.namespace}/{source.claim_name}")
            for source in names
            if source is not None
        ]
        return [claim for claim in found if claim is not None]


def disk_conflict(world: World, node: Node) -> str:
    """Return why the pod's disks conflict with those of the node's pods, or the empty string."""
    for mine in world.pod.spec.volumes:
        for other in (volume for pod in world.on(node) for volume in pod.spec.volumes):
            if _collide(mine, other):
                return DISK_CONFLICT
    return ""


def _collide(one: Volume, two: Volume) -> bool:
    if one.aws_elastic_block_store and two.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == two.aws_elastic_block_store.volume_id
    for name, keys in (("gce_persistent_disk", ("pd_name",)), ("iscsi", ("iqn",)), ("rbd", ("pool", "image"))):
        mine, other = getattr(one, name), getattr(two, name)
        if mine is None or other is None or (mine.read_only and other.read_only):
            continue
        if any(getattr(mine, key) != getattr(other, key) for key in keys):
            continue
        if name != "rbd" or set(mine.monitors) & set(other.monitors):
            return True
    return False


def exclusive_claims_in_use(world: World) -> int:
    """Return the number of the pod's ReadWriteOncePod claims that running pods use."""
    used = {claim.key for pod, _ in world.pods for claim in world.claims(pod)}
    mine = {claim.key for claim in world.claims(world.pod) if "ReadWriteOncePod" in claim.spec.access_modes}
    return len(used & mine)


def zone_conflict(world: World, node: Node) -> str:
    """Return why the pod's volumes are in another zone than the node, or the empty string."""
    labels = node.metadata.labels
    if not any(key in labels for key in ZONES):
        return ""
    for claim in world.claims(world.pod):
        volume = world.find(PersistentVolume, claim.spec.volume_name)
        for key, text in volume.metadata.labels.items() if volume is not None else ():
            parts = [part.strip() for part in text.split("__")]
            if key in ZONES and "" not in parts and labels.get(key, labels.get(ZONES[key])) not in parts:
                return WRONG_ZONE
    return ""


def too_many_volumes(world: World, node: Node) -> str:
    """Return why the node cannot attach the pod's volumes in addition to its own, or the empty string."""
    csi_node = world.find(CSINode, node.metadata.name)
    limits = {
        item.name: item.allocatable.count
        for item in (csi_node.spec.drivers if csi_node is not None else ())
        if item.allocatable is not None and item.allocatable.count is not None
    }
    used = {name for pod in world.on(node) for name in _csi_names(world, pod)}
    fresh = _csi_names(world, world.pod) - used
    attached = set(used)
    for attachment in world.all(VolumeAttachment):
        name = attachment.spec.source.persistent_volume_name
        volume = world.find(PersistentVolume, name) if name is not None else None
        if attachment.spec.node_name == node.metadata.name and volume is not None and volume.spec.csi is not None:
            attached.add((attachment.spec.attacher, volume.spec.csi.volume_handle))
    for driver in {driver for driver, _ in fresh}:
        count = sum(name[0] == driver for name in attached) + sum(name[0] == driver for name in fresh)
        if driver in limits and count > limits[driver]:
            return TOO_MANY
    return ""


def _csi_names(world: World, pod: Pod) -> set[tuple[str, str]]:
    names = set()
    for claim in world.claims(pod):
        volume = world.find(PersistentVolume, claim.spec.volume_name)
        storage_class = world.find(StorageClass, claim.spec.storage_class_name or "")
        if volume is not None:
            if volume.spec.csi is not None:
                names.add((volume.spec.csi.driver, volume.spec.csi.volume_handle))
        elif storage_class is not None:
            names.add((storage_class.provisioner, f"to be made for {claim.key}"))
    return names


def waiting(world: World, claim: PersistentVolumeClaim) -> StorageClass | None:
    """Return the storage class of a claim that waits for its first consumer, or None for other claims."""
    storage_class = world.find(StorageClass, claim.spec.storage_class_name or "")
    if claim.spec.volume_name or storage_class is None:
        return None
    return storage_class if storage_class.volume_binding_mode == "WaitForFirstConsumer" else None


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim is completely bound."""
    return bool(claim.spec.volume_name) and "pv.kubernetes.io/bind-completed" in claim.metadata.annotations


def binding(world: World, node: Node) -> tuple[tuple[str, ...], dict[str, str], list[str]]:
    """Return the reasons against a node, the volumes to bind by claim, and the claims to provision."""
    reasons = set()
    for claim in (claim for claim in world.claims(world.pod) if is_bound(claim)):
        volume = world.find(PersistentVolume, claim.spec.volume_name)
        if volume is None or not _reaches(volume, node):
            reasons.add(VOLUME_MISSING if volume is None else NODE_CONFLICT)
            break
    taken: dict[str, str] = {}
    to_make: list[PersistentVolumeClaim] = []
    chosen: list[PersistentVolumeClaim] = []
    for claim in (claim for claim in world.claims(world.pod) if not is_bound(claim)):
        selected = claim.metadata.annotations.get("volume.kubernetes.io/selected-node")
        if selected is not None and selected != node.metadata.name:
            return _in_order(reasons | {BIND_CONFLICT}), {}, []
        (to_make if selected is not None else chosen).append(claim)
    for claim in sorted(chosen, key=lambda item: parse_quantity(item.spec.resources.requests["storage"])):
        volume = _smallest_volume(world, claim, node, set(taken.values()))
        if volume is None:
            to_make.append(claim)
        else:
            taken[claim.key] = volume.metadata.name
    for claim in to_make:
        reason = _obstacle(world, claim, node)
        if reason:
            reasons.add(reason)
            break
    return _in_order(reasons), taken, [claim.key for claim in to_make]


def _in_order(reasons: set[str]) -> tuple[str, ...]:
    return tuple(text for text in (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING) if text in reasons)


def _reaches(volume: PersistentVolume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return matches_node(affinity.required, node.metadata.labels, "")


def _smallest_volume(
    world: World, claim: PersistentVolumeClaim, node: Node, taken: set[str]
) -> PersistentVolume | None:
    wanted = parse_quantity(claim.spec.resources.requests["storage"])
    best: PersistentVolume | None = None
    for volume in world.all(PersistentVolume):
        spec, reference = volume.spec, volume.spec.claim_ref
        size = parse_quantity(spec.capacity["storage"])
        mine = reference is not None and f"{reference.namespace}/{reference.name}" == claim.key
        if spec.storage_class_name != claim.spec.storage_class_name or volume.metadata.name in taken:
            continue
        if (reference is not None and not mine) or size < wanted or spec.volume_mode != claim.spec.volume_mode:
            continue
        if mine:
            return volume if _reaches(volume, node) else None
        fits = volume.status.phase == "Available" and set(claim.spec.access_modes) <= set(spec.access_modes)
        if claim.spec.selector is not None:
            fits = fits and matches_labels(claim.spec.selector, volume.metadata.labels)
        smaller = best is None or size < parse_quantity(best.spec.capacity["storage"])
        if fits and smaller and _reaches(volume, node):
            best = volume
    return best


def _obstacle(world: World, claim: PersistentVolumeClaim, node: Node) -> str:
    """Return why a claim's volume cannot be provisioned for a node, or the empty string."""
    storage_class = world.find(StorageClass, claim.spec.storage_class_name or "")
    assert storage_class is not None
    labels = node.metadata.labels
    if storage_class.provisioner == "kubernetes.io/no-provisioner":
        return BIND_CONFLICT
    terms = storage_class.allowed_topologies
    if terms and not any(
        term.match_label_expressions
        and all(labels.get(item.key) in item.values for item in term.match_label_expressions)
        for term in terms
    ):
        return BIND_CONFLICT
    driver = world.find(CSIDriver, storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return ""
    wanted = value(claim.spec.resources.requests["storage"])
    for capacity in world.all(CSIStorageCapacity):
        limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
        of_class = capacity.storage_class_name == storage_class.metadata.name
        if of_class and limit is not None and value(limit) >= wanted and matches_labels(capacity.node_topology, labels):
            return ""
    return NOT_ENOUGH_SPACE
