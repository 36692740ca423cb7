"""Volumes and claims as assumed by Reserve, until the cluster has their newer versions.

The writes of a pod's binding reach the catalog later than the next pod is scheduled. Until then the assumed version stands in
for the object; a newer version of the object, by its resource version, ends that.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.state.object_catalog import ObjectCatalog

SWEEP_AT = 1024
"""From this size on, obsolete entries are removed."""

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class AssumedObjects(Generic[T]):
    """The assumed versions of the objects of one type.

    Attributes:
        version: changes whenever an object is assumed or restored.
    """

    def __init__(self, kind: type[T], catalog: ObjectCatalog) -> None:
        self._kind: type[T] = kind
        self._catalog = catalog
        self._assumed: dict[str, tuple[T, T]] = {}
        self._sweep_at = SWEEP_AT
        self.version = 0

    def __len__(self) -> int:
        return len(self._assumed)

    def get(self, key: str) -> T | None:
        """Return the object by its key, assumed or else as the cluster has it."""
        item = self._catalog.get(self._kind, key)
        return None if item is None else self.latest(key, item)

    def latest(self, key: str, item: T) -> T:
        """Return the assumed version of an object of the catalog, or the object."""
        entry = self._assumed.get(key)
        if entry is None:
            return item
        base, assumed = entry
        version = item.metadata.resource_version
        if item is base or (version and version == base.metadata.resource_version):
            return assumed
        del self._assumed[key]
        return item

    def assume(self, key: str, item: T) -> None:
        """Let a version stand in for the object that the cluster has under a key."""
        base = self._catalog.get(self._kind, key)
        if base is not None:
            if len(self._assumed) >= self._sweep_at:
                self._sweep()
            self._assumed[key] = (base, item)
            self.version += 1

    def _sweep(self) -> None:
        """Remove entries superseded by newer versions and not read since, so that they don't accumulate in long runs."""
        for key in list(self._assumed):
            if self.get(key) is None:
                del self._assumed[key]
        self._sweep_at = max(SWEEP_AT, 2 * len(self._assumed))

    def restore(self, key: str) -> None:
        """Remove the assumed version of an object; no error if there is none."""
        if self._assumed.pop(key, None) is not None:
            self.version += 1
