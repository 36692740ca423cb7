"""The objects that scheduling reads, except nodes and pods: namespaces, services, claims, volumes, classes, budgets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from bayplan.objects.meta import KubernetesObject

T = TypeVar("T", bound=msgspec.Struct)


class ObjectCatalog:
    """Objects by type, then by ``namespace/name`` (``name`` if cluster-scoped), in the order of their addition.

    The `version` of a type changes with every write, so that users of compiled objects notice changes; `written`
    returns the keys that changed.

    Attributes:
        writes: the number of all writes of any type; while it is unchanged, so are all versions.
        journal: the functions that undo the writes of a trial (see `ClusterState.trial`), in order; None outside trials.
    """

    REMEMBERED = 1 << 15
    """Minimum number of remembered writes per type; the maximum is twice as high."""

    def __init__(self) -> None:
        self.writes = 0
        self.journal: list[Callable[[], object]] | None = None
        self._objects: dict[type[msgspec.Struct], dict[str, msgspec.Struct]] = {}
        self._versions: dict[type[msgspec.Struct], int] = {}
        self._written: dict[type[msgspec.Struct], list[str]] = {}

    def put(self, key: str, item: msgspec.Struct) -> msgspec.Struct | None:
        """Add or replace an object; return the previous one, or None."""
        kind = type(item)
        objects = self._objects.setdefault(kind, {})
        old = objects.get(key)
        objects[key] = item
        self._note(kind, key)
        if self.journal is not None:
            self.journal.append(lambda: self.put(key, old) if old is not None else self.remove(kind, key))
        return old

    def remove(self, kind: type[T], key: str) -> T | None:
        """Remove an object; return it, or None if it did not exist."""
        old = self._objects.get(kind, {}).pop(key, None)
        self._note(kind, key)
        if self.journal is not None and old is not None:
            self.journal.append(lambda: self.put(key, old))
        return old if isinstance(old, kind) else None

    def _note(self, kind: type[msgspec.Struct], key: str) -> None:
        self._versions[kind] = self._versions.get(kind, 0) + 1
        self.writes += 1
        written = self._written.setdefault(kind, [])
        written.append(key)
        if len(written) >= 2 * self.REMEMBERED:
            del written[: self.REMEMBERED]

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object of this type by its key, or None."""
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> Iterator[T]:
        """Yield the objects of one type."""
        for item in self._objects.get(kind, {}).values():
            if isinstance(item, kind):
                yield item

    def keys(self, kind: type[msgspec.Struct]) -> Collection[str]:
        """Return the keys of the objects of one type."""
        return self._objects.get(kind, {})

    def everything(self) -> Iterator[KubernetesObject]:
        """Yield the Kubernetes objects of all types."""
        for items in self._objects.values():
            for item in items.values():
                if isinstance(item, KubernetesObject):
                    yield item

    def version(self, kind: type[msgspec.Struct]) -> int:
        """Return a number that changes whenever an object of this type is written."""
        return self._versions.get(kind, 0)

    def written(self, kind: type[msgspec.Struct], version: int) -> list[str] | None:
        """Return the keys of one type's objects that were written since a version; None if that is too long ago."""
        count = self.version(kind) - version
        written = self._written.get(kind, [])
        if count > len(written):
            return None
        return written[len(written) - count :]

    def copy(self) -> ObjectCatalog:
        """Return an independent copy; the immutable objects are shared."""
        other = ObjectCatalog()
        other._objects = {kind: dict(objects) for kind, objects in self._objects.items()}
        other._versions = dict(self._versions)
        other._written = {kind: list(written) for kind, written in self._written.items()}
        other.writes = self.writes
        return other

    def __reduce__(self) -> tuple[object, ...]:
        names = ("_objects", "_versions", "_written", "writes")
        return ObjectCatalog, (), (None, {name: getattr(self, name) for name in names})


class ObjectGroups(Generic[T]):
    """The keys of the objects of one type by group. Each look-up first applies the writes since the previous one.

    Args:
        kind: the type of the objects.
        groups_of: returns the groups of an object, each once.

    Attributes:
        assigned: how often an object was assigned to its groups; for measurements.
    """

    def __init__(self, catalog: ObjectCatalog, kind: type[T], groups_of: Callable[[T], Iterable[Hashable]]) -> None:
        self.assigned = 0
        self._catalog = catalog
        self._kind = kind
        self._groups_of = groups_of
        self._version = -1
        self._groups: dict[str, tuple[Hashable, ...]] = {}
        self._keys: dict[Hashable, dict[str, None]] = {}

    def keys(self, group: Hashable) -> Collection[str]:
        """Return the keys of the objects of a group."""
        if self._version != self._catalog.version(self._kind):
            self._update()
        return self._keys.get(group, {})

    def _update(self) -> None:
        catalog = self._catalog
        written = catalog.written(self._kind, self._version)
        self._version = catalog.version(self._kind)
        if written is None:
            self._groups, self._keys = {}, {}
            written = list(catalog.keys(self._kind))
        for key in dict.fromkeys(written):
            for group in self._groups.pop(key, ()):
                del self._keys[group][key]
                if not self._keys[group]:
                    del self._keys[group]
            item = catalog.get(self._kind, key)
            if item is not None:
                self.assigned += 1
                self._groups[key] = tuple(self._groups_of(item))
                for group in self._groups[key]:
                    self._keys.setdefault(group, {})[key] = None
