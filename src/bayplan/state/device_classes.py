"""The device class that serves each extended resource. Source: KEP-5004 (extended resources backed by devices)."""

from __future__ import annotations

from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.resource import DeviceClass
from bayplan.objects.resource_names import DEVICE_CLASS_PREFIX
from bayplan.state.object_catalog import ObjectCatalog


class DeviceClassResolver:
    """Looks up the device classes of a catalog by extended resource name; updated when the catalog changes."""

    __slots__ = ("_catalog", "_classes", "_version")

    def __init__(self, catalog: ObjectCatalog) -> None:
        self._catalog = catalog
        self._version = -1
        self._classes: dict[str, DeviceClass] = {}

    def __bool__(self) -> bool:
        """Return whether a device class serves any resource."""
        return bool(self._now())

    def get(self, resource: str) -> DeviceClass | None:
        """Return the device class that serves a resource, or None."""
        return self._now().get(resource)

    def _now(self) -> dict[str, DeviceClass]:
        version = self._catalog.version(DeviceClass)
        if version != self._version:
            self._version = version
            self._classes = _by_resource(self._catalog)
        return self._classes


def _by_resource(catalog: ObjectCatalog) -> dict[str, DeviceClass]:
    """Return the device classes by the names of the resources that they serve.

    If several classes claim a resource name, the newest gets it; among equally old ones, the first by name. A class
    that does not get the name that it claims does not get its implicit name, either: upstream ignores it altogether.
    """
    classes: dict[str, DeviceClass] = {}
    for device_class in catalog.all(DeviceClass):
        claimed = device_class.spec.extended_resource_name
        if claimed is not None:
            holder = classes.get(claimed)
            if holder is not None and not _precedes(device_class, holder):
                continue
            classes[claimed] = device_class
        classes[DEVICE_CLASS_PREFIX + device_class.metadata.name] = device_class
    return classes


def _precedes(new: DeviceClass, holder: DeviceClass) -> bool:
    new_time, held_time = _created_ns(new), _created_ns(holder)
    if new_time != held_time:
        return new_time > held_time
    return new.metadata.name < holder.metadata.name


def _created_ns(device_class: DeviceClass) -> int:
    created = device_class.metadata.creation_timestamp
    # A missing timestamp is Go's zero time, which is before any other.
    return parse_time_ns(created) if created is not None else -(2**63)
