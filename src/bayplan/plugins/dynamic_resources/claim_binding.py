"""Updates of claims: add allocation and user when a pod is bound, clear the status when a claim is deallocated."""

from __future__ import annotations

import uuid

import msgspec

from bayplan.base.go_text.times import format_time
from bayplan.objects.pod import Pod
from bayplan.objects.resource import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from bayplan.plugins.dynamic_resources.extended_resources import IN_MEMORY_NAME

FINALIZER = "resource.kubernetes.io/delete-protection"
MAX_USERS = 256
"""Maximum number of pods that use a claim; the API rejects more."""

NAMES = uuid.UUID("2d0c6f0e-93d4-5d0f-8c5b-2f54a2c6f0b1")


class BindingFailed(Exception):
    """A claim can't be written. Caught in this package."""


def bound_claim(claim: ResourceClaim, pod: Pod, now_ns: int, *, timestamp: bool) -> ResourceClaim:
    """Return an allocated claim with the pod among its users; a special claim gets its name.

    Args:
        claim: with its allocation.
        pod: the new user.
        now_ns: the instant.
        timestamp: whether it is noted in an allocation that has none.

    Raises:
        BindingFailed: the claim is being deleted, or has as many users as it can have.
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
    """Return a claim with an allocation, protected from deletion."""
    metadata = claim.metadata
    if FINALIZER not in metadata.finalizers:
        metadata = msgspec.structs.replace(metadata, finalizers=(*metadata.finalizers, FINALIZER))
    return msgspec.structs.replace(claim, metadata=metadata, status=status)


def deallocated_claim(claim: ResourceClaim) -> ResourceClaim:
    """Return a claim without allocation and users."""
    return msgspec.structs.replace(claim, status=ResourceClaimStatus())
