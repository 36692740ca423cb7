"""Writes typed objects of controllers and the kubelet through the API.

Typed objects are therefore never ahead of the API's store, and a rejected write has no effect. The stored result
arrives through the `TypedStore`, which has processed the write before the call returns.
"""

from __future__ import annotations

from typing import TypeVar, cast

from msgspec.structs import replace

from bayplan.apiserver.bridge.event_recorder import EventRecorder
from bayplan.apiserver.bridge.merging import merged
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.bridge.status_details import complete_status
from bayplan.apiserver.bridge.templates import Templates, plain
from bayplan.apiserver.bridge.typed_store import TABLE_OF_KIND, TypedStore
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.store import Store
from bayplan.apiserver.store.table import Key
from bayplan.base.errors import InvariantError
from bayplan.base.plain_data import Document, part, parts
from bayplan.cluster.store import object_key
from bayplan.controllers.writer import NORMAL, Propagation
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.storage import PersistentVolume
from bayplan.objects.workloads import Deployment

T = TypeVar("T", bound=KubernetesObject)

# Metadata fields that controllers change; the server owns the rest.
_METADATA = ("labels", "annotations", "owner_references", "finalizers")
# Like upstream, write a Deployment's revision annotation through the status endpoint, so that the generation does not change.
_METADATA_WITH_STATUS = (Deployment,)
# A create drops the status, so new objects of these kinds need a second write.
_BORN_WITH_STATUS = (PersistentVolume,)


class ApiWriter:
    """Writes typed objects through the API; implements `bayplan.controllers.writer.Writer`.

    Args:
        store: the typed objects, in sync with the API's store.
        documents: the API's store.
        writer: writes untyped objects through the API.
        recorder: the recorder of events.
    """

    records_events = True

    def __init__(self, store: TypedStore, documents: Store, writer: ObjectWriter, recorder: EventRecorder) -> None:
        self._store = store
        self._documents = documents
        self._writer = writer
        self._recorder = recorder
        self._templates = Templates(store, documents)

    def create(self, new: T, now_ns: int) -> T:
        """Create an object with all fields of its owner's template, and return the stored object."""
        kind, key = type(new), object_key(new.metadata)
        self._writer.create(TABLE_OF_KIND[kind], new.metadata.namespace, self._templates.document_of(new))
        stored = self._stored(kind, key)
        if isinstance(stored, _BORN_WITH_STATUS):
            return self.update(replace(stored, status=new.status))  # type: ignore[attr-defined]
        return stored

    def _stored(self, kind: type[T], key: str) -> T:
        stored = self._store.get(kind, key)
        if stored is None:
            raise InvariantError(f"{kind.__name__} {key} was written but does not exist")
        return stored

    def update(self, new: T) -> T:
        """Write the fields that differ from the stored version, and return the stored result.

        Raises:
            InvariantError: the object does not exist, or has a different uid.
            WriteRejected: the API rejects the write.
        """
        kind, key = type(new), object_key(new.metadata)
        old = self._store.get(kind, key)
        if old is None or old.metadata.uid != new.metadata.uid:
            raise InvariantError(f"update of {kind.__name__} {key} with uid {new.metadata.uid!r}, which is not stored")
        table, place = TABLE_OF_KIND[kind], (new.metadata.namespace, new.metadata.name)
        has_status = self._writer.resource(table).has_status
        document = self._document(table, place)
        changes = _changes(document, old, new, with_status=not has_status)
        if changes:
            through = "status" if kind in _METADATA_WITH_STATUS and tuple(changes) == ("metadata",) else ""
            self._writer.change(table, place, changes, through, old=document)
            document = self._document(table, place)
        if has_status and getattr(new, "status") != getattr(old, "status"):  # noqa: B009  # Not every kind has one.
            self._write_status(table, place, document, old, new)
        # A write that removes the last finalizer deletes the object.
        return self._store.get(kind, key) or new

    def _write_status(
        self, table: str, place: Key, document: Document, old: KubernetesObject, new: KubernetesObject
    ) -> None:
        before, after = (plain(each.status) for each in (old, new))  # type: ignore[attr-defined]
        status = cast("Document", merged(document.get("status") or {}, before, after))
        complete_status(new, document, status, parts(part(document, "status"), "conditions"), self._writer.now())
        self._writer.change(table, place, {"status": status}, "status", old=document)

    def _document(self, table: str, place: Key) -> Document:
        item = self._documents.get(table, place)
        if item is None:
            raise InvariantError(f"{table} {place} is in the typed store but has no document")
        return decode_item(item)

    def remove(self, kind: type[T], key: str) -> T:
        """Delete an object without a grace period, and return its last version.

        If it has finalizers, it stays until they are removed.

        Raises:
            InvariantError: the object does not exist.
            WriteRejected: the API rejects the write.
        """
        old = self._stored(kind, key)
        place = (old.metadata.namespace, old.metadata.name)
        self._writer.delete(TABLE_OF_KIND[kind], place, grace_seconds=0, uid=old.metadata.uid)
        return old

    def delete(
        self,
        item: KubernetesObject,
        now_ns: int,
        *,
        grace_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete an object as a client would, with grace period, finalizers and propagation policy."""
        metadata = item.metadata
        self._writer.delete(
            TABLE_OF_KIND[type(item)],
            (metadata.namespace, metadata.name),
            grace_seconds=grace_seconds,
            propagation=propagation.value,
            uid=metadata.uid,
        )

    def drop_finalizer(self, item: KubernetesObject, finalizer: str) -> None:
        """Remove a finalizer from an object. The API then deletes a terminating object without other finalizers."""
        metadata = item.metadata
        if finalizer in metadata.finalizers:
            self._writer.drop_finalizer(TABLE_OF_KIND[type(item)], (metadata.namespace, metadata.name), finalizer)

    def record(self, item: KubernetesObject, reason: str, message: str, component: str, *, type_: str = NORMAL) -> None:
        """Record an event about an object: the stored version, or `item` if that was deleted or replaced."""
        stored = self._store.get(type(item), object_key(item.metadata))
        if stored is not None and stored.metadata.uid == item.metadata.uid:
            item = stored
        self._recorder.record(item, reason, message, component, type_=type_)


def _changes(document: Document, old: KubernetesObject, new: KubernetesObject, *, with_status: bool) -> Document:
    """Return the changed top-level fields of an object, merged into their stored form.

    Args:
        document: the stored object.
        old: the typed form of the stored object.
        new: the changed typed form.
        with_status: whether to include the status; False if it has its own endpoint.
    """
    names = [
        name
        for name in old.__struct_fields__
        if name != "metadata"
        and (with_status or name != "status")
        and getattr(old, name) is not getattr(new, name)
        and getattr(old, name) != getattr(new, name)
    ]
    metadata = {
        name: getattr(new.metadata, name)
        for name in _METADATA
        if getattr(new.metadata, name) != getattr(old.metadata, name)
    }
    changes: Document = {}
    if metadata:
        wanted = replace(old.metadata, **metadata)
        changes["metadata"] = merged(part(document, "metadata"), plain(old.metadata), plain(wanted))
    encoded = dict(zip(old.__struct_fields__, old.__struct_encode_fields__, strict=True)) if names else {}
    for name in names:
        field = encoded[name]
        changes[field] = merged(document.get(field), plain(getattr(old, name)), plain(getattr(new, name)))
    return changes
