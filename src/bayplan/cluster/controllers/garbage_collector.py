"""The garbage collector: what was owned goes when its last owner has gone, before it, or stays, as the deletion asked for.

It acts on deletions that happen here. An object whose owner was never in the store is left alone, since recorded
clusters often come without the owners of their pods.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.cluster.controllers.controller import Controller, ControllerTools
from bayplan.cluster.deletion import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation
from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER
from bayplan.cluster.store import DELETED, ChangeEvent, Kind, object_key
from bayplan.objects.meta import KubernetesObject


class GarbageCollector(Controller):
    """Reconcile owners, by uid: those that are gone, and those that wait for their dependents."""

    kind = KubernetesObject

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._waiting: dict[str, tuple[Kind, str]] = {}
        self._gone: dict[str, None] = {}

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the uid of an owner that went or asks for its dependents, and of owners that wait for this object."""
        item = event.object
        metadata = item.metadata
        if event.type == DELETED:
            waiting = [owner.uid for owner in metadata.owner_references if owner.uid in self._waiting]
            if self.store.has_dependents(metadata.uid):
                self._gone[metadata.uid] = None
                waiting.append(metadata.uid)
            self._waiting.pop(metadata.uid, None)
            return waiting
        asks = FOREGROUND_FINALIZER in metadata.finalizers or ORPHAN_FINALIZER in metadata.finalizers
        if asks and metadata.deletion_timestamp is not None:
            self._waiting[metadata.uid] = (event.kind, object_key(metadata))
            return (metadata.uid,)
        return ()

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Delete, wait for, or let go of the dependents of one owner."""
        if key in self._gone:
            del self._gone[key]
            for dependent in self.store.all_dependents(key):
                self._lose_owner(dependent, key, now_ns)
            return None
        place = self._waiting.get(key)
        owner = self.store.get(*place) if place is not None else None
        if owner is None or owner.metadata.uid != key:
            return None
        if ORPHAN_FINALIZER in owner.metadata.finalizers:
            for dependent in self.store.all_dependents(key):
                self._drop_reference(dependent, key)
            self._let_go(owner, ORPHAN_FINALIZER)
            return None
        blocking = False
        for dependent in self.store.all_dependents(key):
            if dependent.metadata.deletion_timestamp is None:
                # What it owns in turn goes before it as well.
                self.deletion.delete(dependent, now_ns, propagation=Propagation.FOREGROUND)
            held = self.store.get(type(dependent), dependent.key)
            if held is not None and held.metadata.uid == dependent.metadata.uid:
                blocking = blocking or any(
                    reference.uid == key and bool(reference.block_owner_deletion)
                    for reference in held.metadata.owner_references
                )
        if not blocking:
            self._let_go(owner, FOREGROUND_FINALIZER)
        return None

    def _let_go(self, owner: KubernetesObject, finalizer: str) -> None:
        del self._waiting[owner.metadata.uid]
        self.deletion.drop_finalizer(owner, finalizer)

    def _lose_owner(self, dependent: KubernetesObject, uid: str, now_ns: int) -> None:
        others = [owner for owner in dependent.metadata.owner_references if owner.uid != uid]
        if any(owner.uid not in self._gone for owner in others):
            self._drop_reference(dependent, uid)
        elif dependent.metadata.deletion_timestamp is None:
            self.deletion.delete(dependent, now_ns)

    def _drop_reference(self, dependent: KubernetesObject, uid: str) -> None:
        metadata = dependent.metadata
        owners = tuple(owner for owner in metadata.owner_references if owner.uid != uid)
        finalizers = metadata.finalizers
        controller = metadata.controller()
        if controller is not None and controller.uid == uid:
            # Nobody is left to count the pod for its Job.
            finalizers = tuple(name for name in finalizers if name != JOB_TRACKING_FINALIZER)
        metadata = replace(metadata, owner_references=owners, finalizers=finalizers)
        self.store.update(replace(dependent, metadata=metadata))
