"""The rules of DynamicResources: whether a node can serve a pod's claims, and how much of what the pod prefers it would give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.rule import MAX_NODE_SCORE, FilterRule, Params, ScoreRule
from bayplan.framework.status import ERROR_BIT
from bayplan.plugins.dynamic_resources.cycle_claims import CycleClaims
from bayplan.plugins.dynamic_resources.node_filter import NodeFilter
from bayplan.state.arrays import Codes, Flags, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import Columns

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

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.normalizes = True

    def score(self, row: int) -> int:
        """Return 0."""
        return 0

    def score_all(self, raw: Ints) -> None:
        """Write 0."""
        np.asarray(raw)[:] = 0

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest score."""
        return (0,)

    def normalize(self, scale: Params, raw: int, row: int) -> int:
        """Return 100 for the largest score."""
        return raw

    def normalize_all(self, scale: Params, raw: Ints, normalized: Ints) -> None:
        """Normalise all scores."""
        np.asarray(normalized)[:] = 0


class PreferredDevices(ScoreRule):
    """The rank of the alternatives that a node would give the claims of a pod.

    Args:
        nodes: asks about nodes.
        find_cycle: the function that returns the claims of the current cycle, or None.
        cluster: the state.
    """

    def __init__(self, nodes: NodeFilter, find_cycle: Callable[[], CycleClaims | None], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.normalizes = True
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

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest score."""
        count = self.columns.count
        chosen = np.asarray(feasible)[:count].view(np.bool_)
        return (max(0, np.asarray(raw)[:count][chosen].max().item()),)

    def normalize(self, scale: Params, raw: int, row: int) -> int:
        """Return 100 for the largest score."""
        (largest,) = scale
        assert isinstance(largest, int)
        return go.quotient(go.mul(raw, MAX_NODE_SCORE), largest) if largest else raw

    def normalize_all(self, scale: Params, raw: Ints, normalized: Ints) -> None:
        """Normalise all scores."""
        (largest,) = scale
        assert isinstance(largest, int)
        scores = np.asarray(raw)
        np.asarray(normalized)[:] = scores * MAX_NODE_SCORE // largest if largest else scores
