"""Choose devices for claims on one node: the first solution of an exhaustive search in a fixed order.

Claims, requests and devices are tried in the order of their objects, pools and slices by name. Devices within one
request are tried in combinations, not permutations. Upstream gives up after some seconds, this search after `MAX_STEPS`
steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import TypeAlias

import msgspec

from bayplan.objects.node import Node
from bayplan.objects.resource import DeviceAttribute, DeviceConstraint, ResourceClaim
from bayplan.plugins.dynamic_resources.capacity import CounterUse, consumptions, fits
from bayplan.plugins.dynamic_resources.device_requests import ALL, CheckedRequest, RequestChecks, uses_oldest_allocator
from bayplan.plugins.dynamic_resources.device_use import Amounts, DeviceId
from bayplan.plugins.dynamic_resources.pools import AllocationFailed, Pool, PoolDevice, has_untolerated_taint


class Constraint:
    """One constraint of a claim, with the devices that have been chosen so far.

    With `match_attribute`, all devices must have the attribute with the same value; with `distinct_attribute`, each
    with a different one. Like upstream, the latter stores one value per request: of several devices for one request
    only the last counts.
    """

    def __init__(self, constraint: DeviceConstraint) -> None:
        # The requests and alternatives to which it applies; empty for all.
        self._requests = frozenset(constraint.requests)
        self._distinct = constraint.match_attribute is None
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._count = 0
        self._value: DeviceAttribute | None = None
        self._values: dict[str, DeviceAttribute] = {}

    def add(self, request: str, alternative: str, device: PoolDevice) -> bool:
        """Add a device if it satisfies the constraint; return whether it does."""
        if not self._concerns(request, alternative):
            return True
        attribute = find_attribute(device, self._attribute)
        if attribute is None:
            return False
        if self._distinct:
            if any(is_equal(attribute, other) in (True, None) for other in self._values.values()):
                return False
            self._values[request] = attribute
            return True
        if self._count == 0:
            # The first device determines the value; its type is not checked yet.
            self._value = attribute
        elif self._value is None or not is_equal(attribute, self._value):
            return False
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Undo the last `add` for a request that returned True."""
        if not self._concerns(request, alternative):
            return
        if self._distinct:
            self._values.pop(request, None)
        else:
            self._count -= 1

    def _concerns(self, request: str, alternative: str) -> bool:
        requests = self._requests
        if not requests or request in requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in requests


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


MAX_DEVICES = 32
"""Maximum number of devices per claim."""

MAX_STEPS = 1_000_000
"""Maximum number of devices to try; then the search ends, like upstream's when it times out."""


Undo: TypeAlias = list[Callable[[], object]]
"""The calls that undo what taking a device changed."""


class Outcome(Enum):
    """The outcome of a part of the search: solved, no solution, or too many devices for a claim."""

    SOLVED = 1
    UNSOLVED = 2
    TOO_MANY = 3


class ChosenDevice(msgspec.Struct, frozen=True, eq=False):
    """A device of a solution.

    Attributes:
        request: the request for which the device was chosen.
        shared: whether other claims may use the device, too.
        consumed: the amounts that the request consumes of a shared device's capacities.
    """

    request: CheckedRequest
    device: PoolDevice
    shared: bool
    consumed: Amounts


class ChosenClaim(msgspec.Struct, frozen=True, eq=False):
    """A claim's part of a solution: its devices, and for each request the chosen alternative."""

    devices: tuple[ChosenDevice, ...]
    requests: tuple[CheckedRequest, ...]


class Allocator:
    """A single search on one node, for these claims in these pools, in their order."""

    def __init__(
        self, checks: RequestChecks, node: Node, pools: Sequence[Pool], claims: Sequence[ResourceClaim]
    ) -> None:
        self._checks = checks
        self._node = node
        self._use = checks.use
        self._pools = pools
        self._claims = claims
        self._requests: list[list[list[CheckedRequest]]] = []
        self._selected: dict[tuple[int, int], int] = {}
        self._constraints: list[list[Constraint]] = []
        self._chosen: list[list[ChosenDevice]] = [[] for _ in claims]
        self._counters = CounterUse(checks.use)
        self._taking: dict[DeviceId, list[int]] = {}
        self._consuming: dict[DeviceId, Amounts] = {}
        self._steps = 0
        # The available devices, by pool and slice.
        self._candidates = [
            (device, pool)
            for pool in pools
            if not (pool.incomplete or pool.invalid)
            for slice_ in pool.slices
            for device in slice_.devices
        ]
        self._pool_of = {device.id: pool for device, pool in self._candidates}

    def allocate(self) -> tuple[ChosenClaim, ...] | None:
        """Return a `ChosenClaim` per claim, or None if there is no solution.

        Raises:
            AllocationFailed: a claim, class or slice is invalid, or the search took too many steps.
        """
        for number, claim in enumerate(self._claims):
            self._check_claim(number, claim)
        outcome = self._request(0, 0)
        if outcome is Outcome.TOO_MANY:
            raise AllocationFailed("allocation max size exceeded")
        if outcome is Outcome.UNSOLVED:
            return None
        return tuple(self._result(number) for number in range(len(self._claims)))

    def _check_claim(self, number: int, claim: ResourceClaim) -> None:
        checks, key = self._checks, claim.key
        requests = [
            checks.check_request(claim, request, self._pools, self._node) for request in claim.spec.devices.requests
        ]
        self._requests.append(requests)
        least = sum(min((checked.count for checked in alternatives), default=0) for alternatives in requests)
        if least > MAX_DEVICES:
            raise AllocationFailed(
                f"claim {key}: number of requested devices {least} exceeds the claim limit of {MAX_DEVICES}"
            )
        constraints = []
        for place, written in enumerate(claim.spec.devices.constraints):
            is_distinct = written.distinct_attribute is not None and not uses_oldest_allocator(checks.gates)
            if written.match_attribute is None and not is_distinct:
                raise AllocationFailed(
                    f"claim {key}, constraint #{place}: empty constraint (unsupported constraint type?)"
                )
            constraints.append(Constraint(written))
        self._constraints.append(constraints)

    # The search. Each function allocates its request and everything that follows.

    def _request(self, claim: int, request: int) -> Outcome:
        """Allocate a request with the first alternative that leads to a solution, and all requests after it."""
        if claim == len(self._claims):
            return Outcome.SOLVED
        requests = self._requests[claim]
        if request == len(requests):
            outcome = self._request(claim + 1, 0)
            # If an earlier claim chooses another alternative, the later requests of this claim may succeed.
            return Outcome.UNSOLVED if outcome is Outcome.TOO_MANY else outcome
        alternatives = requests[request]
        if not alternatives[0].parent:
            return self._devices(claim, request, alternatives[0], 0, 0)
        too_many = True
        for number, checked in enumerate(alternatives):
            outcome = self._devices(claim, request, checked, 0, 0)
            if outcome is Outcome.SOLVED:
                self._selected[claim, request] = number
                return outcome
            if outcome is Outcome.UNSOLVED:
                too_many = False
        return Outcome.TOO_MANY if too_many else Outcome.UNSOLVED

    def _devices(self, claim: int, request: int, checked: CheckedRequest, taken: int, start: int) -> Outcome:
        """Choose the devices of a request after the first `taken`, from the available devices from index `start` on."""
        wants_all = checked.requested.allocation_mode == ALL
        if wants_all and not checked.everything:
            return Outcome.UNSOLVED
        if taken >= checked.count:
            return self._request(claim, request + 1)
        if len(self._chosen[claim]) + checked.count - taken > MAX_DEVICES:
            return Outcome.TOO_MANY
        if wants_all:
            return self._everything(claim, request, checked, taken)
        checks, candidates = self._checks, self._candidates
        admin = checked.admin_access
        for place in range(start, len(candidates)):
            device, pool = candidates[place]
            self._step()
            if self._is_in_use(device.id, claim, admin):
                continue
            if not checks.is_selectable(self._claims[claim], checked, device, self._node):
                continue
            undo = self._take(claim, checked, device, pool, must=False)
            if undo is None:
                continue
            outcome = self._devices(claim, request, checked, taken + 1, place + 1)
            if outcome is Outcome.SOLVED:
                return outcome
            _revert(undo)
            if outcome is Outcome.TOO_MANY:
                return outcome
        return Outcome.UNSOLVED

    def _everything(self, claim: int, request: int, checked: CheckedRequest, taken: int) -> Outcome:
        """Take the next device of a request with allocation mode All, for which there is no choice."""
        device = checked.everything[taken]
        self._step()
        undo = self._take(claim, checked, device, self._pool_of[device.id], must=True)
        if undo is None:
            return Outcome.UNSOLVED
        outcome = self._devices(claim, request, checked, taken + 1, 0)
        if outcome is not Outcome.SOLVED:
            _revert(undo)
        return outcome

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise AllocationFailed(f"node {self._node.metadata.name}: timed out trying to allocate devices")

    # One device.

    def _is_in_use(self, device: DeviceId, claim: int, admin: bool) -> bool:
        takers = self._taking.get(device)
        if admin:
            return takers is not None and claim in takers
        return bool(takers) or self._use.is_dedicated(device)

    def _take(self, claim: int, checked: CheckedRequest, device: PoolDevice, pool: Pool, *, must: bool) -> Undo | None:
        """Allocate a device and return the calls that undo it; return None if the device cannot be allocated.

        It may be in use, lack capacity or counters, have an untolerated taint, or violate a constraint.

        Raises:
            AllocationFailed: with `must`, if a constraint is not satisfied.
        """
        undo: Undo = []
        if self._can_allocate(claim, checked, device, pool, undo, must=must):
            self._record(claim, checked, device, undo)
            return undo
        _revert(undo)
        return None

    def _can_allocate(
        self, claim: int, checked: CheckedRequest, device: PoolDevice, pool: Pool, undo: Undo, *, must: bool
    ) -> bool:
        admin, shared = checked.admin_access, self._is_shared(device)
        if (not admin or not shared) and self._is_in_use(device.id, claim, admin):
            return False
        if device.consumes and not self._checks.partitionable_devices:
            return False
        in_part = device.id in self._consuming or self._use.has_consumed(device.id)
        if device.consumes and not (shared and in_part):
            if not self._counters.draw(device, pool):
                return False
            undo.append(partial(self._counters.release, device, pool))
        if self._checks.device_taints and has_untolerated_taint(device.taints, checked.requested.tolerations):
            return False
        names = (checked.parent, checked.name) if checked.parent else (checked.name, "")
        for constraint in self._constraints[claim]:
            if not constraint.add(*names, device):
                if must:
                    raise AllocationFailed(
                        f"claim {self._claims[claim].key}, request {checked.name}: "
                        f"cannot add device {device} because a claim constraint would not be satisfied"
                    )
                return False
            undo.append(partial(constraint.remove, *names))
        return not self._checks.consumable_capacity or fits(
            device.source.capacity, checked.capacity, self._use.consumed(device.id), self._consuming.get(device.id, {})
        )

    def _is_shared(self, device: PoolDevice) -> bool:
        return self._checks.consumable_capacity and bool(device.source.allow_multiple_allocations)

    def _record(self, claim: int, checked: CheckedRequest, device: PoolDevice, undo: Undo) -> None:
        consumed: Amounts = {}
        shared = self._is_shared(device)
        if shared:
            consumed = consumptions(device.source.capacity, checked.capacity)
            before = self._consuming.get(device.id)
            self._consuming[device.id] = _sum(before or {}, consumed)
            if before is None:
                undo.append(partial(self._consuming.pop, device.id))
            else:
                undo.append(partial(self._consuming.__setitem__, device.id, before))
        else:
            takers = self._taking.setdefault(device.id, [])
            takers.append(claim)
            undo.append(partial(takers.remove, claim))
        self._chosen[claim].append(ChosenDevice(checked, device, shared, consumed))
        undo.append(self._chosen[claim].pop)

    def _result(self, claim: int) -> ChosenClaim:
        requests = tuple(
            alternatives[self._selected.get((claim, number), 0)]
            for number, alternatives in enumerate(self._requests[claim])
        )
        return ChosenClaim(tuple(self._chosen[claim]), requests)


def _revert(undo: Undo) -> None:
    for each in reversed(undo):
        each()


def _sum(known: Amounts, added: Amounts) -> Amounts:
    return {**known, **{name: known[name] + amount if name in known else amount for name, amount in added.items()}}
