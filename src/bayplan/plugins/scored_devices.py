"""Devices that serve extended resources, as counted by the scores of node resources. This module is not a plugin.

A node without a resource may have devices of the class that serves the resource. Then the score depends on the number
of these devices and on the number of allocated ones. Every slice counts, even of outdated generations and incomplete
pools, and taints and counters are ignored: devices are only counted, not allocated. Source: KEP-5004.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.framework.configuration.plugin_arguments import ResourceSpec
from bayplan.framework.plugin import Handle
from bayplan.objects.node import Node
from bayplan.objects.resource import DeviceClass, ResourceSlice
from bayplan.objects.resource_names import is_dra_extended
from bayplan.plugins.dynamic_resources.claims import ClaimTracker
from bayplan.plugins.dynamic_resources.device_use import DeviceId, DeviceUse, PoolId
from bayplan.plugins.dynamic_resources.pools import (
    AllocationFailed,
    PoolDevice,
    PoolSlice,
    meets_selectors,
    node_matches,
    read_slices,
)
from bayplan.state.arrays import Ints
from bayplan.state.device_classes import DeviceClassResolver

if TYPE_CHECKING:
    from bayplan.plugins.scored_resources import ScoredResource


class DeviceTally(msgspec.Struct, frozen=True, eq=False):
    """The number of devices that serve one resource, by node. Every change makes a new tally, compared by identity.

    Attributes:
        number: the number of the resource.
        capacity, used: int64[rows], the number of devices of each node, and the number of allocated ones.
        devices: by row, the devices.
        rows: by pool, the rows with devices of the pool. The values are dictionaries, because sets have no defined order.
    """

    number: int
    capacity: Ints
    used: Ints
    devices: dict[int, list[DeviceId]]
    rows: dict[PoolId, dict[int, None]]

    def recounted(self, pools: Iterable[PoolId], use: DeviceUse) -> DeviceTally:
        """Return the tally after changes of the allocated devices in these pools."""
        rows = dict.fromkeys(row for pool in pools for row in self.rows.get(pool, ()))
        if not rows:
            return self
        used = self.used.copy()
        for row in rows:
            used[row] = sum(map(use.is_allocated, self.devices[row]))
        return replace(self, used=used)


class ScoredDevices:
    """Counts the devices of a cluster that serve resources; only nodes whose pools changed are counted again.

    Args:
        handle: the handle of the plugin; feature gates enable counting.
        resources: the resources in the plugin's configuration.
    """

    def __init__(self, handle: Handle, resources: Iterable[ResourceSpec]) -> None:
        self._cluster = handle.cluster
        self._classes = DeviceClassResolver(handle.cluster.catalog)
        gates = handle.feature_gates
        enabled = gates.enabled("DRAExtendedResource")
        self._configured = tuple(item.name for item in resources)
        self._names = tuple(name for name in self._configured if enabled and is_dra_extended(name))
        tracker = ClaimTracker(handle.cluster.catalog)
        self._use = DeviceUse(tracker, consumable_capacity=gates.enabled("DRAConsumableCapacity"))
        self._list_attributes = gates.enabled("DRAListTypeAttributes")
        self._slices: dict[str, PoolSlice] = {}
        # Slices whose devices are all on one node, by node, and all other slices.
        self._on_node: dict[str, list[PoolSlice]] = {}
        self._shared: list[PoolSlice] = []
        self._version: tuple[object, ...] | None = None
        self._tallies: dict[int, DeviceTally] = {}

    def may_serve(self, scored: Sequence[ScoredResource]) -> bool:
        """Return whether devices may serve one of these resources."""
        return bool(self._names) and any(resource.is_scalar for resource in scored)

    def tallies(self, scored: Sequence[ScoredResource]) -> tuple[DeviceTally, ...]:
        """Return the tallies of the scored resources that a device class serves; empty if no class serves any."""
        if not self.may_serve(scored) or not any(self._classes.get(name) is not None for name in self._names):
            return ()
        self._refresh()
        found = []
        name_of = {self._cluster.nodes.resources.get(name): name for name in self._configured}
        for resource in scored:
            device_class = self._classes.get(name_of[resource.number])
            if device_class is None or not resource.is_scalar:
                continue
            tally = self._tallies.get(resource.number)
            if tally is None:
                tally = self._tallies[resource.number] = self._count(resource.number, device_class)
            found.append(tally)
        return tuple(found)

    def _refresh(self) -> None:
        catalog = self._cluster.catalog
        self._use.refresh()
        changed = self._use.take_changed_pools()
        version = (catalog.version(ResourceSlice), catalog.version(DeviceClass), self._cluster.node_log.end)
        if version == self._version:
            for number, tally in self._tallies.items():
                self._tallies[number] = tally.recounted(changed, self._use)
            return
        self._version = version
        self._tallies = {}
        self._slices, self._on_node, self._shared = read_slices(catalog, self._slices), {}, []
        for slice_ in self._slices.values():
            spec = slice_.source.spec
            if spec.node_name and not spec.per_device_node_selection and not spec.all_nodes:
                self._on_node.setdefault(spec.node_name, []).append(slice_)
            else:
                self._shared.append(slice_)

    def _count(self, number: int, device_class: DeviceClass) -> DeviceTally:
        nodes = self._cluster.nodes
        capacity, used = np.zeros((2, nodes.count), dtype=np.int64)
        tally = DeviceTally(number, capacity, used, {}, {})
        for row, node in enumerate(nodes.nodes[: nodes.count]):
            if node is None:
                continue
            try:
                devices = [device.id for device in self._devices_on(node) if self._is_of(device, device_class)]
            except (AllocationFailed, ValueError):
                # Upstream logs an invalid selector and counts no devices on this node.
                continue
            tally.devices[row] = devices
            for device in devices:
                tally.rows.setdefault(device[:2], {})[row] = None
            capacity[row] = len(devices)
            used[row] = sum(map(self._use.is_allocated, devices))
        return tally

    def _devices_on(self, node: Node) -> Iterable[PoolDevice]:
        for slice_ in self._on_node.get(node.metadata.name, ()):
            yield from slice_.devices
        for slice_ in self._shared:
            spec = slice_.source.spec
            # A slice that selects no nodes counts on all of them.
            everywhere = spec.all_nodes or (not spec.node_name and spec.node_selector is None)
            if spec.per_device_node_selection:
                for device in slice_.devices:
                    source = device.source
                    if source.all_nodes or node_matches(node, source.node_name, None, source.node_selector):
                        yield device
            elif everywhere or node_matches(node, spec.node_name, None, spec.node_selector):
                yield from slice_.devices

    def _is_of(self, device: PoolDevice, device_class: DeviceClass) -> bool:
        selectors = [selector for selector in device_class.spec.selectors if selector.cel is not None]
        return meets_selectors(device, selectors, device_class.metadata.name, list_attributes=self._list_attributes)
