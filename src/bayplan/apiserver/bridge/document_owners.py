"""The garbage collector over the API: owner references of objects of all kinds, including custom resources.

Deleted owners that still have dependents are recorded in a separate table, so that a restart loses none.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.bridge.document_controller import refs_of
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import ControllerTools, Enqueue
from bayplan.controllers.garbage_collector import GarbageCollector, OwnerGraph, OwnerRefs
from bayplan.controllers.writer import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation

DELETED_OWNERS = "bayplan.io/gone-owners"
"""The table of deleted owners; no resource is served from it."""

Place = tuple[str, str, str]  # Table, namespace, name.
_MAX_SHARED = 10_000
_MAX_RECENTLY_DELETED = 10_000


class DocumentOwners(OwnerGraph[Place]):
    """The owner references of all stored objects.

    Args:
        documents: the API's store.
        writer: writes untyped objects through the API.
    """

    def __init__(self, documents: Store, writer: ObjectWriter) -> None:
        self._documents = documents
        self._writer = writer
        self._refs: dict[Place, OwnerRefs] = {}
        # Equal references, so that the pods of one owner can share them.
        self._alike: dict[OwnerRefs, OwnerRefs] = {}
        self._dependents: dict[str, dict[Place, None]] = {}

    # --- the index ----------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget all references."""
        self._refs.clear()
        self._dependents.clear()

    def link(self, place: Place, refs: OwnerRefs) -> None:
        """Set the references of a new or changed object."""
        before = self._refs.get(place)
        if before is None or before.owner_references != refs.owner_references:
            self.unlink(place)
            for owner in refs.owner_references:
                self._dependents.setdefault(owner.uid, {})[place] = None
        if refs.owner_references:
            self._refs[place] = self._shared(without_uid(refs))

    def unlink(self, place: Place) -> OwnerRefs:
        """Forget the references of an object, and return them."""
        refs = self._refs.pop(place, OwnerRefs())
        for owner in refs.owner_references:
            others = self._dependents.get(owner.uid)
            if others is not None:
                others.pop(place, None)
                if not others:
                    del self._dependents[owner.uid]
        return refs

    def _shared(self, refs: OwnerRefs) -> OwnerRefs:
        if len(self._alike) >= _MAX_SHARED:
            self._alike.clear()
        return self._alike.setdefault(refs, refs)

    # --- the graph ----------------------------------------------------------------------------------------------------

    def dependents(self, uid: str) -> list[Place]:
        """Return the objects that have an owner reference to this uid."""
        return list(self._dependents.get(uid, ()))

    def refs(self, place: Place) -> OwnerRefs | None:
        """Return the current references of an object, or None if it does not exist."""
        item = self._item(place)
        return refs_of(item) if item is not None else None

    def is_deleted(self, uid: str) -> bool:
        """Return whether the owner is recorded as deleted with dependents left."""
        return self._documents.get(DELETED_OWNERS, ("", uid)) is not None

    def record_deleted(self, uid: str) -> None:
        """Record that an owner was deleted."""
        if not self.is_deleted(uid):
            self._documents.put(DELETED_OWNERS, Item(b"{}", self._documents.revision + 1, "", uid, uid, {}, {}))

    def forget_deleted(self, uid: str) -> None:
        """Remove the record of a deleted owner, because it has no dependents left."""
        if self.is_deleted(uid):
            self._documents.remove(DELETED_OWNERS, Item(b"{}", self._documents.revision + 1, "", uid, uid, {}, {}))

    def delete(self, place: Place, now_ns: int, *, foreground: bool) -> None:
        """Delete an object, in the foreground or as its finalizers ask for, or else in the background."""
        table, namespace, name = place
        item = self._item(place)
        if item is not None:
            self._writer.delete(table, (namespace, name), propagation=_propagation(item, foreground), uid=item.uid)

    def drop_reference(self, place: Place, uid: str) -> None:
        """Remove the owner reference with this uid from an object."""
        item = self._item(place)
        if item is None:
            return
        table, namespace, name = place
        metadata = dict(part(self._writer.document(table, item), "metadata"))
        owners = parts(metadata, "ownerReferences")
        controls = any(owner.get("uid") == uid and owner.get("controller") for owner in owners)
        _set(metadata, "ownerReferences", [owner for owner in owners if owner.get("uid") != uid])
        if controls:
            # Without its Job, nothing would ever remove the pod's tracking finalizer.
            left = [each for each in texts(metadata, "finalizers") if each != JOB_TRACKING_FINALIZER]
            _set(metadata, "finalizers", left)
        self._writer.change(table, (namespace, name), {"metadata": metadata})

    def drop_finalizer(self, place: Place, finalizer: str) -> None:
        """Remove a finalizer from an object."""
        table, namespace, name = place
        self._writer.drop_finalizer(table, (namespace, name), finalizer)

    def _item(self, place: Place) -> Item | None:
        return self._documents.get(place[0], place[1:])


class DocumentGarbageCollector(GarbageCollector[Place]):
    """The garbage collector of the API, driven by the writes of its store; a `DocumentFollower`.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
        writer: writes untyped objects through the API.
        enqueue: queues a reconcile of this controller.
    """

    def __init__(self, tools: ControllerTools, documents: Store, writer: ObjectWriter, enqueue: Enqueue) -> None:
        self._owners = DocumentOwners(documents, writer)
        super().__init__(tools, self._owners)
        self._documents = documents
        self._enqueue = enqueue
        # The uids of deleted objects. A controller may create a dependent before it learns of the owner's deletion.
        self._recently_deleted: dict[str, None] = {}

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return no keys: `follow` receives all writes, including those of typed objects."""
        return ()

    def begin(self, now_ns: int) -> None:
        """Read the references of all existing objects, and queue the recorded deleted owners."""
        self._owners.clear()
        self.forget_all()
        self._recently_deleted.clear()
        for table in self._documents.table_names():
            for item in self._documents.table(table).items():
                if table == DELETED_OWNERS:
                    self._enqueue(self, item.name, now_ns)
                else:
                    self._record_item(table, item, now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Update the references.

        Queue a deleted owner, and owners in foreground deletion that waited for a deleted dependent.
        """
        if write.table == DELETED_OWNERS:
            return
        if write.type != DELETED:
            self._record_item(write.table, write.new, now_ns)
            return
        item = write.new
        self._recently_deleted[item.uid] = None
        if len(self._recently_deleted) > _MAX_RECENTLY_DELETED:
            del self._recently_deleted[next(iter(self._recently_deleted))]
        refs = self._owners.unlink((write.table, item.namespace, item.name))
        for uid in self.record_deletion(OwnerRefs(item.uid, None, refs.owner_references)):
            self._enqueue(self, uid, now_ns)

    def _record_item(self, table: str, item: Item, now_ns: int) -> None:
        place, refs = (table, item.namespace, item.name), refs_of(item)
        self._owners.link(place, refs)
        self._recently_deleted.pop(refs.uid, None)
        for owner in refs.owner_references:
            if owner.uid in self._recently_deleted and refs.deletion_timestamp is None:
                self._owners.record_deleted(owner.uid)
        for uid in self.record_object(place, refs):
            self._enqueue(self, uid, now_ns)


def _propagation(item: Item, foreground: bool) -> str:
    finalizers = refs_of(item).finalizers
    if not foreground and ORPHAN_FINALIZER in finalizers:
        return Propagation.ORPHAN.value
    if foreground or FOREGROUND_FINALIZER in finalizers:
        return Propagation.FOREGROUND.value
    return Propagation.BACKGROUND.value


def without_uid(refs: OwnerRefs) -> OwnerRefs:
    """Return references without the uid of the object itself, so that they are equal for all pods of one owner."""
    return OwnerRefs("", refs.deletion_timestamp, refs.owner_references, refs.finalizers)


def _set(metadata: Document, name: str, value: object) -> None:
    if value:
        metadata[name] = value
    else:
        metadata.pop(name, None)
