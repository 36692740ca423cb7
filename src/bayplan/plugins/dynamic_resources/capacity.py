"""Consumable capacity: the amounts that a request consumes of a device, and whether they fit (KEP-5075)."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.objects.meta import ResourceList
from bayplan.objects.quantity import Quantity, parse_quantity
from bayplan.objects.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from bayplan.plugins.dynamic_resources.device_use import Amounts


def fits(
    capacities: Mapping[str, DeviceCapacity],
    requests: ResourceList,
    consumed: Mapping[str, Quantity],
    consuming: Mapping[str, Quantity],
) -> bool:
    """Return whether a device has enough capacity for a request.

    Args:
        capacities: the capacities of the device.
        requests: the requested amounts; a capacity that the device lacks cannot be satisfied.
        consumed: the amounts that existing allocations consume.
        consuming: the amounts that the search has consumed so far.
    """
    if any(name not in capacities for name in requests):
        return False
    for name, capacity in capacities.items():
        amount = consumption(capacity, requests.get(name))
        if _violates(amount, capacity.request_policy):
            return False
        total = consumed[name] + amount if name in consumed else amount
        if name in consuming:
            total = total + consuming[name]
        if total > parse_quantity(capacity.value):
            return False
    return True


def consumptions(capacities: Mapping[str, DeviceCapacity], requests: ResourceList) -> Amounts:
    """Return the amounts that a request consumes, by capacity of a device."""
    return {name: consumption(capacity, requests.get(name)) for name, capacity in capacities.items()}


def consumption(capacity: DeviceCapacity, requested: str | int | float | None) -> Quantity:
    """Return the amount consumed of a capacity.

    This is the request, rounded up as the policy says; without a request, the policy's default or the whole capacity.
    """
    policy = capacity.request_policy
    if requested is None:
        return parse_quantity(policy.default if policy is not None and policy.default is not None else capacity.value)
    amount = parse_quantity(requested)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(amount, policy.valid_range)
    for valid in policy.valid_values:
        if amount <= parse_quantity(valid):
            return parse_quantity(valid)
    return amount


def _rounded_up(amount: Quantity, valid: CapacityRequestPolicyRange) -> Quantity:
    """Return an amount rounded up into a range: to its minimum, or to a whole number of its steps above it."""
    least = parse_quantity(valid.min if valid.min is not None else "0")
    if amount < least:
        return least
    if valid.step is None:
        return amount
    step = parse_quantity(valid.step).value()
    start = least.value()
    steps = -(-(amount.value() - start) // step)
    return Quantity(start + step * steps, format="BinarySI")


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    """Return whether a policy forbids an amount.

    The policy's default is always allowed, in the form in which it is written.
    """
    if policy is None:
        return False
    if policy.default is not None and _is_same(amount, parse_quantity(policy.default)):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range)
    return bool(policy.valid_values) and not any(amount == parse_quantity(valid) for valid in policy.valid_values)


def _is_same(amount: Quantity, default: Quantity) -> bool:
    """Return whether Go's ``==`` holds for two quantities: equal amount, format and scale, and no pointer in either."""
    if amount.is_decimal or default.is_decimal:
        return False
    return (amount.unscaled, amount.scale, amount.format) == (default.unscaled, default.scale, default.format)


def _outside(amount: Quantity, valid: CapacityRequestPolicyRange) -> bool:
    if valid.max is not None and amount > parse_quantity(valid.max):
        return True
    if valid.step is None:
        return False
    start = parse_quantity(valid.min if valid.min is not None else "0").value()
    return (amount.value() - start) % parse_quantity(valid.step).value() != 0
