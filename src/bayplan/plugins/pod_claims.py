"""The volumes of a pod as the volume plugins read them: claims and disks. This module is not a plugin.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/, and KEP-1698 (ephemeral volumes).
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from bayplan.framework.events import hint
from bayplan.framework.plugin import Plugin
from bayplan.objects.meta import ResourceList
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.quantity import Quantity, parse_quantity
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.objects.volumes import Volume
from bayplan.plugins.csi_migration import in_tree_plugin

STORAGE = "storage"
"""The name of the resource that claims request and volumes provide."""

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes are created by hand."""

ZERO = parse_quantity("0")

_encode = msgspec.msgpack.Encoder().encode


class PodVolume(msgspec.Struct, frozen=True):
    """One volume of a pod.

    Attributes:
        source: the volume in the pod's spec.
        claim: the name of its PersistentVolumeClaim, which may be ""; None if the volume is not a claim.
        ephemeral: whether the claim is created for the pod.
    """

    source: Volume
    claim: str | None = None
    ephemeral: bool = False


class PodVolumes(msgspec.Struct, frozen=True, eq=False):
    """The volumes of a pod that are claims or disks; other volumes don't affect scheduling.

    Attributes:
        key: identifies the other attributes, unless pods with different volumes share results (`pod_volumes`).
        pod_name, pod_uid: empty unless the pod has ephemeral volumes.
        has_claims: whether one of the volumes is a claim.
        has_named_claims: whether one of them is a claim that is not ephemeral.
    """

    key: Hashable
    namespace: str
    pod_name: str
    pod_uid: str
    volumes: tuple[PodVolume, ...]
    has_claims: bool
    has_named_claims: bool


NO_VOLUMES = PodVolumes(None, "", "", "", (), has_claims=False, has_named_claims=False)


def pod_volumes(pod: Pod, shared: bool = False) -> PodVolumes:
    """Return the volumes of a pod that are claims or disks; `NO_VOLUMES` if it has none.

    With `shared`, all pods with volumes get the same key. This is for plugins whose verdicts depend only on the params:
    pods with different claims then share one result, and rules run again only if the params differ.
    """
    if not pod.spec.volumes:
        return NO_VOLUMES
    metadata = pod.metadata
    volumes = []
    named = ephemeral = False
    for volume in pod.spec.volumes:
        claim = claim_name_of(metadata.name, volume)
        if claim is not None or is_disk(volume) or in_tree_plugin(volume):
            is_ephemeral = claim is not None and volume.persistent_volume_claim is None
            ephemeral |= is_ephemeral
            named |= claim is not None and not is_ephemeral
            volumes.append(PodVolume(volume, claim, is_ephemeral))
    if not volumes:
        return NO_VOLUMES
    name, uid = (metadata.name, metadata.uid) if ephemeral else ("", "")
    key: Hashable = "volumes"
    if not shared:
        key = (metadata.namespace, name, uid, _encode([item.source for item in volumes]))
    return PodVolumes(
        key, metadata.namespace, name, uid, tuple(volumes), has_claims=named or ephemeral, has_named_claims=named
    )


class VolumePlugin(Plugin[PodVolumes]):
    """Base of the plugins whose verdicts depend on whether the claims of ephemeral volumes belong to the pod."""

    def signs(self, spec: PodSpec) -> bool:
        """Return True only for pods with ephemeral volumes."""
        return any(volume.ephemeral is not None for volume in spec.volumes)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return the name and uid of a pod with ephemeral volumes, which must own their claims; None for other pods."""
        return (pod.metadata.name, pod.metadata.uid) if self.signs(pod.spec) else None


def is_disk(volume: Volume) -> bool:
    """Return whether a volume is a disk that pods on a node can't share freely."""
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
    return disks != (None, None, None, None)


def claim_of_ephemeral(pod_name: str, volume_name: str) -> str:
    """Return the name of the claim that is created for an ephemeral volume."""
    return f"{pod_name}-{volume_name}"


def claim_name_of(pod_name: str, volume: Volume) -> str | None:
    """Return the name of a volume's claim, or None if the volume is not a claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return claim_of_ephemeral(pod_name, volume.name) if volume.ephemeral is not None else None


def named_claims(pod: Pod) -> frozenset[str]:
    """Return the names of a pod's claims, except those of its ephemeral volumes."""
    claims = [volume.persistent_volume_claim for volume in pod.spec.volumes]
    return frozenset(claim.claim_name for claim in claims if claim is not None)


@hint(PersistentVolumeClaim, new=True)
def is_schedulable_after_claim_change(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """Queue the pod if one of its volumes is the claim that was added or changed."""
    if new.metadata.namespace != pod.metadata.namespace:
        return False
    return any(claim_name_of(pod.metadata.name, volume) == new.metadata.name for volume in pod.spec.volumes)


@hint(PersistentVolumeClaim, new=True)
def is_schedulable_after_named_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> bool:
    """Queue the pod if it uses the claim that was added or changed, not only for an ephemeral volume."""
    return new.metadata.namespace == pod.metadata.namespace and new.metadata.name in named_claims(pod)


def ownership_error(claim: PersistentVolumeClaim, namespace: str, pod_name: str, pod_uid: str) -> str:
    """Return why an ephemeral volume's claim does not belong to its pod; "" if it does."""
    metadata = claim.metadata
    controller = metadata.controller()
    if metadata.namespace == namespace and controller is not None and controller.uid == pod_uid:
        return ""
    of_claim, of_pod = f"{metadata.namespace}/{metadata.name}", f"{namespace}/{pod_name}"
    return f"PVC {of_claim} was not created for pod {of_pod} (pod is not owner)"


def claim_not_found(name: str) -> str:
    """Return upstream's message for a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim; the old annotation takes precedence."""
    annotated = claim.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the storage class of a persistent volume; the old annotation takes precedence."""
    annotated = volume.metadata.annotations.get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else volume.spec.storage_class_name


def storage_amount(amounts: ResourceList) -> Quantity:
    """Return the amount of storage in a resource list; 0 if it contains none."""
    amount = amounts.get(STORAGE)
    return ZERO if amount is None else parse_quantity(amount)
