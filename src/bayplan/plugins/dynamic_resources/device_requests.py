"""Requests for devices: exact ones and alternatives of a prioritised list, in one form."""

from __future__ import annotations

import msgspec

from bayplan.objects.meta import ResourceList
from bayplan.objects.resource import DeviceClass, DeviceRequest, DeviceSelector, DeviceToleration
from bayplan.plugins.dynamic_resources.pools import PoolDevice

EXACT_COUNT = "ExactCount"
ALL = "All"


class Wish(msgspec.Struct, frozen=True, eq=False):
    """A request, or one alternative of it.

    Attributes:
        name: the name of the request or the alternative.
        parent: the request's name if this is an alternative, else "".
        has_capacity: whether it requests capacities, even an amount of 0.
    """

    name: str
    parent: str
    device_class_name: str
    selectors: tuple[DeviceSelector, ...]
    mode: str
    count: int
    admin_access: bool | None
    tolerations: tuple[DeviceToleration, ...]
    capacity: ResourceList
    has_capacity: bool

    @property
    def full_name(self) -> str:
        """Return the name in allocation results: ``request`` or ``request/alternative``."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


def wishes_of(request: DeviceRequest) -> tuple[Wish, ...]:
    """Return a request's alternatives, the best first, or the exact request alone."""
    if request.first_available:
        return tuple(
            Wish(
                item.name,
                request.name,
                item.device_class_name,
                item.selectors,
                item.allocation_mode,
                item.count,
                None,
                item.tolerations,
                item.capacity.requests if item.capacity is not None else {},
                item.capacity is not None,
            )
            for item in request.first_available
        )
    exact = request.exactly
    if exact is None:
        return ()
    return (
        Wish(
            request.name,
            "",
            exact.device_class_name,
            exact.selectors,
            exact.allocation_mode,
            exact.count,
            exact.admin_access,
            exact.tolerations,
            exact.capacity.requests if exact.capacity is not None else {},
            exact.capacity is not None,
        ),
    )


class CheckedWish(msgspec.Struct, frozen=True, eq=False):
    """A wish that can be worked on.

    Attributes:
        count: the number of devices.
        everything: the devices of a request for all devices.
    """

    wish: Wish
    device_class: DeviceClass
    count: int
    everything: tuple[PoolDevice, ...] = ()
