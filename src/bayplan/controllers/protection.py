"""Protection finalizers: claims in use and bound volumes are not deleted until they are released.

Source: pkg/controller/volume/pvcprotection and pvprotection v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


class ClaimProtection(Controller):
    """Removes the protection finalizer from claims that are being deleted, once no pod on a node uses them.

    Unscheduled pods do not count, because no kubelet starts a pod whose claim is being deleted; ended pods do.
    """

    kind = PersistentVolumeClaim
    watches = (PersistentVolumeClaim,)

    @property
    def watches_pods(self) -> bool:
        """Whether any claim is being deleted and may wait for pods."""
        return any(claim.metadata.deletion_timestamp is not None for claim in self.store.all(PersistentVolumeClaim))

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of a claim that is being deleted, or the keys of the claims of a deleted or shut-down pod."""
        item = event.object
        if not isinstance(item, Pod):
            return (item.key,) if item.metadata.deletion_timestamp is not None else ()
        if event.new is not None and not _is_shut_down(item):
            return ()
        return [*_claims_of(item), *_ephemeral_claims_of(item)]

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Remove the protection finalizer from a claim that is being deleted and that no pod on a node uses."""
        claim = self.store.get(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is None:
            return None
        if CLAIM_PROTECTION in claim.metadata.finalizers and not any(
            _uses(pod, claim) for pod in self.store.pods.values() if pod.spec.node_name
        ):
            self.writer.drop_finalizer(claim, CLAIM_PROTECTION)
        return None


class VolumeProtection(Controller):
    """Removes the protection finalizer from volumes that are being deleted, once no claim uses them."""

    kind = PersistentVolume
    watches = (PersistentVolume, PersistentVolumeClaim)

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the name of a volume that is being deleted, or of the volume of a deleted claim."""
        item = event.object
        if isinstance(item, PersistentVolumeClaim):
            return (item.spec.volume_name,) if event.new is None and item.spec.volume_name else ()
        return (item.key,) if item.metadata.deletion_timestamp is not None else ()

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Remove the protection finalizer from a volume that is being deleted and that no claim uses."""
        volume = self.store.get(PersistentVolume, key)
        if volume is None or volume.metadata.deletion_timestamp is None or self._is_used(volume):
            return None
        if VOLUME_PROTECTION in volume.metadata.finalizers:
            self.writer.drop_finalizer(volume, VOLUME_PROTECTION)
        return None

    def _is_used(self, volume: PersistentVolume) -> bool:
        """Return whether a volume is bound to an existing claim."""
        reference = volume.spec.claim_ref
        if reference is None or volume.status.phase != "Bound":
            return False
        claim = self.store.get(PersistentVolumeClaim, f"{reference.namespace}/{reference.name}")
        return claim is not None and reference.uid in ("", claim.metadata.uid)


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Return whether a pod uses a claim; if only finalizers keep the pod, its ephemeral volumes do not count."""
    if claim.key in _claims_of(pod):
        return True
    owner = claim.metadata.controller()
    is_owner = owner is not None and owner.uid == pod.metadata.uid
    return is_owner and not _is_shut_down(pod) and claim.key in _ephemeral_claims_of(pod)


def _is_shut_down(pod: Pod) -> bool:
    """Return whether only finalizers keep a pod that is being deleted."""
    metadata = pod.metadata
    return metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0


def _claims_of(pod: Pod) -> list[str]:
    """Return the keys of the claims that the volumes of a pod name."""
    namespace = pod.metadata.namespace
    named = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [f"{namespace}/{each.claim_name}" for each in named if each is not None]


def _ephemeral_claims_of(pod: Pod) -> list[str]:
    """Return the keys of the claims of a pod's ephemeral volumes."""
    prefix = f"{pod.metadata.namespace}/{pod.metadata.name}-"
    return [f"{prefix}{volume.name}" for volume in pod.spec.volumes if volume.ephemeral is not None]
