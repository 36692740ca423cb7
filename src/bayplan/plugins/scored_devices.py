"""Devices that serve extended resources, as counted by the scores of node resources. This module is not a plugin.

A node without a resource may have devices of the class that serves the resource. Then the score depends on the number
of these devices and on the number of allocated ones. Every slice counts, even of outdated generations and incomplete
pools, and taints and counters are ignored: devices are only counted, not allocated. Source: KEP-5004.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayplan.framework.configuration.plugin_arguments import ResourceSpec
from bayplan.framework.plugin import Handle
from bayplan.objects.node import Node
from bayplan.objects.resource import DeviceClass, ResourceSlice
from bayplan.objects.resource_names import is_dra_extended
from bayplan.plugins.dynamic_resources.claims import ClaimTracker
from bayplan.plugins.dynamic_resources.device_use import DeviceId, DeviceUse, PoolId
from bayplan.plugins.dynamic_resources.features import allocation_features
from bayplan.plugins.dynamic_resources.pools import AllocationFailed, PoolDevice, PoolSlice, Selectors, node_matches
from bayplan.state.arrays import Ints
from bayplan.state.device_classes import DeviceClassResolver

if TYPE_CHECKING:
    from bayplan.plugins.scored_resources import ScoredResource


class DeviceTally:
    """The number of devices that serve one resource, by node.

    Attributes:
        number: the number of the resource.
        capacity, used: int64[rows], the number of devices of each node, and the number of allocated ones.
    """

    __slots__ = ("capacity", "number", "used")

    def __init__(self, number: int, capacity: Ints, used: Ints) -> None:
        self.number = number
        self.capacity = capacity
        self.used = used

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceTally):
            return NotImplemented
        return (
            self.number == other.number
            and np.array_equal(self.capacity, other.capacity)
            and np.array_equal(self.used, other.used)
        )

    def __hash__(self) -> int:
        return hash((self.number, self.capacity.tobytes(), self.used.tobytes()))


class CountedDevices:
    """The devices that serve one resource, by node, with their tally.

    Attributes:
        tally: the current tally; a new object after each change.
    """

    def __init__(self, number: int, count: int) -> None:
        self.tally = DeviceTally(number, np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))
        self._devices: dict[int, list[DeviceId]] = {}
        # The values are dictionaries, because sets have no defined order.
        self._rows: dict[PoolId, dict[int, None]] = {}

    def put(self, row: int, devices: list[DeviceId], use: DeviceUse) -> None:
        """Add the devices of a node."""
        self._devices[row] = devices
        for device in devices:
            self._rows.setdefault(device[:2], {})[row] = None
        self.tally.capacity[row] = len(devices)
        self.tally.used[row] = sum(map(use.is_allocated, devices))

    def count_used(self, pools: Iterable[PoolId], use: DeviceUse) -> None:
        """Count the allocated devices again on nodes with devices of these pools."""
        rows = dict.fromkeys(row for pool in pools for row in self._rows.get(pool, ()))
        if not rows:
            return
        used = self.tally.used.copy()
        for row in rows:
            used[row] = sum(map(use.is_allocated, self._devices[row]))
        self.tally = DeviceTally(self.tally.number, self.tally.capacity, used)


class ScoredDevices:
    """Counts the devices of a cluster that serve resources; only nodes whose pools changed are counted again.

    Args:
        handle: the handle of the plugin; feature gates enable counting.
        resources: the resources in the plugin's configuration.
    """

    def __init__(self, handle: Handle, resources: Iterable[ResourceSpec]) -> None:
        self._cluster = handle.cluster
        self._classes = DeviceClassResolver(handle.cluster.catalog)
        enabled = handle.feature_gates.enabled("DRAExtendedResource")
        self._names = tuple(item.name for item in resources if enabled and is_dra_extended(item.name))
        features = allocation_features(handle.feature_gates)
        self._tracker = ClaimTracker(handle.cluster.catalog)
        self._use = DeviceUse(self._tracker, consumable_capacity=features.consumable_capacity)
        self._selectors = Selectors(features)
        self._slices: dict[str, PoolSlice] = {}
        # Slices whose devices are all on one node, by node, and all other slices.
        self._on_node: dict[str, list[PoolSlice]] = {}
        self._shared: list[PoolSlice] = []
        self._version: tuple[object, ...] | None = None
        self._counted: dict[int, CountedDevices] = {}

    def may_serve(self, scored: Sequence[ScoredResource]) -> bool:
        """Return whether devices may serve one of these resources."""
        return bool(self._names) and any(resource.is_scalar for resource in scored)

    def tallies(self, scored: Sequence[ScoredResource]) -> tuple[DeviceTally, ...]:
        """Return the tallies of the scored resources that a device class serves; empty if no class serves any."""
        if not self.may_serve(scored) or not any(self._classes.get(name) is not None for name in self._names):
            return ()
        self._refresh()
        found = []
        for resource in scored:
            device_class = self._classes.get(self._cluster.nodes.resources.names[resource.number])
            if device_class is None or not resource.is_scalar:
                continue
            counted = self._counted.get(resource.number)
            if counted is None:
                counted = self._counted[resource.number] = self._count(resource.number, device_class)
            found.append(counted.tally)
        return tuple(found)

    def _refresh(self) -> None:
        catalog = self._cluster.catalog
        self._use.refresh()
        changed = self._use.take_changed_pools()
        version = (catalog.version(ResourceSlice), catalog.version(DeviceClass), self._cluster.node_log.end)
        if version == self._version:
            for counted in self._counted.values():
                counted.count_used(changed, self._use)
            return
        self._version = version
        self._counted = {}
        known = self._slices
        self._slices, self._on_node, self._shared = {}, {}, []
        for source in catalog.all(ResourceSlice):
            name = source.metadata.name
            slice_ = known.get(name)
            if slice_ is None or slice_.source is not source:
                slice_ = PoolSlice(source)
            self._slices[name] = slice_
            spec = source.spec
            if spec.node_name and not spec.per_device_node_selection and not spec.all_nodes:
                self._on_node.setdefault(spec.node_name, []).append(slice_)
            else:
                self._shared.append(slice_)

    def _count(self, number: int, device_class: DeviceClass) -> CountedDevices:
        nodes = self._cluster.nodes
        counted = CountedDevices(number, nodes.count)
        for row, node in enumerate(nodes.nodes[: nodes.count]):
            if node is None:
                continue
            try:
                devices = [device.id for device in self._devices_on(node) if self._is_of(device, device_class)]
            except (AllocationFailed, ValueError):
                # Upstream logs an invalid selector and counts no devices on this node.
                continue
            counted.put(row, devices, self._use)
        return counted

    def _devices_on(self, node: Node) -> Iterable[PoolDevice]:
        for slice_ in self._on_node.get(node.metadata.name, ()):
            yield from slice_.devices
        for slice_ in self._shared:
            spec = slice_.source.spec
            if spec.per_device_node_selection:
                for device in slice_.devices:
                    source = device.source
                    if source.all_nodes or node_matches(node, source.node_name, None, source.node_selector):
                        yield device
            elif (
                spec.all_nodes
                or _has_no_selection(slice_)
                or node_matches(node, spec.node_name, None, spec.node_selector)
            ):
                yield from slice_.devices

    def _is_of(self, device: PoolDevice, device_class: DeviceClass) -> bool:
        selectors = [selector for selector in device_class.spec.selectors if selector.cel is not None]
        return self._selectors.match(selectors, device, device_class.metadata.name)


def _has_no_selection(slice_: PoolSlice) -> bool:
    """Return whether a slice selects no nodes, so that it counts on all of them."""
    spec = slice_.source.spec
    return not spec.node_name and spec.node_selector is None
