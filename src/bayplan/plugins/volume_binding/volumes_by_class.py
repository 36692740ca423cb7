"""The persistent volumes of each storage class, in the order of their names, updated by changes."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.objects.storage import PersistentVolume
from bayplan.plugins.pod_claims import class_of_volume
from bayplan.state.object_catalog import ObjectCatalog


class VolumesByClass:
    """An index of the volumes of a catalog, updated lazily: a reader pays for what was written since the last time."""

    def __init__(self, catalog: ObjectCatalog) -> None:
        self._catalog = catalog
        self._version = -1
        self._class_of: dict[str, str] = {}
        self._volumes: dict[str, dict[str, PersistentVolume]] = {}
        self._sorted: dict[str, list[PersistentVolume]] = {}

    def get(self, name: str) -> Sequence[PersistentVolume]:
        """Return the volumes of a class by name; not to be written."""
        self._follow()
        found = self._sorted.get(name)
        if found is None:
            volumes = self._volumes.get(name, {})
            found = self._sorted[name] = [volumes[key] for key in sorted(volumes)]
        return found

    def _follow(self) -> None:
        version = self._catalog.version(PersistentVolume)
        if version == self._version:
            return
        written = self._catalog.written(PersistentVolume, self._version) if self._version >= 0 else None
        self._version = version
        if written is None:
            self._class_of, self._volumes, self._sorted = {}, {}, {}
            written = [volume.metadata.name for volume in self._catalog.all(PersistentVolume)]
        for key in dict.fromkeys(written):
            before = self._class_of.pop(key, None)
            if before is not None:
                del self._volumes[before][key]
                self._sorted.pop(before, None)
            volume = self._catalog.get(PersistentVolume, key)
            if volume is not None:
                name = self._class_of[key] = class_of_volume(volume)
                self._volumes.setdefault(name, {})[key] = volume
                self._sorted.pop(name, None)
