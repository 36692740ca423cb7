"""Conditions that devices must meet before their pod is bound (KEP-5007)."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.meta import Condition
from bayplan.objects.resource import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim


def binding_failed(claim: ResourceClaim) -> bool | None:
    """Return False if all devices of a claim are ready, True if one has failed, None if one is not ready yet."""
    allocation = claim.status.allocation
    if allocation is None:
        return None
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return None
        if any(_is_true(status.conditions, kind) for kind in result.binding_failure_conditions):
            return True
        if not all(_is_true(status.conditions, kind) for kind in result.binding_conditions):
            return None
    return False


def failed_condition(claim: ResourceClaim) -> Condition | None:
    """Return the condition that says that a device of a claim has failed, or None."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        status = _status_of(claim, result)
        for condition in status.conditions if status is not None else ():
            if condition.type in result.binding_failure_conditions and condition.status == "True":
                return condition
    return None


def is_awaited(claim: ResourceClaim) -> bool:
    """Return whether a claim's devices have conditions to meet before its pod is bound."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def binding_deadline_ns(claim: ResourceClaim, timeout_ns: int | None) -> int | None:
    """Return the deadline for the devices of a claim to be ready; None if there is no limit."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or timeout_ns is None:
        return None
    if not is_awaited(claim):
        return None
    return parse_time_ns(allocation.allocation_timestamp) + timeout_ns


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device):
            return status
    return None


def _is_true(conditions: Sequence[Condition], kind: str) -> bool:
    found = next((condition for condition in conditions if condition.type == kind), None)
    return found is not None and found.status == "True"
