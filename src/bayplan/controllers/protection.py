"""Protection finalizers: claims in use and bound volumes are not deleted until they are released.

Source: pkg/controller/volume/pvcprotection and pvprotection v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


class ClaimProtection(Controller):
    """Removes the protection finalizer from claims that are being deleted, once no pod uses them."""

    kind = PersistentVolumeClaim
    watches = (PersistentVolumeClaim,)

    @property
    def watches_pods(self) -> bool:
        """Whether any claim is being deleted and may wait for pods."""
        return any(claim.metadata.deletion_timestamp is not None for claim in self.store.all(PersistentVolumeClaim))

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of a claim that is being deleted, or of the claims that a finished or deleted pod used."""
        item = event.object
        if not isinstance(item, Pod):
            return (item.key,) if item.metadata.deletion_timestamp is not None else ()
        if event.new is not None and not is_finished(item):
            return ()
        return _claims_of(item)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Remove the protection finalizer from a claim that is being deleted and that no pod uses."""
        claim = self.store.get(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is None:
            return None
        if CLAIM_PROTECTION in claim.metadata.finalizers and not any(
            key in _claims_of(pod) and not is_finished(pod) for pod in self.store.pods.values()
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


def _claims_of(pod: Pod) -> list[str]:
    """Return the keys of the claims of a pod's volumes, including ephemeral volumes."""
    namespace, name = pod.metadata.namespace, pod.metadata.name
    keys = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            keys.append(f"{namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            keys.append(f"{namespace}/{name}-{volume.name}")
    return keys
