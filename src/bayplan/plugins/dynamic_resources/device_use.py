"""Which devices are allocated, and how much of those that several claims share; followed claim by claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from bayplan.objects.quantity import Quantity, parse_quantity
from bayplan.objects.resource import DeviceRequestAllocationResult, ResourceClaim
from bayplan.plugins.dynamic_resources.claim_tracker import ClaimTracker, uid_of

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool, device."""

PoolId: TypeAlias = tuple[str, str]
"""Driver, pool."""

Amounts: TypeAlias = dict[str, Quantity]
"""Amounts by name of a capacity."""


class DeviceUse:
    """What all allocations together take, those in flight among them.

    Args:
        tracker: where claims are read from.
        consumable_capacity: whether devices can be shared; else every allocated device is taken as a whole.

    Attributes:
        revisions: per pool a number that moves whenever what is taken there changes.
    """

    def __init__(self, tracker: ClaimTracker, *, consumable_capacity: bool) -> None:
        self._tracker = tracker
        self._consumable_capacity = consumable_capacity
        self._seen: tuple[int, int, int] | None = None
        self._claims: dict[str, ResourceClaim] = {}
        self._dedicated: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._capacities: dict[DeviceId, dict[tuple[str, int], Mapping[str, Quantity]]] = {}
        self.revisions: Counter[PoolId] = Counter()

    def refresh(self) -> None:
        """Follow the claims."""
        version = self._tracker.version
        if version == self._seen:
            return
        self._seen = version
        current: dict[str, ResourceClaim] = {}
        for claim in self._tracker.all():
            if claim.status.allocation is not None:
                current["/" + claim.key] = claim
        for claim in self._tracker.in_flight():
            current[uid_of(claim)] = claim
        known = self._claims
        for key, old in list(known.items()):
            if current.get(key) is not old:
                self._count(key, old, -1)
                del known[key]
        for key, claim in current.items():
            if key not in known:
                known[key] = claim
                self._count(key, claim, 1)

    def _count(self, key: str, claim: ResourceClaim, delta: int) -> None:
        for place, result in enumerate(_taking(claim)):
            device = (result.driver, result.pool, result.device)
            self.revisions[device[:2]] += 1
            if result.share_id is None or not self._consumable_capacity:
                self._dedicated[device] += delta
                continue
            self._shares[device] += delta
            if not result.consumed_capacity:
                continue
            if delta > 0:
                amounts = {name: parse_quantity(amount) for name, amount in result.consumed_capacity.items()}
                self._capacities.setdefault(device, {})[key, place] = amounts
            else:
                self._capacities[device].pop((key, place))
                if not self._capacities[device]:
                    del self._capacities[device]

    def is_taken(self, device: DeviceId) -> bool:
        """Return whether a device is allocated as a whole."""
        return self._dedicated[device] > 0

    def is_allocated(self, device: DeviceId) -> bool:
        """Return whether a device is allocated, as a whole or in part."""
        return self._dedicated[device] > 0 or self._shares[device] > 0

    def has_consumed(self, device: DeviceId) -> bool:
        """Return whether capacity of a shared device is in use."""
        return device in self._capacities

    def consumed(self, device: DeviceId) -> Amounts:
        """Return a new mapping with what is in use of the capacities of a shared device."""
        total: Amounts = {}
        for amounts in self._capacities.get(device, {}).values():
            for name, amount in amounts.items():
                total[name] = total[name] + amount if name in total else amount
        return total


def _taking(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    """Iterate over what a claim takes; with admin access it takes nothing."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield result
