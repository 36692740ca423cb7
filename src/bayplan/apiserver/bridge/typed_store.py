"""The typed store: each object of the API's store that has a typed kind, decoded once, under the API's revision.

It is the `bayplan.cluster.ObjectStore` that controllers read. It is never ahead of the API's store and has the same
content, which `check` verifies.
"""

from __future__ import annotations

import logging
from typing import TypeVar

from msgspec.structs import replace

from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError, InvariantError
from bayplan.base.random_streams import RandomStream
from bayplan.cluster.store import ADDED, ChangeEvent, Kind, ObjectStore
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.kinds import KINDS
from bayplan.objects.meta import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)

_log = logging.getLogger("bayplan.bridge")

KIND_OF_TABLE: dict[str, Kind] = {
    f"{kind.group}/{kind.plural}" if kind.group else kind.plural: kind.struct for kind in KINDS
}
TABLE_OF_KIND: dict[Kind, str] = {struct: table for table, struct in KIND_OF_TABLE.items()}
_KEPT = ("spec", "status", "template")


class TypedStore(ObjectStore):
    """Typed objects in sync with the API's store.

    Args:
        documents: the API's store.
        uid_stream: see `ObjectStore`; only used for objects without a uid.

    Attributes:
        undecodable: the errors of stored objects of typed kinds that cannot be decoded, by ``table namespace/name``.
            They are ignored.
    """

    __slots__ = ("_decoder", "_documents", "undecodable")

    def __init__(self, documents: Store, uid_stream: RandomStream) -> None:
        super().__init__(uid_stream)
        self._documents = documents
        self._decoder = ObjectDecoder()
        self.undecodable: dict[str, InputError] = {}
        self.read_all()

    # --- synchronization ----------------------------------------------------------------------------------------------

    def follow(self, write: Write) -> None:
        """Apply a write of the API's store."""
        kind = KIND_OF_TABLE.get(write.table)
        if kind is None:
            return
        if write.type == DELETED:
            self._drop(kind, write.table, write.new, write.revision)
        else:
            self._take(kind, write.table, write.new, write.revision)

    def read_all(self) -> None:
        """Synchronize with all stored objects in revision order, at the start and after a gap in the history."""
        found = [
            (item.revision, table, item) for table in KIND_OF_TABLE for item in self._documents.table(table).items()
        ]
        present = {(KIND_OF_TABLE[table], _key(item)) for _, table, item in found}
        begun, moment, is_first = len(self.journal()), self._documents.revision, not self.kinds()
        for kind, table in TABLE_OF_KIND.items():
            for key in [key for key in self.keys(kind) if (kind, key) not in present]:
                self.undecodable.pop(f"{table} {key}", None)
                self._remove_typed(kind, key, moment)
        for revision, table, item in sorted(found, key=lambda each: each[0]):
            self._take(KIND_OF_TABLE[table], table, item, revision)
        self.resource_version = moment
        if not is_first:
            # Restored objects have their old versions, but the changes happen at the current revision.
            journal = self.journal()
            journal[begun:] = [replace(event, resource_version=moment) for event in journal[begun:]]

    def _take(self, kind: Kind, table: str, item: Item, revision: int) -> None:
        key = _key(item)
        try:
            new = self._decode(item, kind)
        except InputError as problem:
            self.undecodable[f"{table} {key}"] = problem
            _log.warning("%s %s is ignored: %s", table, key, problem)
            if self.get(kind, key) is not None:
                self._remove_typed(kind, key, revision)
            return
        self.undecodable.pop(f"{table} {key}", None)
        old = self.get(kind, key)
        if old is not None and old.metadata.resource_version == new.metadata.resource_version and old == new:
            return
        if old is not None and old.metadata.uid != new.metadata.uid:
            # A write replaced the object with a different object of the same name.
            self._remove_typed(kind, key, revision)
            old = None
        self.resource_version = revision - 1
        if old is None:
            super().add(new, 0)
        else:
            super().update(_sharing(new, old))

    def _decode(self, item: Item, kind: Kind) -> KubernetesObject:
        """Return the typed form of a stored object.

        Raises:
            InputError: the object cannot be decoded.
        """
        try:
            return self._decoder.decode(item.raw, kind)
        except InputError:
            raise
        except Exception as problem:  # An unexpected object must not stop the API.
            _log.exception("%s %s", kind.__name__, _key(item))
            raise InputError(f"{kind.__name__} {_key(item)}", got=str(problem)) from problem

    def _drop(self, kind: Kind, table: str, item: Item, revision: int) -> None:
        key = _key(item)
        self.undecodable.pop(f"{table} {key}", None)
        if self.get(kind, key) is not None:
            self._remove_typed(kind, key, revision)

    def _remove_typed(self, kind: Kind, key: str, revision: int) -> None:
        self.resource_version = revision - 1
        super().remove(kind, key)

    # --- reading ------------------------------------------------------------------------------------------------------

    def initial_events(self) -> list[ChangeEvent]:
        """Return an ADDED event for every object, in revision order, for a new listener."""
        events = [
            ChangeEvent(ADDED, kind, None, item, int(item.metadata.resource_version))
            for kind in self.kinds()
            for item in self.all(kind)
        ]
        return sorted(events, key=lambda event: event.resource_version)

    def check(self) -> None:
        """Check that each object equals its freshly decoded form, and that all indexes are consistent.

        Called by tests, and by servers with the option `check`.

        Raises:
            InvariantError: there is a difference.
        """
        self.check_invariants()
        decoder = ObjectDecoder()
        for table, kind in KIND_OF_TABLE.items():
            left = set(self.keys(kind))
            for item in self._documents.table(table).items():
                key = _key(item)
                try:
                    fresh = decoder.decode(item.raw, kind)
                except InputError:
                    if f"{table} {key}" not in self.undecodable:
                        raise InvariantError(f"{table} {key} can't be decoded, and no problem was reported") from None
                    continue
                left.discard(key)
                if self.get(kind, key) != fresh:
                    raise InvariantError(f"{table} {key} is {self.get(kind, key)} but should be {fresh}")
            if left:
                raise InvariantError(f"{table}: {sorted(left)} are not stored")


def _key(item: Item) -> str:
    return f"{item.namespace}/{item.name}" if item.namespace else item.name


def _sharing(new: T, old: T) -> T:
    """Return the new version, sharing equal parts with the old version, so that `is` detects unchanged parts."""
    changes: dict[str, object] = {}
    for name in _KEPT:
        before = getattr(old, name, None)
        if before is not None and before is not getattr(new, name) and before == getattr(new, name):
            changes[name] = before
    metadata, was = new.metadata, old.metadata
    shared = {
        name: getattr(was, name)
        for name in ("labels", "annotations", "owner_references", "finalizers")
        if getattr(was, name) is not getattr(metadata, name) and getattr(was, name) == getattr(metadata, name)
    }
    if shared:
        changes["metadata"] = replace(metadata, **shared)
    return replace(new, **changes) if changes else new
