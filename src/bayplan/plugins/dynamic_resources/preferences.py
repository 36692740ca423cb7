"""The score of a claim on a node: the rank of the chosen alternatives in their lists (KEP-4816)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bayplan.objects.resource import ResourceClaim

MAX_PREFERENCE = 8
"""The most alternatives a request can have: the first one is worth this much, each further one less."""


def prefers(claims: Iterable[ResourceClaim]) -> bool:
    """Return whether some request lists alternatives; otherwise every node scores 0."""
    return any(request.first_available for claim in claims for request in claim.spec.devices.requests)


def preference(claim: ResourceClaim, taken: Collection[str]) -> int:
    """Return the score of a claim whose chosen requests and alternatives have these full names."""
    return sum(
        MAX_PREFERENCE - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in taken
    )
