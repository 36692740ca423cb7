"""Constraints of a claim: an attribute must be equal for all its devices, or different for each."""

from __future__ import annotations

from bayplan.objects.resource import DeviceAttribute, DeviceConstraint
from bayplan.plugins.dynamic_resources.pools import PoolDevice


class Constraint:
    """One constraint of a claim, with the devices that have been chosen so far.

    Args:
        requests: the requests and alternatives to which it applies; empty for all.
        attribute: the fully qualified name of the attribute.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        self._requests = frozenset(requests)
        self._attribute = attribute

    def add(self, request: str, alternative: str, device: PoolDevice) -> bool:
        """Add a device if it satisfies the constraint; return whether it does."""
        if not self._concerns(request, alternative):
            return True
        attribute = find_attribute(device, self._attribute)
        return attribute is not None and self._add(request, attribute)

    def remove(self, request: str, alternative: str) -> None:
        """Undo the last `add` for a request that returned True."""
        if self._concerns(request, alternative):
            self._remove(request)

    def _concerns(self, request: str, alternative: str) -> bool:
        requests = self._requests
        if not requests or request in requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in requests

    def _add(self, request: str, attribute: DeviceAttribute) -> bool:
        raise TypeError(f"{type(self).__name__} lacks _add()")

    def _remove(self, request: str) -> None:
        raise TypeError(f"{type(self).__name__} lacks _remove()")


class MatchAttribute(Constraint):
    """A constraint that all devices have the attribute, with the same value."""

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._count = 0
        self._value: DeviceAttribute | None = None

    def _add(self, request: str, attribute: DeviceAttribute) -> bool:
        if self._count == 0:
            # The first device determines the value; its type is not checked yet.
            self._value, self._count = attribute, 1
            return True
        if self._value is None or not is_equal(attribute, self._value):
            return False
        self._count += 1
        return True

    def _remove(self, request: str) -> None:
        self._count -= 1


class DistinctAttribute(Constraint):
    """A constraint that all devices have the attribute, each with a different value.

    Like upstream, this stores one value per request: of several devices for one request only the last counts.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: dict[str, DeviceAttribute] = {}

    def _add(self, request: str, attribute: DeviceAttribute) -> bool:
        if any(is_equal(attribute, other) in (True, None) for other in self._values.values()):
            return False
        self._values[request] = attribute
        return True

    def _remove(self, request: str) -> None:
        self._values.pop(request, None)


def make_constraint(constraint: DeviceConstraint, *, distinct: bool) -> Constraint | None:
    """Return the constraint, with no devices yet; None for an unknown kind."""
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.requests, constraint.match_attribute)
    if constraint.distinct_attribute is not None and distinct:
        return DistinctAttribute(constraint.requests, constraint.distinct_attribute)
    return None


def find_attribute(device: PoolDevice, name: str) -> DeviceAttribute | None:
    """Return a device's attribute by its full name, or None; the driver's own attributes may omit their domain."""
    attributes = device.source.attributes
    found = attributes.get(name)
    if found is not None:
        return found
    domain, separator, identifier = name.partition("/")
    if not separator or domain != device.id[0]:
        return None
    return attributes.get(identifier)


def is_equal(attribute: DeviceAttribute, other: DeviceAttribute) -> bool | None:
    """Return whether two attributes have the same value and type; None if the first has no value of a known type."""
    for field in ("string_value", "int_value", "bool_value", "version_value"):
        value = getattr(attribute, field)
        if value is not None:
            # Versions are equal if their strings are equal.
            return bool(value == getattr(other, field))
    return None
