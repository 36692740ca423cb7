"""Filter's part: ask one node after the other whether it can serve a pod's claims, and note what would be allocated."""

from __future__ import annotations

from bayplan.objects.node import Node
from bayplan.objects.quantity import value
from bayplan.plugins.dynamic_resources.allocator import SearchTimedOut
from bayplan.plugins.dynamic_resources.cycle_claims import CycleClaims, NodeAllocation, Variant
from bayplan.plugins.dynamic_resources.extended_resources import NodeRequests, node_requests, with_requests
from bayplan.plugins.dynamic_resources.node_allocator import InvalidPools, NodeAllocator
from bayplan.plugins.dynamic_resources.selectors import AllocationFailed
from bayplan.state.device_classes import DeviceClassResolver

NOT_AVAILABLE = "resourceclaim not available on the node"
CANNOT_ALLOCATE = "cannot allocate all claims"
STALE_SPECIAL_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
PASSES = 0


class NodeFilter:
    """Asks nodes about claims.

    Args:
        allocator: chooses devices.
        classes: which device class stands behind which resource.
    """

    def __init__(self, allocator: NodeAllocator, classes: DeviceClassResolver) -> None:
        self._allocator = allocator
        self._classes = classes

    def verdict(self, cycle: CycleClaims, row: int, node: Node) -> int:
        """Return the verdict on a node, and note in the cycle what belongs to it."""
        cycle.forget(row)
        lacking: tuple[str, ...] = ()
        if cycle.special is not None:
            if cycle.special.spec.devices.requests:
                return cycle.verdict(STALE_SPECIAL_CLAIM)
            found = self._lacking(cycle, node)
            if found is None:
                return cycle.verdict(CANNOT_FIT)
            lacking = found
            if not lacking and len(cycle.claims) == 1:
                return PASSES
        unavailable = self._unavailable(cycle, node)
        allocation: NodeAllocation | None = None
        if any(claim.status.allocation is None for claim in cycle.claims):
            outcome = self._allocate(cycle, node, self._variant(cycle, lacking))
            if isinstance(outcome, int):
                return outcome
            allocation = outcome
        if unavailable:
            cycle.unavailable[row] = unavailable
            return cycle.verdict(NOT_AVAILABLE)
        if allocation is not None:
            cycle.allocations[row] = allocation
        return PASSES

    def _lacking(self, cycle: CycleClaims, node: Node) -> tuple[str, ...] | None:
        """Return the resources for which a node needs devices, or None where it has neither the resource nor a class for it."""
        allocatable = node.status.allocatable
        found = []
        for name in cycle.resources:
            amount = allocatable.get(name)
            if self._classes.get(name) is not None and (amount is None or value(amount) == 0):
                found.append(name)
            elif amount is None:
                return None
        return tuple(found)

    def _unavailable(self, cycle: CycleClaims, node: Node) -> tuple[int, ...]:
        """Return the places of allocated claims that can't be used on a node, or whose devices don't become ready."""
        found = []
        for place in range(len(cycle.claims)):
            selector = cycle.available_on[place]
            if (
                selector is not None and not selector.matches(node.metadata.labels, node.metadata.name)
            ) or place in cycle.unready:
                found.append(place)
        return tuple(found)

    def _variant(self, cycle: CycleClaims, lacking: tuple[str, ...]) -> Variant:
        known = cycle.variants.get(lacking)
        if known is None:
            requests: NodeRequests | None = None
            claims = []
            for _, claim in cycle.to_allocate():
                if claim is cycle.special:
                    requests = node_requests(cycle.pod, lacking, self._classes)
                    claim = with_requests(claim, requests.requests)
                claims.append(claim)
            signature = self._allocator.signature(claims)
            known = cycle.variants[lacking] = Variant(tuple(claims), signature, requests)
        return known

    def _allocate(self, cycle: CycleClaims, node: Node, variant: Variant) -> NodeAllocation | int:
        """Return what would be allocated, or a verdict."""
        try:
            chosen = self._allocator.allocate(node, variant.claims, variant.signature)
        except AllocationFailed as problem:
            return cycle.verdict(str(problem), fatal=True)
        except SearchTimedOut:
            text = f"node {node.metadata.name}: timed out trying to allocate devices"
            return cycle.verdict(text, fatal=True)
        except InvalidPools as problem:
            return cycle.verdict(str(problem))
        if chosen is None:
            return cycle.verdict(CANNOT_ALLOCATE)
        return NodeAllocation(variant.claims, chosen, variant.requests)
