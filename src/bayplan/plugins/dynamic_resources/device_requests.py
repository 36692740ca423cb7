"""Requests for devices and their alternatives in one form, and their checks before devices are chosen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.base.go_text.quoting import quote
from bayplan.objects.meta import ResourceList
from bayplan.objects.node import Node
from bayplan.objects.resource import DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from bayplan.plugins.dynamic_resources.capacity import fits
from bayplan.plugins.dynamic_resources.device_use import DeviceUse
from bayplan.plugins.dynamic_resources.features import AllocationFeatures
from bayplan.plugins.dynamic_resources.pools import (
    AllocationFailed,
    Pool,
    PoolDevice,
    meets_selectors,
    node_matches,
)
from bayplan.state.object_catalog import ObjectCatalog

EXACT_COUNT = "ExactCount"
ALL = "All"


class RequestAlternative(msgspec.Struct, frozen=True, eq=False):
    """A request, or one alternative of it; `parent`: the request's name if this is an alternative, else ""."""

    name: str
    parent: str
    requested: ExactDeviceRequest | DeviceSubRequest

    @property
    def full_name(self) -> str:
        """Return the name in allocation results: ``request`` or ``request/alternative``."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def admin_access(self) -> bool | None:
        """Return whether admin access is requested; None for alternatives, which do not support it."""
        return self.requested.admin_access if isinstance(self.requested, ExactDeviceRequest) else None

    @property
    def capacity(self) -> ResourceList:
        """Return the requested capacities."""
        return self.requested.capacity.requests if self.requested.capacity is not None else {}


def alternatives_of(request: DeviceRequest) -> tuple[RequestAlternative, ...]:
    """Return a request's alternatives in order of preference, or the exact request alone."""
    if request.first_available:
        return tuple(RequestAlternative(item.name, request.name, item) for item in request.first_available)
    return () if request.exactly is None else (RequestAlternative(request.name, "", request.exactly),)


class CheckedRequest(msgspec.Struct, frozen=True, eq=False):
    """A request or alternative that passed the checks and is ready for allocation.

    Attributes:
        count: the number of devices.
        everything: the devices to allocate, if the allocation mode is All.
    """

    alternative: RequestAlternative
    device_class: DeviceClass
    count: int
    everything: tuple[PoolDevice, ...] = ()


class RequestChecks:
    """The checks of requests for one node."""

    def __init__(self, features: AllocationFeatures, use: DeviceUse, catalog: ObjectCatalog, node: Node) -> None:
        self.features = features
        self.use = use
        self._catalog = catalog
        self.node = node

    def check_request(
        self, claim: ResourceClaim, request: DeviceRequest, pools: Sequence[Pool]
    ) -> list[CheckedRequest]:
        """Return the checked request, or its checked alternatives in order.

        Raises:
            AllocationFailed: the request is not supported, a class is missing, or not all devices of a pool are known.
        """
        key = claim.key
        if request.first_available and not self.features.prioritized_list:
            raise AllocationFailed(
                f"claim {key}, request {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        alternatives = alternatives_of(request)
        if not self.features.consumable_capacity and not self.features.is_oldest:
            for alternative in alternatives:
                if alternative.requested.capacity is not None:
                    kind = "subrequest" if alternative.parent else "request"
                    raise AllocationFailed(
                        f"claim {key}, {kind} {alternative.name}: "
                        "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                    )
        return [self._check_alternative(claim, alternative, pools) for alternative in alternatives]

    def _check_alternative(
        self, claim: ResourceClaim, alternative: RequestAlternative, pools: Sequence[Pool]
    ) -> CheckedRequest:
        where = f"claim {claim.key}, request {alternative.name}"
        for number, selector in enumerate(alternative.requested.selectors):
            if selector.cel is None:
                raise AllocationFailed(
                    f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
                )
        if alternative.admin_access is not None and not self.features.admin_access:
            raise AllocationFailed(f"{where}: admin access is requested, but the feature is disabled")
        if not alternative.requested.device_class_name:
            raise AllocationFailed(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._catalog.get(DeviceClass, alternative.requested.device_class_name)
        if device_class is None:
            raise AllocationFailed(
                f"{where}: could not retrieve device class {alternative.requested.device_class_name}: "
                f"deviceclass.resource.k8s.io {quote(alternative.requested.device_class_name)} not found"
            )
        if alternative.requested.allocation_mode == EXACT_COUNT:
            return CheckedRequest(alternative, device_class, alternative.requested.count)
        if alternative.requested.allocation_mode != ALL:
            raise AllocationFailed(f"{where}: unsupported count mode {alternative.requested.allocation_mode}")
        everything = self._everything(claim, CheckedRequest(alternative, device_class, 0), pools, where)
        return CheckedRequest(alternative, device_class, len(everything), everything)

    def _everything(
        self, claim: ResourceClaim, checked: CheckedRequest, pools: Sequence[Pool], where: str
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
                    if not self.is_selectable(claim, checked, device):
                        continue
                    if self.features.consumable_capacity and not fits(
                        device.source.capacity, checked.alternative.capacity, self.use.consumed(device.id), {}
                    ):
                        continue
                    found.append(device)
        return tuple(found)

    def is_selectable(self, claim: ResourceClaim, checked: CheckedRequest, device: PoolDevice) -> bool:
        """Return whether a device is available on this node and meets the selectors of the class and the request.

        Raises:
            AllocationFailed: a selector can't be compiled, or fails on the device.
        """
        source = device.source
        if source.binding_conditions and not self.features.binding_conditions:
            return False
        device_class, selectors = checked.device_class, checked.alternative.requested.selectors
        lists = self.features.list_attributes
        owner = f"class {device_class.metadata.name}"
        if not meets_selectors(device, device_class.spec.selectors, owner, list_attributes=lists):
            return False
        if not meets_selectors(device, selectors, f"claim {claim.key}", list_attributes=lists):
            return False
        if not device.slice.source.spec.per_device_node_selection:
            return True
        try:
            return node_matches(self.node, source.node_name, source.all_nodes, source.node_selector)
        except ValueError as problem:
            raise AllocationFailed(str(problem)) from problem
