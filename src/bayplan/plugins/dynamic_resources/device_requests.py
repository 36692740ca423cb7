"""Requests for devices and their alternatives in one form, and their checks before devices are chosen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bayplan.base.go_text.quoting import quote
from bayplan.framework.configuration.plugin_arguments import binding_conditions_enabled
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.meta import ResourceList
from bayplan.objects.node import Node
from bayplan.objects.resource import DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from bayplan.plugins.dynamic_resources.capacity import fits
from bayplan.plugins.dynamic_resources.device_use import DeviceUse
from bayplan.plugins.dynamic_resources.pools import AllocationFailed, Pool, PoolDevice, meets_selectors, node_matches
from bayplan.state.object_catalog import ObjectCatalog

EXACT_COUNT = "ExactCount"
ALL = "All"


def uses_oldest_allocator(gates: FeatureGates) -> bool:
    """Return whether upstream would use its oldest allocator, which it does if the newest features are disabled.

    That allocator does not support distinctAttribute, capacity requests, or devices that bind to their node.
    """
    return not (gates.enabled("DRAConsumableCapacity") or binding_conditions_enabled(gates))


class CheckedRequest(msgspec.Struct, frozen=True, eq=False):
    """A request, or one alternative of it, that passed the checks and is ready for allocation.

    Attributes:
        parent: the request's name if this is an alternative, else "".
        count: the number of devices.
        everything: the devices to allocate, if the allocation mode is All.
    """

    name: str
    parent: str
    requested: ExactDeviceRequest | DeviceSubRequest
    device_class: DeviceClass
    count: int
    everything: tuple[PoolDevice, ...] = ()

    @property
    def full_name(self) -> str:
        """Return the name in allocation results: ``request`` or ``request/alternative``."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def admin_access(self) -> bool:
        """Return whether admin access is requested; alternatives do not support it."""
        return isinstance(self.requested, ExactDeviceRequest) and bool(self.requested.admin_access)

    @property
    def capacity(self) -> ResourceList:
        """Return the requested capacities."""
        return self.requested.capacity.requests if self.requested.capacity is not None else {}


class RequestChecks:
    """The checks of requests and of the devices for them, for all nodes of a cluster.

    Args:
        gates: the feature gates; also an attribute.
        use: the devices and capacities in use; also an attribute.
        catalog: the cluster's objects, for device classes.

    Attributes:
        device_taints, consumable_capacity, partitionable_devices: whether the feature gate is enabled.
    """

    def __init__(self, gates: FeatureGates, use: DeviceUse, catalog: ObjectCatalog) -> None:
        self.gates = gates
        # Looked up once, because they are read for each device.
        self.device_taints = gates.enabled("DRADeviceTaints")
        self.consumable_capacity = gates.enabled("DRAConsumableCapacity")
        self.partitionable_devices = gates.enabled("DRAPartitionableDevices")
        self._binding_conditions = binding_conditions_enabled(gates)
        # Only selectors support lists: the scheduler never requests the allocator whose constraints could compare them.
        self._list_attributes = gates.enabled("DRAListTypeAttributes")
        self.use = use
        self._catalog = catalog

    def check_request(
        self, claim: ResourceClaim, request: DeviceRequest, pools: Sequence[Pool], node: Node
    ) -> list[CheckedRequest]:
        """Return the checked request, or its checked alternatives in order.

        Raises:
            AllocationFailed: the request is not supported, a class is missing, or not all devices of a pool are known.
        """
        key = claim.key
        if request.first_available and not self.gates.enabled("DRAPrioritizedList"):
            raise AllocationFailed(
                f"claim {key}, request {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        alternatives: list[tuple[str, str, ExactDeviceRequest | DeviceSubRequest]] = [
            (item.name, request.name, item) for item in request.first_available
        ]
        if not alternatives and request.exactly is not None:
            alternatives = [(request.name, "", request.exactly)]
        if not self.consumable_capacity and not uses_oldest_allocator(self.gates):
            for name, parent, requested in alternatives:
                if requested.capacity is not None:
                    raise AllocationFailed(
                        f"claim {key}, {'subrequest' if parent else 'request'} {name}: "
                        "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                    )
        return [self._check_alternative(claim, *alternative, pools, node) for alternative in alternatives]

    def _check_alternative(
        self,
        claim: ResourceClaim,
        name: str,
        parent: str,
        requested: ExactDeviceRequest | DeviceSubRequest,
        pools: Sequence[Pool],
        node: Node,
    ) -> CheckedRequest:
        where, class_name = f"claim {claim.key}, request {name}", requested.device_class_name
        for number, selector in enumerate(requested.selectors):
            if selector.cel is None:
                raise AllocationFailed(
                    f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
                )
        sets_admin_access = isinstance(requested, ExactDeviceRequest) and requested.admin_access is not None
        if sets_admin_access and not self.gates.enabled("DRAAdminAccess"):
            raise AllocationFailed(f"{where}: admin access is requested, but the feature is disabled")
        if not class_name:
            raise AllocationFailed(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._catalog.get(DeviceClass, class_name)
        if device_class is None:
            raise AllocationFailed(
                f"{where}: could not retrieve device class {class_name}: "
                f"deviceclass.resource.k8s.io {quote(class_name)} not found"
            )
        checked = CheckedRequest(name, parent, requested, device_class, requested.count)
        if requested.allocation_mode == EXACT_COUNT:
            return checked
        if requested.allocation_mode != ALL:
            raise AllocationFailed(f"{where}: unsupported count mode {requested.allocation_mode}")
        everything = self._everything(claim, checked, pools, node, where)
        return replace(checked, count=len(everything), everything=everything)

    def _everything(
        self, claim: ResourceClaim, checked: CheckedRequest, pools: Sequence[Pool], node: Node, where: str
    ) -> tuple[PoolDevice, ...]:
        """Return the devices for a request with allocation mode All; all pools must be complete and valid."""
        found = []
        for pool in pools:
            for flag, text in ((pool.incomplete, "being updated"), (pool.invalid, "invalid")):
                if flag:
                    raise AllocationFailed(
                        f"{where}: asks for all devices, but resource pool {pool} is currently {text}"
                    )
            for slice_ in pool.slices:
                for device in slice_.devices:
                    if not self.is_selectable(claim, checked, device, node):
                        continue
                    if self.consumable_capacity and not fits(
                        device.source.capacity, checked.capacity, self.use.consumed(device.id), {}
                    ):
                        continue
                    found.append(device)
        return tuple(found)

    def is_selectable(self, claim: ResourceClaim, checked: CheckedRequest, device: PoolDevice, node: Node) -> bool:
        """Return whether a device is available on a node and meets the selectors of the class and the request.

        Raises:
            AllocationFailed: a selector can't be compiled, or fails on the device.
        """
        source = device.source
        if source.binding_conditions and not self._binding_conditions:
            return False
        device_class, selectors = checked.device_class, checked.requested.selectors
        lists = self._list_attributes
        owner = f"class {device_class.metadata.name}"
        if not meets_selectors(device, device_class.spec.selectors, owner, list_attributes=lists):
            return False
        if not meets_selectors(device, selectors, f"claim {claim.key}", list_attributes=lists):
            return False
        if not device.slice.source.spec.per_device_node_selection:
            return True
        try:
            return node_matches(node, source.node_name, source.all_nodes, source.node_selector)
        except ValueError as problem:
            raise AllocationFailed(str(problem)) from problem
