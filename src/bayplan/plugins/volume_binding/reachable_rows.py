"""Reachability: the rows selected by node affinity of volumes, and by topologies of classes and capacities.

Rows of equal conditions are computed once, and cached until a node changes. A volume of one node costs one row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import LabelSelector
from bayplan.objects.selectors import (
    Requirement,
    Selector,
    SelectorError,
    check_requirement,
    compile_label_selector,
    compile_node_selector,
)
from bayplan.objects.storage import TopologySelectorTerm
from bayplan.state.arrays import Bools, Index
from bayplan.state.cluster_state import ClusterState

MAX_AFFINITIES = 1 << 15
"""Limits the affinities cached by address; at the limit the cache is emptied."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A condition on the labels of nodes.

    Attributes:
        key: compares by meaning; None for every node.
        terms: the requirements of each term.
    """

    key: Hashable
    terms: tuple[tuple[Requirement, ...], ...] = field(compare=False)


EVERY_NODE = Reach(None, ())


class ReachableRows:
    """Rows by condition, for one state."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._position = -1
        self._rows: dict[Hashable, Index] = {}
        # By address; the entry holds the affinity, so that its address is not reused.
        self._by_affinity: dict[int, tuple[NodeSelector, Reach]] = {}

    def reach_of(self, affinity: NodeSelector | None) -> Reach:
        """Return what a volume's node affinity means; only labels count, and terms with mistakes match nothing."""
        if affinity is None:
            return EVERY_NODE
        known = self._by_affinity.get(id(affinity))
        if known is not None:
            return known[1]
        terms = [term for term in compile_node_selector(affinity).terms if not term.errors]
        reach = Reach(
            ("affinity", tuple([term.labels.key if term.labels is not None else () for term in terms])),
            tuple([term.labels.requirements if term.labels is not None else () for term in terms]),
        )
        if len(self._by_affinity) >= MAX_AFFINITIES:
            self._by_affinity.clear()
        self._by_affinity[id(affinity)] = affinity, reach
        return reach

    def rows_of(self, reach: Reach) -> Index:
        """Return intp, the rows from which something can be reached."""
        return self._kept(reach.key, reach.terms)

    def by_affinity(self, affinity: NodeSelector | None) -> Index:
        """Return intp, the rows that a volume's node affinity allows."""
        return self.rows_of(self.reach_of(affinity))

    def by_topologies(self, terms: tuple[TopologySelectorTerm, ...]) -> Index:
        """Return intp, the rows that match one of a class's allowed topologies; all where it has none."""
        if not terms:
            return self._kept(None, ())
        compiled = []
        for term in terms:
            expressions = term.match_label_expressions
            if expressions and not any(check_requirement(item.key, "In", item.values) for item in expressions):
                compiled.append(Selector(Requirement(item.key, "In", item.values) for item in expressions))
        key = ("topologies", tuple(selector.key for selector in compiled))
        return self._kept(key, [selector.requirements for selector in compiled])

    def by_labels(self, selector: LabelSelector | None) -> Index:
        """Return intp, the rows whose labels match; none where there is no selector, or one with a mistake."""
        try:
            compiled = compile_label_selector(selector)
        except SelectorError:
            return np.zeros(0, dtype=np.intp)
        if compiled.matches_nothing:
            return np.zeros(0, dtype=np.intp)
        return self._kept(("labels", compiled.key), [compiled.requirements])

    def _kept(self, key: Hashable, terms: Iterable[Iterable[Requirement]]) -> Index:
        position = self._cluster.node_log.end
        if position != self._position:
            self._position = position
            self._rows = {}
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = self._find(None if key is None else terms)
        return rows

    def _find(self, terms: Iterable[Iterable[Requirement]] | None) -> Index:
        nodes = self._cluster.nodes
        alive = nodes.alive[: nodes.count]
        if terms is None:
            return np.flatnonzero(alive)
        matched = np.zeros(nodes.count, dtype=np.bool_)
        for requirements in terms:
            hit = alive.copy()
            for requirement in requirements:
                hit &= self._matches(requirement)
            matched |= hit
        return np.flatnonzero(matched)

    def _matches(self, requirement: Requirement) -> Bools:
        column = self._cluster.nodes.label_column(requirement.key)
        codes = column.codes[: self._cluster.nodes.count]
        if requirement.operator != "In":
            return column.table(requirement)[codes]
        # A table of all values would cost more than it saves where every volume has a value of its own.
        wanted = [column.index[value] for value in requirement.values if value in column.index]
        if len(wanted) == 1:
            equal: Bools = codes == wanted[0]
            return equal
        return np.isin(codes, np.array(wanted, dtype=np.intp))
