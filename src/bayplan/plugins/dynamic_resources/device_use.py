"""The allocated devices, and the consumed capacity of shared devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from bayplan.objects.quantity import Quantity, parse_quantity
from bayplan.objects.resource import DeviceRequestAllocationResult, ResourceClaim
from bayplan.plugins.dynamic_resources.claims import ClaimTracker

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and name of a device."""

PoolId: TypeAlias = tuple[str, str]
"""Driver and name of a pool."""

Amounts: TypeAlias = dict[str, Quantity]
"""Amounts by capacity name."""


class DeviceUse:
    """The devices and capacities that all allocations use, including those in flight, as of the last `refresh`.

    `consumable_capacity`: whether devices can be shared; otherwise every device is allocated as a whole.
    """

    def __init__(self, tracker: ClaimTracker, *, consumable_capacity: bool) -> None:
        self._tracker = tracker
        self._consumable_capacity = consumable_capacity
        self._seen: tuple[int, int, int] | None = None
        # Counted claims, by "/" and key, or for claims in flight by "=" and UID.
        self._claims: dict[str, ResourceClaim] = {}
        # The UIDs of claims in flight by the keys under which they are being created.
        self._written_as: dict[str, str] = {}
        self._dedicated: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._capacities: dict[DeviceId, dict[tuple[str, int], Mapping[str, Quantity]]] = {}
        self._changed: dict[PoolId, None] = {}

    def refresh(self) -> None:
        """Update the counts to the current claims."""
        tracker, seen = self._tracker, self._seen
        if tracker.version == seen:
            return
        changed = tracker.changed_since(seen) if seen is not None else None
        if changed is None:
            # Also look up counted keys and UIDs that no longer exist.
            keys = [claim.key for claim in tracker.all()]
            uids = list(tracker.in_flight())
            keys += [key[1:] for key in self._claims if key.startswith("/")]
            uids += [key[1:] for key in self._claims if key.startswith("=")]
        else:
            keys, uids = changed
            uids += [uid for key in keys if (uid := self._written_as.pop(key, None)) is not None]
        for key in dict.fromkeys(keys):
            claim = tracker.get(key)
            self._replace("/" + key, claim if claim is not None and claim.status.allocation is not None else None)
        for uid in dict.fromkeys(uids):
            flying, written_as = tracker.claim_in_flight(uid)
            self._replace("=" + uid, flying)
            if written_as:
                self._written_as[written_as] = uid
        # Looking up claims in flight may have removed some, which changes the version.
        self._seen = tracker.version

    def take_changed_pools(self) -> Iterable[PoolId]:
        """Return the pools in which allocated devices changed since the last call."""
        changed, self._changed = self._changed, {}
        return changed

    def _replace(self, key: str, claim: ResourceClaim | None) -> None:
        known = self._claims.get(key)
        if known is claim:
            return
        if known is not None:
            self._count(key, known, -1)
            del self._claims[key]
        if claim is not None:
            self._claims[key] = claim
            self._count(key, claim, 1)

    def _count(self, key: str, claim: ResourceClaim, delta: int) -> None:
        for place, result in enumerate(_taking(claim)):
            device = (result.driver, result.pool, result.device)
            self._changed[device[:2]] = None
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

    def is_dedicated(self, device: DeviceId) -> bool:
        """Return whether a device is allocated as a whole."""
        return self._dedicated[device] > 0

    def is_allocated(self, device: DeviceId) -> bool:
        """Return whether a device is allocated, as a whole or in part."""
        return self._dedicated[device] > 0 or self._shares[device] > 0

    def has_consumed(self, device: DeviceId) -> bool:
        """Return whether some allocation consumes capacity of a shared device."""
        return device in self._capacities

    def consumed(self, device: DeviceId) -> Amounts:
        """Return the consumed capacities of a shared device as a new mapping."""
        total: Amounts = {}
        for amounts in self._capacities.get(device, {}).values():
            for name, amount in amounts.items():
                total[name] = total[name] + amount if name in total else amount
        return total


def _taking(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    """Yield the devices that a claim occupies; those with admin access occupy none."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield result
