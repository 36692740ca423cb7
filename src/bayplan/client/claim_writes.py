"""The requests of DynamicResources at PreBind: allocate and reserve claims, then wait for their devices.

The functions are generators without sockets; see `bayplan.client.exchanges`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bayplan.base.go_text.quoting import quote
from bayplan.base.plain_data import Document
from bayplan.client.pre_bind import PREEMPTED, PreBind
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import (
    STRATEGIC_MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    create_request,
    get_request,
    path_of,
    pod_status_request,
    update_request,
)
from bayplan.client.volume_writes import member
from bayplan.objects.kinds import encode
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod, PodExtendedResourceClaimStatus
from bayplan.objects.resource import ResourceClaim
from bayplan.plugins.dynamic_resources.claim_binding import (
    FINALIZER,
    binding_deadline_ns,
    binding_failed,
    failed_condition,
)
from bayplan.plugins.dynamic_resources.extended_resources import ANNOTATION, mappings_of

CONFLICT = 409
MAX_ATTEMPTS = 5
RETRY_SECONDS = 0.01

FIRST_LOOK_SECONDS = 0.25
MAX_POLL_SECONDS = 5.0
"""Maximum interval between checks of devices, as in upstream.

The interval starts at `FIRST_LOOK_SECONDS`, and doubles each time.
"""


def write_claim(claim: ResourceClaim) -> RequestSteps[str]:
    """Write an allocated claim with one more user. If it has no uid, create it first. Return the error, or "".

    After a conflict with another writer, read the claim and change it again, up to `MAX_ATTEMPTS` times.
    """
    problem = ""
    for attempt in range(MAX_ATTEMPTS):
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


def release_claim(claim: ResourceClaim, pod: Pod) -> RequestSteps[str]:
    """Undo `write_claim` for a pod that could not be bound: remove the pod from the claim's users, but keep the allocation.

    The claim of a pod's extended resources is deleted. Return the error, or "".
    """
    if _serves_extended_resources(claim):
        return (yield from _delete_claim(claim))
    path = path_of(ResourceClaim, claim.metadata.namespace, claim.metadata.name, "status")
    users = [{"$patch": "delete", "uid": pod.metadata.uid}]
    patch = {"metadata": {"uid": claim.metadata.uid}, "status": {"reservedFor": users}}
    response = yield ApiRequest("PATCH", path, msgspec.json.encode(patch), STRATEGIC_MERGE_PATCH)
    return "" if response.ok else response.message


def _delete_claim(claim: ResourceClaim) -> RequestSteps[str]:
    """Remove the finalizer of a claim, and delete it."""
    path = path_of(ResourceClaim, claim.metadata.namespace, claim.metadata.name)
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            yield RETRY_SECONDS
        response = yield get_request(claim)
        if not response.ok:
            return response.message
        document = _decoded(response)
        metadata = member(document, "metadata")
        known = metadata.get("finalizers")
        if isinstance(known, list):
            metadata["finalizers"] = [name for name in known if name != FINALIZER]
        response = yield update_request(claim, document)
        if response.status != CONFLICT:
            break
    if response.ok:
        response = yield ApiRequest("DELETE", path)
    return "" if response.ok else response.message


def deallocate_claim(claim: ResourceClaim) -> RequestSteps[str]:
    """Remove the allocation, the users and the device status of a claim, unless it was modified.

    Return the error, or "".
    """
    response = yield get_request(claim)
    if not response.ok:
        return response.message
    document = _decoded(response)
    member(document, "metadata")["resourceVersion"] = claim.metadata.resource_version
    for name in ("allocation", "reservedFor", "devices"):
        member(document, "status").pop(name, None)
    response = yield update_request(claim, document, subresource="status")
    return "" if response.ok else response.message


def record_claim_in_status(pod: Pod, claim: ResourceClaim) -> RequestSteps[str]:
    """Record the claim of a pod's extended resources in the pod's status; do nothing for other claims.

    Return the error, or "".
    """
    if not _serves_extended_resources(claim):
        return ""
    wanted = PodExtendedResourceClaimStatus(
        request_mappings=mappings_of(pod, claim), resource_claim_name=claim.metadata.name
    )
    if wanted == pod.status.extended_resource_claim_status:
        return ""
    patch = {"status": {"extendedResourceClaimStatus": msgspec.to_builtins(wanted)}}
    response = yield pod_status_request(pod, patch)
    return "" if response.ok else f"update pod {pod.key} ExtendedResourceClaimStatus: {response.message}"


def wait_for_devices(
    claims: Sequence[ResourceClaim], objects: ObjectLookup, now_ns: Callable[[], int], pre_bind: PreBind
) -> RequestSteps[str]:
    """Wait until the devices of claims meet the binding conditions of their slices (KEP-5007), or PreBind is canceled.

    Return the error, or "".
    """
    pause, begun_ns, limit_ns = FIRST_LOOK_SECONDS, now_ns(), pre_bind.limits.device_ns
    while True:
        awaited = False
        for written in claims:
            claim = objects.get(ResourceClaim, written.key)
            if claim is None:
                return f'could not find v1.ResourceClaim "{written.key}"'
            state = binding_failed(claim)
            if state:
                failed = failed_condition(claim)
                reason, message = (failed.reason, failed.message) if failed is not None else ("", "")
                details = f"claim={claim.metadata.name}, reason={reason}, message={quote(message)}"
                return f"device binding failed: {details}"
            if state is None:
                awaited = True
                deadline_ns = binding_deadline_ns(claim, limit_ns)
                if deadline_ns is not None and deadline_ns < now_ns():
                    return f"device binding timeout: claim={claim.metadata.name}"
                break
        if not awaited:
            return ""
        if now_ns() - begun_ns > limit_ns:
            return "device binding timeout: context deadline exceeded"
        yield pause
        if pre_bind.is_canceled:
            return PREEMPTED
        pause = min(2 * pause, MAX_POLL_SECONDS)


def _serves_extended_resources(claim: ResourceClaim) -> bool:
    return claim.metadata.annotations.get(ANNOTATION) == "true"


def _decoded(response: ApiResponse) -> Document:
    return msgspec.json.decode(response.body, type=dict[str, object])


def _problem(claim: ResourceClaim, document: Document) -> str:
    """Return why a claim can no longer be used, or ""."""
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
    """Set the allocation in a claim's stored status, and add the claim's newest user to the stored users."""
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
