"""The garbage collector: deletes or orphans dependents of every kind when their owners are deleted.

Background: dependents are deleted once the owner is gone. Foreground: the owner waits for the dependents that block it.
Orphan: dependents lose the reference. Only owners whose deletion was observed count: if an owner never existed in this
cluster (a dump of pods without their ReplicaSets), its dependents stay, although upstream would delete them.

This module contains the rules. An `OwnerGraph` reads and changes the objects: `StoreOwners` typed objects in a
simulation, `bayplan.apiserver.bridge.document_owners` documents of every kind over the API.

Source: pkg/controller/garbagecollector v1.36.3, https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER
from bayplan.cluster.store import DELETED, ChangeEvent, Kind, ObjectStore, object_key
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.controllers.writer import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation, Writer
from bayplan.objects.meta import KubernetesObject, OwnerReference

P = TypeVar("P")
T = TypeVar("T")


class OwnerRefs(msgspec.Struct, gc=False, rename="camel", frozen=True):
    """Owner references, finalizers and deletion time of an object.

    Attributes:
        uid: the uid of the object.
        deletion_timestamp: `metadata.deletionTimestamp`, or None if the object is not being deleted.
        owner_references, finalizers: the references and finalizers in its metadata.
    """

    uid: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def asks_for_dependents(self) -> bool:
        """Whether the object is being deleted and has the finalizer of foreground deletion or of orphaning."""
        asks = FOREGROUND_FINALIZER in self.finalizers or ORPHAN_FINALIZER in self.finalizers
        return asks and self.deletion_timestamp is not None


class OwnerGraph(ABC, Generic[P]):
    """The graph of owners and dependents. The type parameter `P` identifies an object."""

    @abstractmethod
    def dependents(self, uid: str) -> list[P]:
        """Return the objects with an owner reference to a uid, in the order of their creation."""

    @abstractmethod
    def refs(self, place: P) -> OwnerRefs | None:
        """Return the references of an object, or None if it does not exist."""

    @abstractmethod
    def is_deleted(self, uid: str) -> bool:
        """Return whether an owner is deleted and still has dependents to process."""

    @abstractmethod
    def record_deleted(self, uid: str) -> None:
        """Record that an owner is deleted."""

    @abstractmethod
    def forget_deleted(self, uid: str) -> None:
        """Forget a deleted owner, after all its dependents were processed."""

    @abstractmethod
    def delete(self, place: P, now_ns: int, *, foreground: bool) -> None:
        """Delete an object.

        In a background deletion, the object keeps a finalizer of orphaning or foreground deletion that it already has.
        """

    @abstractmethod
    def drop_reference(self, place: P, uid: str) -> None:
        """Remove the reference to an owner; if that is the controller, also remove the tracking finalizer of Jobs."""

    @abstractmethod
    def drop_finalizer(self, place: P, finalizer: str) -> None:
        """Remove a finalizer from an object."""


class GarbageCollector(Controller, Generic[P]):
    """Reconciles owners, by uid: deleted owners, and owners that wait for their dependents.

    Args:
        tools: see `ControllerTools`.
        graph: the graph of the objects.
    """

    kind = KubernetesObject

    def __init__(self, tools: ControllerTools, graph: OwnerGraph[P]) -> None:
        super().__init__(tools)
        self.graph = graph
        self._waiting: dict[str, P] = {}

    # --- events -------------------------------------------------------------------------------------------------------

    def forget_all(self) -> None:
        """Forget the waiting owners; the caller then calls `record_object` for every object."""
        self._waiting.clear()

    def record_object(self, place: P, refs: OwnerRefs) -> list[str]:
        """Record a new or changed object; return the uids of the owners to reconcile."""
        found = []
        if refs.asks_for_dependents:
            self._waiting[refs.uid] = place
            found.append(refs.uid)
        elif self._waiting:
            self._waiting.pop(refs.uid, None)
        for owner in refs.owner_references:
            if owner.uid in self._waiting or self.graph.is_deleted(owner.uid):
                found.append(owner.uid)
        return found

    def record_deletion(self, refs: OwnerRefs) -> list[str]:
        """Record the deletion of an object; return the uids of the owners to reconcile, including the object itself."""
        found = [owner.uid for owner in refs.owner_references if owner.uid in self._waiting]
        self._waiting.pop(refs.uid, None)
        if self.graph.dependents(refs.uid):
            self.graph.record_deleted(refs.uid)
            found.append(refs.uid)
        return found

    # --- reconcile ----------------------------------------------------------------------------------------------------

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Delete, wait for, or release the dependents of one owner."""
        place = self._waiting.get(key)
        refs = self.graph.refs(place) if place is not None else None
        if place is not None and refs is not None and refs.uid == key:
            return self._serve(place, refs, now_ns)
        if not self.graph.is_deleted(key):
            return None
        left = self._remaining_dependents(key)
        is_done, outcome = self._process(key, left, lambda each: self._remove_owner(*each, key, now_ns), now_ns)
        if is_done:
            self.graph.forget_deleted(key)
        return outcome

    def _process(self, uid: str, left: list[T], act: Callable[[T], None], now_ns: int) -> tuple[bool, ReconcileResult]:
        """Process up to `burst` dependents of an owner; return whether none is left, and the result of the reconcile."""
        rejected = RejectedWrites()
        done, more = self.write_each(uid, left, act, rejected)
        return len(done) == len(left), rejected.result(now_ns if more else None, now_ns)

    def _serve(self, place: P, owner: OwnerRefs, now_ns: int) -> ReconcileResult:
        """Orphan or delete the dependents of an owner, then drop its finalizer."""
        uid = owner.uid
        dependents = self.graph.dependents(uid)
        if ORPHAN_FINALIZER in owner.finalizers:
            is_done, outcome = self._process(uid, dependents, lambda each: self.graph.drop_reference(each, uid), now_ns)
            if is_done:
                self.graph.drop_finalizer(place, ORPHAN_FINALIZER)
            return outcome
        if FOREGROUND_FINALIZER not in owner.finalizers:
            return None
        # A dependent that has dependents is deleted in the foreground, so that they are deleted first.
        is_done, outcome = self._process(
            uid,
            self._remaining_dependents(uid),
            lambda each: self.graph.delete(each[0], now_ns, foreground=bool(self.graph.dependents(each[1].uid))),
            now_ns,
        )
        if is_done and not any(self._blocks(each, uid) for each in self.graph.dependents(uid)):
            self.graph.drop_finalizer(place, FOREGROUND_FINALIZER)
        return outcome

    def _remove_owner(self, dependent: P, refs: OwnerRefs, uid: str, now_ns: int) -> None:
        if any(not self.graph.is_deleted(owner.uid) for owner in refs.owner_references if owner.uid != uid):
            self.graph.drop_reference(dependent, uid)
        else:
            self.graph.delete(dependent, now_ns, foreground=False)

    def _remaining_dependents(self, uid: str) -> list[tuple[P, OwnerRefs]]:
        """Return the dependents that are not being deleted, and their references."""
        found = ((place, self.graph.refs(place)) for place in self.graph.dependents(uid))
        return [(place, refs) for place, refs in found if refs is not None and refs.deletion_timestamp is None]

    def _blocks(self, place: P, uid: str) -> bool:
        """Return whether an existing object blocks the deletion of its owner."""
        refs = self.graph.refs(place)
        return refs is not None and any(
            owner.uid == uid and bool(owner.block_owner_deletion) for owner in refs.owner_references
        )


# --- typed objects ----------------------------------------------------------------------------------------------------

Place = tuple[Kind, str]


class StoreOwners(OwnerGraph[Place]):
    """The owner graph of the objects of a store.

    Args:
        store: the store, with its index of dependents.
        writer: the writer that changes objects.
    """

    def __init__(self, store: ObjectStore, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        # The uids of deleted owners with dependents to process.
        self._deleted_owners: dict[str, None] = {}

    def dependents(self, uid: str) -> list[Place]:
        """Return the objects with an owner reference to a uid."""
        return self._store.places_of_dependents(uid)

    def refs(self, place: Place) -> OwnerRefs | None:
        """Return the references of an object, or None if it does not exist."""
        item = self._store.get(*place)
        return refs_of(item) if item is not None else None

    def is_deleted(self, uid: str) -> bool:
        """Return whether an owner is deleted and still has dependents to process."""
        return uid in self._deleted_owners

    def record_deleted(self, uid: str) -> None:
        """Record that an owner is deleted."""
        self._deleted_owners[uid] = None

    def forget_deleted(self, uid: str) -> None:
        """Forget a deleted owner, after all its dependents were processed."""
        self._deleted_owners.pop(uid, None)

    def delete(self, place: Place, now_ns: int, *, foreground: bool) -> None:
        """Delete an object; `foreground` selects the propagation."""
        item = self._store.get(*place)
        if item is not None:
            propagation = Propagation.FOREGROUND if foreground else Propagation.BACKGROUND
            self._writer.delete(item, now_ns, propagation=propagation)

    def drop_reference(self, place: Place, uid: str) -> None:
        """Remove the reference to an owner from an object; see `OwnerGraph.drop_reference`."""
        item = self._store.get(*place)
        if item is None:
            return
        metadata = item.metadata
        owners = tuple(owner for owner in metadata.owner_references if owner.uid != uid)
        finalizers = metadata.finalizers
        controller = metadata.controller()
        if controller is not None and controller.uid == uid:
            # No Job remains that could count the pod.
            finalizers = tuple(name for name in finalizers if name != JOB_TRACKING_FINALIZER)
        metadata = replace(metadata, owner_references=owners, finalizers=finalizers)
        self._writer.update(replace(item, metadata=metadata))

    def drop_finalizer(self, place: Place, finalizer: str) -> None:
        """Remove a finalizer from an object."""
        item = self._store.get(*place)
        if item is not None:
            self._writer.drop_finalizer(item, finalizer)


class StoreGarbageCollector(GarbageCollector[Place]):
    """The garbage collector of an `ObjectStore`, driven by the events of its objects."""

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools, StoreOwners(tools.store, tools.writer))

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the uid of an owner that is deleted or has a deletion finalizer, and of owners that wait for this object."""
        item = event.object
        refs = refs_of(item)
        return (
            self.record_deletion(refs)
            if event.type == DELETED
            else self.record_object((event.kind, object_key(item.metadata)), refs)
        )


def refs_of(item: KubernetesObject) -> OwnerRefs:
    """Return the references of a typed object."""
    metadata = item.metadata
    return OwnerRefs(metadata.uid, metadata.deletion_timestamp, metadata.owner_references, metadata.finalizers)
