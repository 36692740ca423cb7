"""Filter and Score: whether a pod's claims can be allocated on each node, and which devices would be allocated."""

from __future__ import annotations

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.framework.status import ERROR_BIT, UNRESOLVABLE_BIT
from bayplan.objects.node import Node
from bayplan.plugins.dynamic_resources.allocator import ChosenClaim
from bayplan.plugins.dynamic_resources.cycle_claims import CycleClaims, Variant
from bayplan.plugins.dynamic_resources.extended_resources import node_requests, with_requests
from bayplan.plugins.dynamic_resources.node_allocator import (
    FAILED,
    INVALID,
    UNSOLVED,
    NodeAllocator,
    NodeSolutions,
    has_alternatives,
    preference,
)
from bayplan.plugins.dynamic_resources.pools import AllocationFailed
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.device_classes import DeviceClassResolver

NOT_AVAILABLE = "resourceclaim not available on the node"
STALE_SPECIAL_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
CANNOT_ALLOCATE = "cannot allocate all claims"
TEXTS = {UNSOLVED: CANNOT_ALLOCATE, INVALID: "invalid resource pools were encountered"}
"""The texts of outcomes whose text is the same for all claims of a kind."""

PASSES = 0


class NodeFilter:
    """Evaluates the claims of a pod on nodes.

    Args:
        cluster: the state with the nodes.
        allocator: chooses devices; it must be up to date.
        classes: the device class of each extended resource.
    """

    def __init__(self, cluster: ClusterState, allocator: NodeAllocator, classes: DeviceClassResolver) -> None:
        self._cluster = cluster
        self._allocator = allocator
        self._classes = classes

    def verdicts(self, cycle: CycleClaims) -> Codes:
        """Return uint16[capacity], the verdicts on all nodes."""
        kinds, lacking = self._nodes_by_kind(cycle)
        codes: Codes = np.zeros(len(kinds), dtype=np.uint16)
        if cycle.special is not None and cycle.special.spec.devices.requests:
            # The special claim was created by an earlier attempt.
            codes[:] = cycle.texts.verdict(STALE_SPECIAL_CLAIM, UNRESOLVABLE_BIT)
            return codes
        lacks_class = kinds < 0
        if lacks_class.any():
            codes[lacks_class] = cycle.texts.verdict(CANNOT_FIT, UNRESOLVABLE_BIT)
        for kind, names in enumerate(lacking):
            if not _needs_nothing(cycle, names):
                self._judge(cycle, names, kinds == kind, codes)
        return codes

    def _judge(self, cycle: CycleClaims, lacking: tuple[str, ...], kind: Bools, codes: Codes) -> None:
        """Write the verdicts on the nodes of one kind; `kind` (bool[capacity]) selects them."""
        nodes = self._cluster.nodes.nodes
        if cycle.wants_allocation:
            outcomes = self._solutions(cycle, lacking).outcomes
            for outcome, text in TEXTS.items():
                alike = kind & (outcomes == outcome)
                if alike.any():
                    codes[alike] = cycle.texts.verdict(text, UNRESOLVABLE_BIT)
            for row in np.flatnonzero(kind & (outcomes == FAILED)).tolist():
                node = nodes[row] if row < len(nodes) else None
                codes[row] = PASSES if node is None else self._search_failure(cycle, node, lacking)
        if cycle.unready or any(selector is not None for selector in cycle.available_on):
            for row in np.flatnonzero(kind & (codes == PASSES)).tolist():
                node = nodes[row] if row < len(nodes) else None
                if node is not None and _unavailable(cycle, node):
                    codes[row] = cycle.texts.verdict(NOT_AVAILABLE, UNRESOLVABLE_BIT)

    def allocation(self, cycle: CycleClaims, row: int) -> tuple[Variant, tuple[ChosenClaim, ...]] | None:
        """Return the claims to allocate on a node that passes, with the devices for each. None: there are none."""
        kinds, lacking = self._nodes_by_kind(cycle)
        kind = int(kinds[row])
        if kind < 0 or not cycle.wants_allocation or _needs_nothing(cycle, lacking[kind]):
            return None
        chosen = self._solutions(cycle, lacking[kind]).chosen[row]
        return None if chosen is None else (self._variant(cycle, lacking[kind]), chosen)

    def unavailable(self, cycle: CycleClaims, node: Node, verdict: int) -> list[int]:
        """Return the indexes of the claims that led to a node's verdict because the node can't use them."""
        return _unavailable(cycle, node) if cycle.texts.text(verdict) == NOT_AVAILABLE else []

    def preferences(self, cycle: CycleClaims) -> Ints:
        """Return int64[capacity]: each node's score, by the rank of the alternatives that are or would be allocated there."""
        raw = np.zeros(self._cluster.nodes.capacity, dtype=np.int64)
        if not cycle.wants_allocation or not has_alternatives(cycle.claims):
            return raw
        allocated = sum(
            preference(claim, {result.request for result in claim.status.allocation.devices.results})
            for claim in cycle.claims
            if claim.status.allocation is not None
        )
        kinds, lacking = self._nodes_by_kind(cycle)
        for kind, names in enumerate(lacking):
            if not _needs_nothing(cycle, names):
                here = kinds == kind
                raw[here] = self._solutions(cycle, names).preferences[here] + allocated
        return raw

    def _nodes_by_kind(self, cycle: CycleClaims) -> tuple[Index, list[tuple[str, ...]]]:
        """Return the kind of each node, and for each kind the resources that its nodes can provide only as devices.

        The kinds are intp[capacity]; -1: the node lacks a resource for which there is no device class.
        """
        nodes = self._cluster.nodes
        kinds: Index = np.zeros(nodes.capacity, dtype=np.intp)
        lacks_class = np.zeros(nodes.capacity, dtype=np.bool_)
        lacking: list[tuple[str, ...]] = [()]
        for name in cycle.resources:
            number = nodes.resources.get(name)
            without = np.ones(nodes.capacity, dtype=np.bool_) if number is None else nodes.allocatable[number] == 0
            if self._classes.get(name) is None:
                for row in np.flatnonzero(without[: nodes.count]).tolist():
                    node = nodes.nodes[row]
                    lacks_class[row] |= node is not None and name not in node.status.allocatable
                continue
            if without.all():
                lacking = [(*names, name) for names in lacking]
                continue
            found, kinds = np.unique(2 * kinds + without, return_inverse=True)
            lacking = [(*lacking[code // 2], name) if code % 2 else lacking[code // 2] for code in found.tolist()]
        kinds[lacks_class] = -1
        return kinds, lacking

    def _variant(self, cycle: CycleClaims, lacking: tuple[str, ...]) -> Variant:
        known = cycle.variants.get(lacking)
        if known is None:
            claims = []
            for _, claim in cycle.to_allocate():
                if claim is cycle.special:
                    claim = with_requests(claim, node_requests(cycle.pod, lacking, self._classes.get)[0])
                claims.append(claim)
            known = cycle.variants[lacking] = Variant(tuple(claims), self._allocator.signature(claims))
        return known

    def _solutions(self, cycle: CycleClaims, lacking: tuple[str, ...]) -> NodeSolutions:
        variant = self._variant(cycle, lacking)
        return self._allocator.solutions(variant.claims, variant.signature)

    def _search_failure(self, cycle: CycleClaims, node: Node, lacking: tuple[str, ...]) -> int:
        """Search again on a node where the search failed, and return the verdict, whose text names the claim.

        Stored solutions contain no names, because claims with other names share them.
        """
        try:
            self._allocator.search(node, self._variant(cycle, lacking).claims)
        except AllocationFailed as problem:
            return cycle.texts.verdict(str(problem), ERROR_BIT)
        raise InvariantError(f"the search on node {node.metadata.name} failed, but succeeds when repeated")


def _needs_nothing(cycle: CycleClaims, lacking: tuple[str, ...]) -> bool:
    """Return whether the pod has only the special claim, and the node has all requested extended resources itself."""
    return cycle.special is not None and not lacking and len(cycle.claims) == 1


def _unavailable(cycle: CycleClaims, node: Node) -> list[int]:
    """Return the indexes of allocated claims that a node can't use, or whose devices don't become ready."""
    return [
        place
        for place, selector in enumerate(cycle.available_on)
        if place in cycle.unready
        or (selector is not None and not selector.matches(node.metadata.labels, node.metadata.name))
    ]
