"""Filter and Score: whether a pod's claims can be allocated on each node, and which devices would be allocated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import ERROR_BIT
from bayplan.objects.node import Node
from bayplan.plugins.dynamic_resources.allocator import ChosenClaim, SearchTimedOut
from bayplan.plugins.dynamic_resources.cycle_claims import CycleClaims, NodeVerdicts, Variant
from bayplan.plugins.dynamic_resources.extended_resources import NodeRequests, node_requests, with_requests
from bayplan.plugins.dynamic_resources.node_allocator import (
    FAILED,
    INVALID,
    UNSOLVED,
    NodeAllocator,
    NodeSolutions,
    has_alternatives,
)
from bayplan.plugins.dynamic_resources.pools import AllocationFailed
from bayplan.plugins.normalize_score import StretchedScoreRule
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.device_classes import DeviceClassResolver

NOT_AVAILABLE = "resourceclaim not available on the node"
CANNOT_ALLOCATE = "cannot allocate all claims"
STALE_SPECIAL_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
INVALID_POOLS = "invalid resource pools were encountered"
PASSES = 0

TEXTS = {UNSOLVED: CANNOT_ALLOCATE, INVALID: INVALID_POOLS}
"""The texts of outcomes whose text is the same for all claims of a kind."""


class NodeFilter:
    """Evaluates the claims of a pod on nodes.

    Args:
        cluster: the state with the nodes.
        allocator: chooses devices; it must be up to date.
        classes: the device class of each extended resource.

    Attributes:
        evaluations: the number of times that the verdicts on all nodes were computed. Rules read verdicts row by row,
            so they are cached in `CycleClaims`.
    """

    def __init__(self, cluster: ClusterState, allocator: NodeAllocator, classes: DeviceClassResolver) -> None:
        self.evaluations = 0
        self._cluster = cluster
        self._allocator = allocator
        self._classes = classes

    def verdicts(self, cycle: CycleClaims) -> NodeVerdicts:
        """Return the verdicts on all nodes: the same object until a node or its devices change."""
        version = (self._cluster.node_log.end, self._allocator.log.end, self._allocator.epoch)
        known = cycle.verdicts
        if known is None or known.version != version:
            self.evaluations += 1
            kinds, lacking = self._nodes_by_kind(cycle)
            codes: Codes = np.zeros(len(kinds), dtype=np.uint16)
            if cycle.special is not None and cycle.special.spec.devices.requests:
                # The special claim was created by an earlier attempt.
                codes[:] = cycle.verdict(STALE_SPECIAL_CLAIM)
            else:
                if (kinds < 0).any():
                    codes[kinds < 0] = cycle.verdict(CANNOT_FIT)
                for kind, names in enumerate(lacking):
                    if not _needs_nothing(cycle, names):
                        self._judge(cycle, names, kinds == kind, codes)
            known = cycle.verdicts = NodeVerdicts(version, codes, kinds, lacking)
        return known

    def _judge(self, cycle: CycleClaims, lacking: tuple[str, ...], kind: Bools, codes: Codes) -> None:
        """Write the verdicts on the nodes of one kind; `kind` (bool[capacity]) selects them."""
        nodes = self._cluster.nodes.nodes
        if cycle.wants_allocation:
            outcomes = self._solutions(cycle, lacking).outcomes
            for outcome, text in TEXTS.items():
                alike = kind & (outcomes == outcome)
                if alike.any():
                    codes[alike] = cycle.verdict(text)
            for row in np.flatnonzero(kind & (outcomes == FAILED)).tolist():
                node = nodes[row] if row < len(nodes) else None
                codes[row] = PASSES if node is None else self._search_failure(cycle, node, lacking)
        if cycle.unready or any(selector is not None for selector in cycle.available_on):
            for row in np.flatnonzero(kind & (codes == PASSES)).tolist():
                node = nodes[row] if row < len(nodes) else None
                if node is not None and self._unavailable(cycle, node):
                    codes[row] = cycle.verdict(NOT_AVAILABLE)

    def allocation(self, cycle: CycleClaims, row: int) -> tuple[Variant, tuple[ChosenClaim, ...]] | None:
        """Return the claims to allocate on a node that passes, with the devices for each. None: there are none."""
        found = self.verdicts(cycle)
        kind = int(found.kinds[row])
        if kind < 0 or not cycle.wants_allocation or _needs_nothing(cycle, found.lacking[kind]):
            return None
        chosen = self._solutions(cycle, found.lacking[kind]).chosen[row]
        return None if chosen is None else (self._variant(cycle, found.lacking[kind]), chosen)

    def unavailable(self, cycle: CycleClaims, node: Node, verdict: int) -> tuple[int, ...]:
        """Return the indexes of the claims that led to a node's verdict because the node can't use them."""
        return self._unavailable(cycle, node) if cycle.text_of(verdict) == NOT_AVAILABLE else ()

    def preferences(self, cycle: CycleClaims, raw: Ints) -> None:
        """Write a score for each node, by the rank of the alternatives that would be allocated there."""
        raw[:] = 0
        if not cycle.wants_allocation or not has_alternatives(cycle.claims):
            return
        known = cycle.preference_of_allocated()
        found = self.verdicts(cycle)
        for kind, names in enumerate(found.lacking):
            if not _needs_nothing(cycle, names):
                here = found.kinds == kind
                raw[here] = self._solutions(cycle, names).preferences[here] + known

    def _nodes_by_kind(self, cycle: CycleClaims) -> tuple[Index, list[tuple[str, ...]]]:
        """Return the kind of each node, and for each kind the resources that its nodes provide as devices.

        The kinds are intp[capacity]; -1: the node lacks a resource for which there is no device class.

        The kind is -1 if the node lacks a resource for which there is no device class.
        """
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

    def _unavailable(self, cycle: CycleClaims, node: Node) -> tuple[int, ...]:
        """Return the indexes of allocated claims that a node can't use, or whose devices don't become ready."""
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
        """Search again on a node where the search failed, and return the verdict, whose text names the claim.

        Stored solutions contain no names, because claims with other names share them.
        """
        try:
            self._allocator.search(node, self._variant(cycle, lacking).claims)
        except AllocationFailed as problem:
            return cycle.verdict(str(problem), fatal=True)
        except SearchTimedOut:
            text = f"node {node.metadata.name}: timed out trying to allocate devices"
            return cycle.verdict(text, fatal=True)
        raise InvariantError(f"the search on node {node.metadata.name} failed, but succeeds when repeated")


def _needs_nothing(cycle: CycleClaims, lacking: tuple[str, ...]) -> bool:
    """Return whether the pod has only the special claim, and the node has all requested extended resources itself."""
    return cycle.special is not None and not lacking and len(cycle.claims) == 1


STATE_MISSING = 0x2000 | ERROR_BIT


class ClaimsFit(FilterRule):
    """Rejects nodes on which the claims can't be allocated or used.

    All rows are evaluated again after any change of claims, but devices are searched again only on nodes that changed.
    """

    def __init__(self, nodes: NodeFilter, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._filter = nodes

    def filter(self, row: int) -> int:
        """Return the cached verdict on a node."""
        codes = self._codes()
        return STATE_MISSING if codes is None else codes.item(row)

    def filter_all(self, codes: Codes) -> None:
        """Write the cached verdicts on all nodes."""
        found = self._codes()
        np.asarray(codes)[:] = STATE_MISSING if found is None else found

    def _codes(self) -> Codes | None:
        if self.params is None:
            return None
        (cycle,) = self.params
        assert isinstance(cycle, CycleClaims)
        return self._filter.verdicts(cycle).codes


class NoPreference(ScoreRule):
    """Scores 0 on every node."""

    def score(self, row: int) -> int:
        """Return 0."""
        return 0

    def score_all(self, raw: Ints) -> None:
        """Score every node 0."""
        np.asarray(raw)[:] = 0


class PreferredDevices(StretchedScoreRule):
    """Scores nodes by the rank of the alternatives that would be allocated for a pod's claims.

    Args:
        nodes: evaluates the claims on nodes.
        find_cycle: returns the claims of the current cycle, or None.
        cluster: the state.
    """

    def __init__(self, nodes: NodeFilter, find_cycle: Callable[[], CycleClaims | None], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.evaluates_arrays = True
        self._filter = nodes
        self._find_cycle = find_cycle
        self._cycle: CycleClaims | None = None

    def refresh(self) -> bool:
        """Look up the claims of the current cycle; return whether they changed."""
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
        """Score all nodes, which costs little more than scoring these rows."""
        self.score_all(raw)
