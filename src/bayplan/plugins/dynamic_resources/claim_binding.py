"""The versions of claims that the scheduler writes, and the binding conditions of their devices (KEP-5007)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import msgspec

from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.framework.configuration.plugin_arguments import binding_conditions_enabled
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.meta import Condition
from bayplan.objects.pod import Pod
from bayplan.objects.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from bayplan.plugins.dynamic_resources.allocator import ChosenClaim, ChosenDevice
from bayplan.plugins.dynamic_resources.claims import uid_of
from bayplan.plugins.dynamic_resources.device_requests import uses_oldest_allocator
from bayplan.plugins.dynamic_resources.extended_resources import IN_MEMORY_NAME
from bayplan.plugins.dynamic_resources.pools import AllocationFailed

SHARES = uuid.UUID("6b1f1a5e-7d0f-5c38-9d5e-0b4a3f6f2c11")
"""Namespace of share IDs. They are hashes of their content, so that repeated runs generate equal IDs."""


def allocation_of(claim: ResourceClaim, chosen: ChosenClaim, node_name: str, gates: FeatureGates) -> AllocationResult:
    """Return the allocation of a claim on a node.

    Raises:
        AllocationFailed: a slice has a node selector that can't be copied into an allocation.
    """
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(claim, device, number, gates) for number, device in enumerate(chosen.devices)),
            config=tuple(_configuration(claim, chosen)),
        ),
        node_selector=_node_selector(claim, chosen, node_name, gates),
    )


def _result(
    claim: ResourceClaim, chosen: ChosenDevice, number: int, gates: FeatureGates
) -> DeviceRequestAllocationResult:
    request, source = chosen.request, chosen.device.source
    driver, pool, device = chosen.device.id
    has_conditions = binding_conditions_enabled(gates)
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if request.admin_access else None,
        tolerations=request.requested.tolerations,
        binding_conditions=source.binding_conditions if has_conditions else (),
        binding_failure_conditions=source.binding_failure_conditions if has_conditions else (),
        share_id=str(uuid.uuid5(SHARES, f"{uid_of(claim)}/{chosen.device}/{number}")) if chosen.shared else None,
        consumed_capacity={name: str(amount) for name, amount in chosen.consumed.items()},
    )


def _configuration(claim: ResourceClaim, chosen: ChosenClaim) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the parameters of the classes, each class once, then those of the claim."""
    by_class: dict[str, list[DeviceAllocationConfiguration]] = {}
    for checked in chosen.requests:
        name, request = checked.device_class.metadata.name, checked.full_name
        known = by_class.get(name)
        if known is None:
            by_class[name] = [
                DeviceAllocationConfiguration(source="FromClass", requests=(request,), opaque=item.opaque)
                for item in checked.device_class.spec.config
            ]
        else:
            by_class[name] = [msgspec.structs.replace(item, requests=(*item.requests, request)) for item in known]
    for items in by_class.values():
        yield from items
    for config in claim.spec.devices.config:
        written = DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        if not config.requests:
            yield written
            continue
        for original, checked in zip(claim.spec.devices.requests, chosen.requests, strict=True):
            if original.name in config.requests or (checked.parent and checked.full_name in config.requests):
                yield written


def _node_selector(
    claim: ResourceClaim, chosen: ChosenClaim, node_name: str, gates: FeatureGates
) -> NodeSelector | None:
    """Return the selector of the nodes that can use all devices; None for all nodes."""
    oldest = uses_oldest_allocator(gates)
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for device in chosen.devices:
        source, spec = device.device.source, device.device.slice.source.spec
        per_device = bool(spec.per_device_node_selection)
        name = source.node_name if per_device else spec.node_name
        if name is not None or (source.binds_to_node and not oldest):
            target = name if oldest and name is not None else node_name
            term = NodeSelectorRequirement(key="metadata.name", operator="In", values=(target,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(term,)),))
        selector = source.node_selector if per_device else spec.node_selector
        terms = selector.node_selector_terms if selector is not None else ()
        if len(terms) > 1:
            raise AllocationFailed(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term_of_slice in terms:
            _add_new(fields, term_of_slice.match_fields)
            _add_new(expressions, term_of_slice.match_expressions)
    if not fields and not expressions:
        return None
    joined = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(joined,))


def _add_new(known: list[NodeSelectorRequirement], added: tuple[NodeSelectorRequirement, ...]) -> None:
    for requirement in added:
        if not any(
            (item.key, item.operator) == (requirement.key, requirement.operator)
            and set(item.values or ()) == set(requirement.values or ())
            for item in known
        ):
            known.append(requirement)


def result_document(result: DeviceRequestAllocationResult) -> dict[str, object]:
    """Return an allocated device as plain values, for records."""
    document: dict[str, object] = {
        "request": result.request,
        "driver": result.driver,
        "pool": result.pool,
        "device": result.device,
    }
    if result.admin_access:
        document["adminAccess"] = True
    if result.consumed_capacity:
        document["consumedCapacity"] = {name: str(amount) for name, amount in result.consumed_capacity.items()}
    return document


FINALIZER = "resource.kubernetes.io/delete-protection"
MAX_USERS = 256
"""Maximum number of pods that may use a claim; the API rejects more."""

NAMES = uuid.UUID("2d0c6f0e-93d4-5d0f-8c5b-2f54a2c6f0b1")
"""Namespace of the hashes that end the names of special claims."""


class BindingFailed(Exception):
    """A claim can't be written. Caught in this package."""


def bound_claim(claim: ResourceClaim, pod: Pod, now_ns: int, *, timestamp: bool) -> ResourceClaim:
    """Return an allocated claim with a pod added to its users; the special claim also gets its final name.

    `timestamp`: whether to add the current time to an allocation without a timestamp.

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
    if allocation is None or allocation.allocation_timestamp is None or timeout_ns is None or not is_awaited(claim):
        return None
    return parse_time_ns(allocation.allocation_timestamp) + timeout_ns


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device):
            return status
    return None


def _is_true(conditions: Sequence[Condition], kind: str) -> bool:
    return next((condition.status == "True" for condition in conditions if condition.type == kind), False)
