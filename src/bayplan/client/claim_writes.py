"""What DynamicResources' PreBind writes: the finalizer and the allocation of a claim, and the pod as its user.

A generator that knows no sockets; see `bayplan.client.exchanges`.
"""

from __future__ import annotations

import msgspec

from bayplan.client.requests import ApiResponse, create_request, get_request, update_request
from bayplan.client.volume_writes import Document, Steps, member
from bayplan.objects.kinds import encode
from bayplan.objects.resource import ResourceClaim

CONFLICT = 409
MOST_TRIES = 5
RETRY_SECONDS = 0.01


def write_claim(claim: ResourceClaim) -> Steps:
    """Write a claim as it is to be: allocated, with one more user. One without uid is made first.

    Somebody else may write to the claim meanwhile: then it is read and changed once more, up to `MOST_TRIES` times.
    """
    problem = ""
    for attempt in range(MOST_TRIES):
        if attempt:
            yield RETRY_SECONDS
        if not claim.metadata.uid and not attempt:
            made = encode(claim)
            made.pop("status", None)
            response = yield create_request(claim, made)
            if not response.ok:
                return f"create claim for extended resources: {response.message}"
        else:
            response = yield get_request(claim)
            if not response.ok:
                return (
                    f"get updated claim {claim.key} after conflict: {response.message}" if attempt else response.message
                )
        document = _decoded(response)
        problem = _problem(claim, document)
        if problem:
            return problem
        is_allocated = "allocation" in member(document, "status")
        metadata = member(document, "metadata")
        known = metadata.get("finalizers")
        finalizers = known if isinstance(known, list) else []
        missing = [name for name in claim.metadata.finalizers if name not in finalizers]
        if missing and not is_allocated:
            metadata["finalizers"] = [*finalizers, *missing]
            response = yield update_request(claim, document)
            if not response.ok:
                problem = f"add finalizer to claim {claim.key}: {response.message}"
                if response.status == CONFLICT:
                    continue
                return problem
            document = _decoded(response)
        _use(claim, member(document, "status"))
        response = yield update_request(claim, document, subresource="status")
        if response.ok:
            return ""
        what = "add reservation to" if is_allocated else "add allocation and reservation to"
        problem = f"{what} claim {claim.key}: {response.message}"
        if response.status != CONFLICT:
            return problem
    return problem


def _decoded(response: ApiResponse) -> Document:
    return msgspec.json.decode(response.body, type=dict[str, object])


def _problem(claim: ResourceClaim, document: Document) -> str:
    """Return why a claim can't be used as it is now, "" where it can."""
    metadata, status = member(document, "metadata"), member(document, "status")
    if claim.metadata.uid and metadata.get("uid") != claim.metadata.uid:
        return f"claim {claim.key} got deleted in the meantime"
    if metadata.get("deletionTimestamp"):
        return f"claim {claim.key} got deleted in the meantime"
    allocation = status.get("allocation")
    if isinstance(allocation, dict) and _devices(allocation) != _devices(_wanted_allocation(claim)):
        return f"claim {claim.key} got allocated elsewhere in the meantime"
    return ""


def _wanted_allocation(claim: ResourceClaim) -> Document:
    allocation = claim.status.allocation
    return (
        msgspec.json.decode(msgspec.json.encode(allocation), type=dict[str, object]) if allocation is not None else {}
    )


def _devices(allocation: Document) -> list[tuple[object, ...]]:
    results = member(allocation, "devices").get("results")
    names = ("request", "driver", "pool", "device", "shareID")
    return [tuple(item.get(name) for name in names) for item in results] if isinstance(results, list) else []


def _use(claim: ResourceClaim, status: Document) -> None:
    """Put allocation and the newest user of a claim into its status; other users may have come meanwhile."""
    wanted = _wanted_allocation(claim)
    allocation = status.get("allocation")
    if isinstance(allocation, dict):
        if "allocationTimestamp" in wanted:
            allocation.setdefault("allocationTimestamp", wanted["allocationTimestamp"])
    elif wanted:
        status["allocation"] = wanted
    known = status.get("reservedFor")
    users = known if isinstance(known, list) else []
    newest = claim.status.reserved_for[-1:]
    added = [msgspec.to_builtins(user) for user in newest]
    status["reservedFor"] = [*users, *(user for user in added if user not in users)]
