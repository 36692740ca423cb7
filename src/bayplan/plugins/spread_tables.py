"""The counts of one pod's topology spread constraints. Not a plugin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayplan.plugins.spread_constraints import SpreadConstraint
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter, DomainTable, Eligibility
from bayplan.state.smallest_count import NO_NODE, SmallestCount


@dataclass
class ConstraintTable:
    """A constraint with its counts.

    Attributes:
        constraint: what is counted for. matches_itself: whether the pod will count, too.
        counter: pods per row. sums: per domain, over eligible nodes. smallest: where nodes are domains of their own.
        others: pods that upstream does not count at first, but counts when they come or go during a dry run: terminating ones,
            and all where the selector is empty.
    """

    constraint: SpreadConstraint
    matches_itself: bool
    counter: Counter
    sums: DomainTable
    others: DomainTable
    eligibility: Eligibility
    smallest: SmallestCount
    _node_position: int = -1
    _domains: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def domains(self, node_position: int, cluster: ClusterState) -> Bools:
        """Return which domains have an eligible node: bool[values of the key + 1]; `node_position` as for the mask."""
        if node_position != self._node_position:
            column = cluster.nodes.label_column(self.constraint.topology_key)
            codes = column.codes[: cluster.nodes.count][self.eligibility.mask(node_position)]
            self._domains = np.zeros(len(column.values) + 1, dtype=np.bool_)
            self._domains[codes] = True
            self._node_position = node_position
        return self._domains


class SpreadTables:
    """The tables of one spec; made anew when services or workloads changed that default constraints come from."""

    def __init__(self) -> None:
        self.version: tuple[int, ...] | None = None
        self.hard: list[ConstraintTable] = []
        self.soft: list[ConstraintTable] = []
        self.hard_error = ""
        self.soft_error = ""
        # Per soft constraint what a counted pod weighs, by the nodes and who of them is feasible.
        self.weights_key: tuple[int, bytes] = (-1, b"")
        self.weights: tuple[float, ...] = ()
        # Whether every node has all keys of soft constraints, as of a position of the log of nodes.
        self.complete_at = -1
        self.complete = False


def smallest_with(sums: Ints, exists: Bools, domain: Index, counts: Ints) -> Ints:
    """Return int64[rows], the smallest sum of the domains that exist, if in each row's own domain it were another one."""
    others = np.sort(sums[exists])
    if not len(others):
        return np.full(len(domain), NO_NODE, dtype=np.int64)
    second = others.item(1) if len(others) > 1 else NO_NODE
    beside = np.where(sums[domain] == others[0], second, others[0])
    return np.where(exists[domain], np.minimum(beside, counts), others[0])
