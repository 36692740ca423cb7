"""Amounts that limit the choice of devices: consumable capacity (KEP-5075) and shared counters (KEP-4815)."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.objects.meta import ResourceList
from bayplan.objects.quantity import Quantity, parse_quantity
from bayplan.objects.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from bayplan.plugins.dynamic_resources.device_use import Amounts, DeviceUse
from bayplan.plugins.dynamic_resources.pools import CounterSets, Pool, PoolDevice


def fits(
    capacities: Mapping[str, DeviceCapacity],
    requests: ResourceList,
    consumed: Mapping[str, Quantity],
    consuming: Mapping[str, Quantity],
) -> bool:
    """Return whether a device has all requested capacities, in sufficient amounts.

    Args:
        capacities: the capacities of the device.
        requests: the requested amounts.
        consumed: the amounts that existing allocations consume.
        consuming: the amounts that the search has consumed so far.
    """
    if any(name not in capacities for name in requests):
        return False
    for name, capacity in capacities.items():
        amount = _consumption(capacity, requests.get(name))
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
    return {name: _consumption(capacity, requests.get(name)) for name, capacity in capacities.items()}


def _consumption(capacity: DeviceCapacity, requested: str | int | float | None) -> Quantity:
    """Return the request rounded up as the policy says; without a request, the policy's default or the whole capacity."""
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
    """Return whether a policy forbids an amount. Its default is always allowed, in the form in which it is written."""
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


class CounterUse:
    """The counters of pools that existing allocations and the current search leave.

    As upstream, pools are identified by name without the driver: if two drivers have pools of the same name, the
    counters of the pool that is evaluated first count for both.
    """

    def __init__(self, use: DeviceUse) -> None:
        self._use = use
        # By name of a pool. Amounts are negative if too much was allocated.
        self._remaining: dict[str, CounterSets] = {}

    def draw(self, device: PoolDevice, pool: Pool) -> bool:
        """Consume a device's counters; return False, and consume nothing, if they are insufficient."""
        remaining = self._remaining.get(pool.id[1])
        if remaining is None:
            remaining = self._remaining[pool.id[1]] = self._without_allocated(pool)
        _consume(device, remaining)
        if any(amount.sign() < 0 for counters in remaining.values() for amount in counters.values()):
            self.release(device, pool)
            return False
        return True

    def release(self, device: PoolDevice, pool: Pool) -> None:
        """Undo `draw`."""
        _consume(device, self._remaining[pool.id[1]], -1)

    def _without_allocated(self, pool: Pool) -> CounterSets:
        remaining = {name: dict(counters) for name, counters in pool.counter_sets.items()}
        for slice_ in (*pool.slices, *pool.elsewhere):
            for device in slice_.devices:
                if device.consumes and self._use.is_allocated(device.id):
                    _consume(device, remaining)
        return remaining


def _consume(device: PoolDevice, remaining: CounterSets, times: int = 1) -> None:
    """Consume a device's counters (1), or release them (-1), as far as they exist."""
    for counter_set, counters in device.consumes:
        amounts = remaining.get(counter_set, {})
        for counter, amount in counters.items():
            if counter in amounts:
                amounts[counter] = amounts[counter] - amount if times > 0 else amounts[counter] + amount
