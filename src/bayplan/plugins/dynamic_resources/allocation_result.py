"""Build the allocation of a claim in the form of the API: devices, configuration, and the nodes that can use them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec

from bayplan.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from bayplan.plugins.dynamic_resources.allocator import ChosenClaim, ChosenDevice
from bayplan.plugins.dynamic_resources.claim_tracker import uid_of
from bayplan.plugins.dynamic_resources.features import AllocationFeatures
from bayplan.plugins.dynamic_resources.selectors import AllocationFailed

SHARES = uuid.UUID("6b1f1a5e-7d0f-5c38-9d5e-0b4a3f6f2c11")
"""Namespace of share IDs. They are hashes of their content, so that repeated runs generate equal IDs."""


def allocation_of(
    claim: ResourceClaim, chosen: ChosenClaim, node_name: str, features: AllocationFeatures
) -> AllocationResult:
    """Return the allocation of a claim on a node.

    Raises:
        AllocationFailed: a slice has a node selector that can't be copied into an allocation.
    """
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(claim, device, number, features) for number, device in enumerate(chosen.devices)),
            config=tuple(_configuration(claim, chosen)),
        ),
        node_selector=_node_selector(claim, chosen, node_name, features),
    )


def _result(
    claim: ResourceClaim, chosen: ChosenDevice, number: int, features: AllocationFeatures
) -> DeviceRequestAllocationResult:
    alternative, source = chosen.request.alternative, chosen.device.source
    driver, pool, device = chosen.device.id
    share = uuid.uuid5(SHARES, f"{uid_of(claim)}/{chosen.device}/{number}") if chosen.shared else None
    return DeviceRequestAllocationResult(
        request=alternative.full_name,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if alternative.admin_access else None,
        tolerations=alternative.requested.tolerations,
        binding_conditions=source.binding_conditions if features.binding_conditions else (),
        binding_failure_conditions=source.binding_failure_conditions if features.binding_conditions else (),
        share_id=str(share) if share is not None else None,
        consumed_capacity={name: str(amount) for name, amount in chosen.consumed.items()},
    )


def _configuration(claim: ResourceClaim, chosen: ChosenClaim) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the parameters of the classes, each class once, then those of the claim."""
    by_class: dict[str, list[DeviceAllocationConfiguration]] = {}
    for checked in chosen.requests:
        name, request = checked.device_class.metadata.name, checked.alternative.full_name
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
            if original.name in config.requests or (
                checked.alternative.parent and checked.alternative.full_name in config.requests
            ):
                yield written


def _node_selector(
    claim: ResourceClaim, chosen: ChosenClaim, node_name: str, features: AllocationFeatures
) -> NodeSelector | None:
    """Return the selector of the nodes that can use all devices; None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for device in chosen.devices:
        source, spec = device.device.source, device.device.slice.source.spec
        per_device = bool(spec.per_device_node_selection)
        name = source.node_name if per_device else spec.node_name
        if name is not None or (source.binds_to_node and not features.is_oldest):
            target = name if features.is_oldest and name is not None else node_name
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
