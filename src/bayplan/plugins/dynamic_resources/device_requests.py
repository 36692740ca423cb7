"""Requests for devices: exact requests and the alternatives of prioritised lists, in one form."""

from __future__ import annotations

import msgspec

from bayplan.objects.meta import ResourceList
from bayplan.objects.resource import DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest
from bayplan.plugins.dynamic_resources.pools import PoolDevice

EXACT_COUNT = "ExactCount"
ALL = "All"


class RequestAlternative(msgspec.Struct, frozen=True, eq=False):
    """A request, or one alternative of it.

    Attributes:
        name: the name of the request or the alternative.
        parent: the request's name if this is an alternative, else "".
        requested: the exact request, or the alternative.
    """

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
