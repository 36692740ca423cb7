"""Devices that stand for extended resources, as the scores of node resources count them. Not a plugin.

A node that has none of a resource itself may have devices of the class that stands behind it. Then the score weighs how many
of them it has, and how many of those are allocated. Every slice counts, outdated generations and incomplete pools too, and
neither taints nor counters matter: this is a tally, not an allocation. Source: KEP-5004.
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
from bayplan.plugins.dynamic_resources.claim_tracker import ClaimTracker
from bayplan.plugins.dynamic_resources.device_use import DeviceUse
from bayplan.plugins.dynamic_resources.features import allocation_features
from bayplan.plugins.dynamic_resources.pools import PoolDevice, PoolSlice, node_matches
from bayplan.plugins.dynamic_resources.selectors import AllocationFailed, Selectors
from bayplan.state.arrays import Ints
from bayplan.state.device_classes import DeviceClassResolver

if TYPE_CHECKING:
    from bayplan.plugins.scored_resources import ScoredResource


class DeviceTally:
    """How many devices stand for one resource on each node.

    Attributes:
        number: of the resource. capacity, used: int64[rows], the devices of the node and those of them that are allocated.
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


class ScoredDevices:
    """Tallies devices of a cluster, and keeps the tallies until something that they count changes.

    Args:
        handle: the scheduler; its gates say what is switched on.
        resources: those that the configuration of the plugin names.
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
        self._version: tuple[object, ...] | None = None
        self._tallies: dict[int, DeviceTally] = {}

    def may_count(self, scored: Sequence[ScoredResource]) -> bool:
        """Return whether devices may stand for some of these resources."""
        return bool(self._names) and any(resource.is_scalar for resource in scored)

    def tallies(self, scored: Sequence[ScoredResource]) -> tuple[DeviceTally, ...]:
        """Return the tallies of those resources for which a class stands; none where none stands for a configured one."""
        if not self.may_count(scored) or not any(self._classes.get(name) is not None for name in self._names):
            return ()
        self._refresh()
        found = []
        for resource in scored:
            device_class = self._classes.get(self._cluster.nodes.resources.names[resource.number])
            if device_class is None or not resource.is_scalar:
                continue
            tally = self._tallies.get(resource.number)
            if tally is None:
                tally = self._tallies[resource.number] = self._count(resource.number, device_class)
            found.append(tally)
        return tuple(found)

    def _refresh(self) -> None:
        catalog = self._cluster.catalog
        version = (
            self._tracker.version,
            catalog.version(ResourceSlice),
            catalog.version(DeviceClass),
            self._cluster.node_log.end,
        )
        if version == self._version:
            return
        self._version = version
        self._tallies = {}
        self._use.refresh()
        known = self._slices
        self._slices = {}
        for source in catalog.all(ResourceSlice):
            name = source.metadata.name
            slice_ = known.get(name)
            self._slices[name] = slice_ if slice_ is not None and slice_.source is source else PoolSlice(source)

    def _count(self, number: int, device_class: DeviceClass) -> DeviceTally:
        nodes = self._cluster.nodes
        capacity, used = np.zeros(nodes.count, dtype=np.int64), np.zeros(nodes.count, dtype=np.int64)
        for row, node in enumerate(nodes.nodes[: nodes.count]):
            if node is None:
                continue
            try:
                devices = [device for device in self._devices_on(node) if self._is_of(device, device_class)]
            except (AllocationFailed, ValueError):
                # Upstream logs that a selector can't be read or asked, and counts nothing on this node.
                continue
            capacity[row] = len(devices)
            used[row] = sum(self._use.is_allocated(device.id) for device in devices)
        return DeviceTally(number, capacity, used)

    def _devices_on(self, node: Node) -> Iterable[PoolDevice]:
        for slice_ in self._slices.values():
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
    """Return whether a slice says nothing of nodes: then it counts on all of them."""
    spec = slice_.source.spec
    return not spec.node_name and spec.node_selector is None
