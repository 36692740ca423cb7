"""Binding of claims to volumes independently of pods: upstream's persistent volume controller, and all provisioners.

Binding is immediate here and takes a while in a real cluster. Claims of classes with WaitForFirstConsumer are left to
the scheduler, unless a volume names them. A volume that is provisioned without a pod is accessible from every node, as
nothing restricts it. Not implemented: drivers other than the class's, resizing, and claims whose volume is lost.
Source: pkg/controller/volume/persistentvolume v1.36.3, https://kubernetes.io/docs/concepts/storage/persistent-volumes/
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ChangeEvent
from bayplan.cluster.volume_controller import PROVISIONED_BY, bound_claim, provisioned_volume, volume_writes
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.controllers.writer import WARNING
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import EVERYTHING, compile_label_selector
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus, StorageClass
from bayplan.plugins.pod_claims import (
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_name_of,
    class_of_claim,
    class_of_volume,
    storage_amount,
)
from bayplan.plugins.volume_binding.assumed_objects import volume_for_claim
from bayplan.plugins.volume_binding.matching import is_available, is_bound_to, matches_claim

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BOUND_BY_SOURCE = "bayplan.io/bound-by-source"
"""The annotation of claims that `bayplan.sync` copied from another cluster; they stay bound to their volumes."""

_CLASS = "class "
_RESYNC_NS = 15 * SECOND_NS
"""Interval at which unbound claims of a server are processed again, as with upstream's ``--pvclaimbinder-sync-period``."""


class PersistentVolumeController(Controller):
    """Reconciles claims (``namespace/name``), volumes (``name``), and pending claims of a class (``class name``)."""

    kind = PersistentVolumeClaim
    component = "persistentvolume-controller"
    watches = (PersistentVolumeClaim, PersistentVolume, StorageClass)
    retry_delays_ns = (_RESYNC_NS, _RESYNC_NS)

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        # The class of each unbound claim, and the unbound claims by class.
        self._class_of: dict[str, str] = {}
        self._unbound: dict[str, dict[str, None]] = {}
        # Unreserved volumes by class, as sorted pairs of size and name; reserved volumes by claim; for volumes whose
        # claim was deleted, the claim's uid.
        self._free: dict[str, list[tuple[Quantity, str]]] = {}
        self._meant: dict[str, dict[str, None]] = {}
        self._released: dict[str, str] = {}
        # The names of the unscheduled pods by claim, on a server that has had an unbound claim.
        self._consumers: dict[str, dict[str, None]] | None = None

    @property
    def watches_pods(self) -> bool:
        """Whether events about claims may name the pods that use them."""
        return self._consumers is not None

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the keys of an unbound claim, of a changed volume, and of claims that a volume or class may serve."""
        old, new = event.old, event.new
        if isinstance(event.object, Pod):
            self._follow_pod(event.object, is_deleted=new is None)
            return ()
        if isinstance(new, StorageClass):
            # The class may also be the default of claims without a class.
            return (f"{_CLASS}{new.metadata.name}", _CLASS)
        if isinstance(old, PersistentVolume):
            self._forget(old)
        if isinstance(new, PersistentVolume):
            return [new.metadata.name, *self._waiting_for(new)]
        if isinstance(old, PersistentVolumeClaim):
            self._drop(old.key)
        if isinstance(new, PersistentVolumeClaim):
            return self._of_claim(new)
        if isinstance(old, PersistentVolumeClaim) and old.spec.volume_name:
            self._released[old.spec.volume_name] = old.metadata.uid
            return (old.spec.volume_name,)
        return ()

    def _of_claim(self, claim: PersistentVolumeClaim) -> Iterable[str]:
        if BIND_COMPLETED in claim.metadata.annotations or BOUND_BY_SOURCE in claim.metadata.annotations:
            return ()
        if self._reports and self._consumers is None:
            self._consumers = {}
            for pod in self.store.pods.values():
                self._follow_pod(pod, is_deleted=False)
        storage_class = self._class_of[claim.key] = class_of_claim(claim)
        self._unbound.setdefault(storage_class, {})[claim.key] = None
        return (claim.key,)

    def _follow_pod(self, pod: Pod, *, is_deleted: bool) -> None:
        """Record whether a pod waits for a node, by its claims."""
        name, consumers = pod.metadata.name, self._consumers
        assert consumers is not None
        has_ended = is_deleted or is_finished(pod) or pod.metadata.deletion_timestamp is not None
        for volume in pod.spec.volumes:
            claim = claim_name_of(name, volume)
            if claim is None:
                continue
            key = f"{pod.metadata.namespace}/{claim}"
            if not has_ended and not pod.spec.node_name:
                consumers.setdefault(key, {})[name] = None
            elif key in consumers:
                consumers[key].pop(name, None)
                if not consumers[key]:
                    del consumers[key]

    def _drop(self, key: str) -> None:
        storage_class = self._class_of.pop(key, None)
        if storage_class is not None:
            del self._unbound[storage_class][key]

    def _waiting_for(self, volume: PersistentVolume) -> list[str]:
        """Record a volume as reserved or free.

        Return the keys to reconcile: the volume's claim, or its class if claims of the class wait for a volume.
        """
        name, reference = volume.metadata.name, volume.spec.claim_ref
        if reference is not None:
            key = f"{reference.namespace}/{reference.name}"
            self._meant.setdefault(key, {})[name] = None
            return [key] if key in self._class_of else []
        storage_class = class_of_volume(volume)
        insort(self._free.setdefault(storage_class, []), (storage_amount(volume.spec.capacity), name))
        return [f"{_CLASS}{storage_class}"] if self._unbound.get(storage_class) else []

    def _forget(self, volume: PersistentVolume) -> None:
        name, reference = volume.metadata.name, volume.spec.claim_ref
        if reference is not None:
            self._meant.get(f"{reference.namespace}/{reference.name}", {}).pop(name, None)
        else:
            self._take(volume)

    def _take(self, volume: PersistentVolume) -> None:
        """Remove a volume from the unreserved volumes."""
        free = self._free.get(class_of_volume(volume), [])
        entry = (storage_amount(volume.spec.capacity), volume.metadata.name)
        place = bisect_left(free, entry)
        if place < len(free) and free[place] == entry:
            del free[place]

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Bind a claim, or provision its volume; make a volume available, or release it from a deleted claim."""
        if key.startswith(_CLASS):
            rejected = RejectedWrites()
            for claim in list(self._unbound.get(key.removeprefix(_CLASS), ())):
                with rejected:
                    self._sync_claim(claim, now_ns)
            return rejected.result(None, now_ns)
        elif "/" in key:
            if key in self._class_of:
                self._sync_claim(key, now_ns)
                return now_ns + _RESYNC_NS if self._reports else None
        else:
            volume = self.store.get(PersistentVolume, key)
            if volume is not None and volume.metadata.deletion_timestamp is None:
                self._sync_volume(volume, now_ns)
            self._released.pop(key, None)
        return None

    # Claims.

    def _sync_claim(self, key: str, now_ns: int) -> None:
        """Set the default class of an unbound claim if it has no class, then try to bind the claim."""
        claim = self.store.get(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        claim = self._with_class(claim)
        if class_of_claim(claim) != self._class_of[key]:
            # The claim has just got the default class; the event of that write queues it again.
            return
        self._bind(claim, now_ns)

    def _with_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Return a claim; if it has no class, set the default class, if there is a default class."""
        annotations = claim.metadata.annotations
        if claim.spec.storage_class_name is not None or BETA_STORAGE_CLASS in annotations or claim.spec.volume_name:
            return claim
        default = _default_class(self.store.all(StorageClass))
        if default is None:
            return claim
        return self.writer.update(replace(claim, spec=replace(claim.spec, storage_class_name=default.metadata.name)))

    def _bind(self, claim: PersistentVolumeClaim, now_ns: int) -> None:
        volume = self._volume_for(claim)
        if volume is not None:
            if volume.spec.claim_ref is None:
                # Do not wait for the event of this write: the next claim may be processed before it.
                self._take(volume)
            for changed in volume_writes(volume_for_claim(volume, claim), self.store):
                self.writer.update(changed)
            return
        name = class_of_claim(claim)
        storage_class = self.store.get(StorageClass, name)
        if claim.spec.volume_name:
            return
        if storage_class is None or _waits(claim, storage_class):
            if self._reports:
                self._report_unbound(claim, name, storage_class is not None)
            return
        if storage_class.provisioner not in ("", NO_PROVISIONER):
            node = self.store.nodes.get(claim.metadata.annotations.get(SELECTED_NODE, ""))
            made = self.writer.create(provisioned_volume(claim, storage_class, self.store, node), now_ns)
            text = f"Successfully provisioned volume {made.metadata.name}"
            self.writer.record(claim, "ProvisioningSucceeded", text, made.metadata.annotations.get(PROVISIONED_BY, ""))
            self.writer.update(bound_claim(claim, made))

    def _report_unbound(self, claim: PersistentVolumeClaim, storage_class: str, waits: bool) -> None:
        """Record why a claim is not bound: it waits for pods, its class is missing, or it has no class."""
        if waits:
            pods = (self._consumers or {}).get(claim.key)
            if not pods:
                text = "waiting for first consumer to be created before binding"
                self.record(claim, "WaitForFirstConsumer", text)
            else:
                text = f"waiting for {'pod' if len(pods) == 1 else 'pods'} {','.join(pods)} to be scheduled"
                self.record(claim, "WaitForPodScheduled", text)
        elif storage_class:
            text = f'storageclass.storage.k8s.io "{storage_class}" not found'
            self.record(claim, "ProvisioningFailed", text, type_=WARNING)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self.record(claim, "FailedBinding", text)

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the volume for a claim: the volume named in it, a volume reserved for it, or else the smallest that fits."""
        requested = storage_amount(claim.spec.resources.requests)
        if claim.spec.volume_name:
            named = self.store.get(PersistentVolume, claim.spec.volume_name)
            if named is None or is_bound_to(named, claim):
                return named
            fits = matches_claim(named, claim, requested) and class_of_volume(named) == class_of_claim(claim)
            return named if fits and set(claim.spec.access_modes) <= set(named.spec.access_modes) else None
        for name in sorted(self._meant.get(claim.key, {})):
            meant = self.store.get(PersistentVolume, name)
            if meant is not None and is_bound_to(meant, claim) and matches_claim(meant, claim, requested):
                return meant
        storage_class = self.store.get(StorageClass, class_of_claim(claim))
        if storage_class is not None and _waits(claim, storage_class):
            return None
        selector = EVERYTHING if claim.spec.selector is None else compile_label_selector(claim.spec.selector)
        free = self._free.get(class_of_claim(claim), [])
        for place in range(bisect_left(free, (requested, "")), len(free)):
            volume = self.store.get(PersistentVolume, free[place][1])
            if volume is not None and matches_claim(volume, claim, requested) and is_available(volume, claim, selector):
                return volume
        return None

    # Volumes.

    def _sync_volume(self, volume: PersistentVolume, now_ns: int) -> None:
        """Make a new volume available.

        If the claim of a volume was deleted, delete or release it by its reclaim policy.
        """
        reference, name = volume.spec.claim_ref, volume.metadata.name
        released = self._released.get(name)
        if reference is None:
            if volume.status.phase in ("", "Pending"):
                self.writer.update(replace(volume, status=PersistentVolumeStatus(phase="Available")))
            return
        if released is None or (reference.uid and reference.uid != released):
            return
        if volume.spec.persistent_volume_reclaim_policy == "Delete":
            self.writer.delete(volume, now_ns)
        elif volume.status.phase != "Released":
            self.writer.update(replace(volume, status=PersistentVolumeStatus(phase="Released")))


def _waits(claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
    """Return whether a claim must wait until the scheduler has selected a node for a pod that uses it."""
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return False
    return SELECTED_NODE not in claim.metadata.annotations


def _default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Return the default storage class, or None. Of several classes marked as default, it is the newest, then the first by name."""
    marked = [item for item in classes if item.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return min(marked, key=lambda item: (-_created_ns(item), item.metadata.name), default=None)


def _created_ns(item: StorageClass) -> int:
    created = item.metadata.creation_timestamp
    return parse_time_ns(created) if created is not None else 0
