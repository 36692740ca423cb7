"""Filter and Score: whether each node can serve a pod's claims, and what would be allocated there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import ERROR_BIT
from bayplan.objects.node import Node
from bayplan.objects.quantity import value
from bayplan.plugins.dynamic_resources.allocator import SearchTimedOut
from bayplan.plugins.dynamic_resources.cycle_claims import CycleClaims, NodeAllocation, Variant
from bayplan.plugins.dynamic_resources.extended_resources import NodeRequests, node_requests, with_requests
from bayplan.plugins.dynamic_resources.node_allocator import (
    FAILED,
    INVALID,
    SOLVED,
    UNSOLVED,
    NodeAllocator,
    NodeSolutions,
    prefers,
)
from bayplan.plugins.dynamic_resources.selectors import AllocationFailed
from bayplan.plugins.normalize_score import StretchedScoreRule
from bayplan.state.arrays import Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.device_classes import DeviceClassResolver

NOT_AVAILABLE = "resourceclaim not available on the node"
CANNOT_ALLOCATE = "cannot allocate all claims"
STALE_SPECIAL_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
INVALID_POOLS = "invalid resource pools were encountered"
PASSES = 0

TEXTS = {UNSOLVED: CANNOT_ALLOCATE, INVALID: INVALID_POOLS}
"""The texts of outcomes that are the same for all claims of a kind."""

ALL_ALIKE: list[tuple[str, ...]] = [()]


class NodeFilter:
    """Asks nodes about claims.

    Args:
        cluster: whose nodes.
        allocator: chooses devices; it must be up to date.
        classes: the device class of each extended resource.
    """

    def __init__(self, cluster: ClusterState, allocator: NodeAllocator, classes: DeviceClassResolver) -> None:
        self._cluster = cluster
        self._allocator = allocator
        self._classes = classes

    def verdicts(self, cycle: CycleClaims, codes: Codes) -> None:
        """Write the verdicts on all nodes: what `verdict` returns for each."""
        nodes = self._cluster.nodes.nodes
        if cycle.unready or any(selector is not None for selector in cycle.available_on) or _is_stale(cycle):
            for row, node in enumerate(nodes):
                codes[row] = PASSES if node is None else self.verdict(cycle, row, node)
            return
        codes[:] = PASSES
        kinds, lacking = self._nodes_by_kind(cycle)
        if kinds is not None and (kinds < 0).any():
            codes[kinds < 0] = cycle.verdict(CANNOT_FIT)
        for kind, names in enumerate(lacking):
            if not cycle.wants_allocation or _needs_nothing(cycle, names):
                continue
            outcomes = self._solutions(cycle, names).outcomes
            failing = outcomes != SOLVED
            if kinds is not None:
                failing &= kinds == kind
            if not failing.any():
                continue
            for outcome, text in TEXTS.items():
                alike = failing & (outcomes == outcome)
                if alike.any():
                    codes[alike] = cycle.verdict(text)
            for row in np.flatnonzero(failing & (outcomes == FAILED)).tolist():
                node = nodes[row] if row < len(nodes) else None
                codes[row] = PASSES if node is None else self._search_failure(cycle, node, names)

    def verdict(self, cycle: CycleClaims, row: int, node: Node) -> int:
        """Return the verdict on a node."""
        lacking: tuple[str, ...] = ()
        if cycle.special is not None:
            if _is_stale(cycle):
                return cycle.verdict(STALE_SPECIAL_CLAIM)
            found = self._lacking(cycle, node)
            if found is None:
                return cycle.verdict(CANNOT_FIT)
            lacking = found
        if _needs_nothing(cycle, lacking):
            return PASSES
        outcome = self._solutions(cycle, lacking).outcomes[row] if cycle.wants_allocation else SOLVED
        if outcome == FAILED:
            return self._search_failure(cycle, node, lacking)
        if outcome != SOLVED:
            return cycle.verdict(TEXTS[outcome])
        return cycle.verdict(NOT_AVAILABLE) if self._unavailable(cycle, node) else PASSES

    def allocation(self, cycle: CycleClaims, row: int, node: Node) -> NodeAllocation | None:
        """Return what would be allocated on a node that passes; None if nothing needs to be."""
        lacking = self._lacking(cycle, node) if cycle.special is not None else ()
        if lacking is None or not cycle.wants_allocation or _needs_nothing(cycle, lacking):
            return None
        chosen = self._solutions(cycle, lacking).chosen[row]
        variant = self._variant(cycle, lacking)
        return None if chosen is None else NodeAllocation(variant.claims, chosen, variant.requests)

    def unavailable(self, cycle: CycleClaims, node: Node, verdict: int) -> tuple[int, ...]:
        """Return the places of the claims that led to a verdict on a node because they can't be used there."""
        return self._unavailable(cycle, node) if cycle.text_of(verdict) == NOT_AVAILABLE else ()

    def preferences(self, cycle: CycleClaims, raw: Ints) -> None:
        """Write how far up in their lists the alternatives are that the nodes would give the claims."""
        raw[:] = 0
        if not cycle.wants_allocation or not prefers(cycle.claims):
            return
        known = cycle.preference_of_allocated()
        kinds, lacking = self._nodes_by_kind(cycle)
        for kind, names in enumerate(lacking):
            if not _needs_nothing(cycle, names):
                scores = self._solutions(cycle, names).preferences + known
                if kinds is None:
                    raw[:] = scores
                else:
                    raw[kinds == kind] = scores[kinds == kind]

    def _nodes_by_kind(self, cycle: CycleClaims) -> tuple[Index | None, list[tuple[str, ...]]]:
        """Return per row which of several sets of resources a node needs devices for; no rows if there is only one set.

        -1: a node lacks a resource, and it has no device class; see `_lacking`, which does the same for one node.
        """
        if cycle.special is None:
            return None, ALL_ALIKE
        nodes = self._cluster.nodes
        kinds: Index = np.zeros(nodes.capacity, dtype=np.intp)
        unfit = np.zeros(nodes.capacity, dtype=np.bool_)
        lacking: list[tuple[str, ...]] = [()]
        for name in cycle.resources:
            number = nodes.resources.find(name)
            without = np.ones(nodes.capacity, dtype=np.bool_) if number is None else nodes.allocatable[number] == 0
            if self._classes.get(name) is None:
                for row in np.flatnonzero(without[: nodes.count]).tolist():
                    node = nodes.nodes[row]
                    unfit[row] |= node is not None and name not in node.status.allocatable
                continue
            if without.all():
                lacking = [(*names, name) for names in lacking]
                continue
            found, kinds = np.unique(2 * kinds + without, return_inverse=True)
            lacking = [(*lacking[code // 2], name) if code % 2 else lacking[code // 2] for code in found.tolist()]
        kinds[unfit] = -1
        return kinds, lacking

    def _lacking(self, cycle: CycleClaims, node: Node) -> tuple[str, ...] | None:
        """Return the resources for which a node needs devices; None if it lacks a resource that has no device class, either."""
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
                    requests = node_requests(cycle.pod, lacking, self._classes.get)
                    claim = with_requests(claim, requests.requests)
                claims.append(claim)
            signature = self._allocator.signature(claims)
            known = cycle.variants[lacking] = Variant(tuple(claims), signature, requests)
        return known

    def _solutions(self, cycle: CycleClaims, lacking: tuple[str, ...]) -> NodeSolutions:
        variant = self._variant(cycle, lacking)
        return self._allocator.solutions(variant.claims, variant.signature)

    def _search_failure(self, cycle: CycleClaims, node: Node, lacking: tuple[str, ...]) -> int:
        """Return the verdict on a node where the search fails: it names the claim, which others with its solutions don't share."""
        try:
            self._allocator.search(node, self._variant(cycle, lacking).claims)
        except AllocationFailed as problem:
            return cycle.verdict(str(problem), fatal=True)
        except SearchTimedOut:
            text = f"node {node.metadata.name}: timed out trying to allocate devices"
            return cycle.verdict(text, fatal=True)
        raise InvariantError(f"the search on node {node.metadata.name} failed, and succeeds when it is made again")


def _is_stale(cycle: CycleClaims) -> bool:
    """Return whether the special claim is that of an earlier attempt."""
    return cycle.special is not None and bool(cycle.special.spec.devices.requests)


def _needs_nothing(cycle: CycleClaims, lacking: tuple[str, ...]) -> bool:
    """Return whether a node has all that a pod without other claims asks for."""
    return cycle.special is not None and not lacking and len(cycle.claims) == 1


STATE_MISSING = 0x2000 | ERROR_BIT


class ClaimsFit(FilterRule):
    """Whether the claims can be allocated or used on a node.

    All nodes are asked whenever anything about claims changed; that costs a search only on those that changed.
    """

    def __init__(self, nodes: NodeFilter, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._filter = nodes
        self._cluster = cluster

    def filter(self, row: int) -> int:
        """Ask about a node."""
        if self.params is None:
            return STATE_MISSING
        (cycle,) = self.params
        assert isinstance(cycle, CycleClaims)
        node = self._cluster.nodes.nodes[row]
        return 0 if node is None else self._filter.verdict(cycle, row, node)

    def filter_all(self, codes: Codes) -> None:
        """Ask about all nodes at once."""
        if self.params is None:
            np.asarray(codes)[:] = STATE_MISSING
            return
        (cycle,) = self.params
        assert isinstance(cycle, CycleClaims)
        self._filter.verdicts(cycle, np.asarray(codes))


class NoPreference(ScoreRule):
    """Scores 0 on every node."""

    def score(self, row: int) -> int:
        """Return 0."""
        return 0

    def score_all(self, raw: Ints) -> None:
        """Score every node 0."""
        np.asarray(raw)[:] = 0


class PreferredDevices(StretchedScoreRule):
    """The rank of the alternatives that a node would give the claims of a pod.

    Args:
        nodes: asks about nodes.
        find_cycle: returns the claims of the current cycle, or None.
        cluster: the state.
    """

    def __init__(self, nodes: NodeFilter, find_cycle: Callable[[], CycleClaims | None], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.asks_arrays = True
        self._filter = nodes
        self._find_cycle = find_cycle
        self._cycle: CycleClaims | None = None

    def refresh(self) -> bool:
        """Find the claims of the current cycle; return whether they changed."""
        known, self._cycle = self._cycle, self._find_cycle()
        return self._cycle is not known

    def score(self, row: int) -> int:
        """Score a node."""
        raw = np.zeros(self.columns.capacity, dtype=np.int64)
        self.score_all(raw)
        return raw.item(row)

    def score_all(self, raw: Ints) -> None:
        """Score all nodes."""
        if self._cycle is None:
            np.asarray(raw)[:] = 0
        else:
            self._filter.preferences(self._cycle, np.asarray(raw))

    def score_rows(self, rows: list[int], raw: Ints) -> None:
        """Score all nodes: that costs little more than scoring some."""
        self.score_all(raw)
