"""Versions of claims to write: with allocation and user when a pod is bound, without status when deallocated.

Also the conditions that devices must meet before their pod is bound (KEP-5007).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.objects.meta import Condition
from bayplan.objects.pod import Pod
from bayplan.objects.resource import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from bayplan.plugins.dynamic_resources.extended_resources import IN_MEMORY_NAME

FINALIZER = "resource.kubernetes.io/delete-protection"
MAX_USERS = 256
"""Maximum number of pods that may use a claim; the API rejects more."""

NAMES = uuid.UUID("2d0c6f0e-93d4-5d0f-8c5b-2f54a2c6f0b1")


class BindingFailed(Exception):
    """A claim can't be written. Caught in this package."""


def bound_claim(claim: ResourceClaim, pod: Pod, now_ns: int, *, timestamp: bool) -> ResourceClaim:
    """Return an allocated claim with a pod added to its users; the special claim also gets its final name.

    Args:
        claim: the claim with its allocation.
        pod: the new user.
        now_ns: the current time.
        timestamp: whether to add `now_ns` to an allocation without a timestamp.

    Raises:
        BindingFailed: the claim is being deleted, or already has the maximum number of users.
    """
    metadata, status = claim.metadata, claim.status
    if metadata.deletion_timestamp is not None:
        raise BindingFailed(f"claim {claim.key} got deleted in the meantime")
    if len(status.reserved_for) >= MAX_USERS:
        raise BindingFailed(
            f'add reservation to claim {claim.key}: ResourceClaim.resource.k8s.io "{metadata.name}" is invalid: '
            f"status.reservedFor: Too many: {len(status.reserved_for) + 1}: must have at most {MAX_USERS} items"
        )
    user = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    allocation = status.allocation
    if timestamp and allocation is not None and allocation.allocation_timestamp is None:
        allocation = msgspec.structs.replace(allocation, allocation_timestamp=format_time(now_ns))
    if metadata.name == IN_MEMORY_NAME:
        suffix = uuid.uuid5(NAMES, metadata.uid).hex[:5]
        metadata = msgspec.structs.replace(metadata, name=f"{metadata.generate_name}{suffix}", uid="")
    return msgspec.structs.replace(
        claim,
        metadata=metadata,
        status=msgspec.structs.replace(status, allocation=allocation, reserved_for=(*status.reserved_for, user)),
    )


def allocated_claim(claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
    """Return a claim with a status that contains its allocation, and with the finalizer that prevents its deletion."""
    metadata = claim.metadata
    if FINALIZER not in metadata.finalizers:
        metadata = msgspec.structs.replace(metadata, finalizers=(*metadata.finalizers, FINALIZER))
    return msgspec.structs.replace(claim, metadata=metadata, status=status)


def deallocated_claim(claim: ResourceClaim) -> ResourceClaim:
    """Return a claim without allocation and users."""
    return msgspec.structs.replace(claim, status=ResourceClaimStatus())


def binding_failed(claim: ResourceClaim) -> bool | None:
    """Return False if all devices of a claim are ready, True if one has failed, else None."""
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
    """Return the condition that reports the failure of a device of a claim, or None."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        status = _status_of(claim, result)
        for condition in status.conditions if status is not None else ():
            if condition.type in result.binding_failure_conditions and condition.status == "True":
                return condition
    return None


def is_awaited(claim: ResourceClaim) -> bool:
    """Return whether a claim's devices must meet conditions before its pod is bound."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def binding_deadline_ns(claim: ResourceClaim, timeout_ns: int | None) -> int | None:
    """Return the time by which the devices of a claim must be ready; None if there is no deadline."""
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
