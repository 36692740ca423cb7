"""EvenPodsSpread and EvenPodsSpreadPriority (behind a gate): the first version of topology spread constraints.

The predicate counts pods of the pod's namespace, the priority pods of all namespaces; both also count pods that are
being deleted. Constraints with the same topology key share their counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from bayplan.classic.plugins.essential_predicates import NodeSelectorSpec, compile_node_selector_spec
from bayplan.classic.plugins.failure_reasons import TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH, verdict_of
from bayplan.classic.plugins.pod_changes import CountingRule, PodChanges
from bayplan.classic.plugins.priority import MAX_PRIORITY, FailingPriority, RowPriority
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import FilterPlugin, Params, PreFilterPlugin, PreFilterResult, PreScorePlugin, Reads
from bayplan.framework.rule import FilterRule, Scale, ScoreRule
from bayplan.framework.status import ERROR_BIT, Status
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector
from bayplan.plugins.spread_constraints import HARD, SOFT
from bayplan.state.arrays import Bools, Flags, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.label_column import LabelColumn
from bayplan.state.node_matcher import matching_rows
from bayplan.state.pod_info import PodClass, PodInfo
from bayplan.state.views import Rows

NOT_SPREAD = verdict_of(1, TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH)
_NOT_SPREAD = NOT_SPREAD
NO_METADATA = 2 | ERROR_BIT
NO_METADATA_TEXT = "metadata not pre-computed for EvenPodsSpreadPredicate"
NOWHERE = -1
"""The raw score of nodes that lack a topology key."""


class Constraint(msgspec.Struct, frozen=True):
    """One constraint: maximum skew, topology key, selector of the counted pods, and whether the pod itself matches."""

    max_skew: int
    topology_key: str
    selector: Selector
    matches_itself: bool


@dataclass(frozen=True, slots=True)
class EvenSpec:
    """The hard, or the soft constraints of a pod.

    Attributes:
        key: identifies all other attributes.
        namespace: the namespace of the pods to count; None for all.
        constraints: the constraints, in the order of the pod.
        error: the error of an invalid constraint, or "".
        node_selector: selects the nodes whose pods count.
    """

    key: Hashable
    namespace: str | None = field(compare=False)
    constraints: tuple[Constraint, ...] = field(compare=False)
    error: str = field(compare=False)
    node_selector: NodeSelectorSpec = field(compare=False)

    @property
    def topology_keys(self) -> tuple[str, ...]:
        """Return the distinct topology keys."""
        return tuple(dict.fromkeys(item.topology_key for item in self.constraints))


def compile_constraints(pod: Pod, action: str, *, all_namespaces: bool) -> EvenSpec:
    """Compile the constraints of a pod with an action, `HARD` or `SOFT`."""
    constraints, error = [], ""
    for item in pod.spec.topology_spread_constraints:
        if item.when_unsatisfiable != action:
            continue
        try:
            selector = compile_label_selector(item.label_selector)
        except SelectorError as problem:
            error = error or str(problem)
            continue
        matches_itself = selector.matches(pod.metadata.labels)
        constraints.append(Constraint(item.max_skew, item.topology_key, selector, matches_itself))
    namespace = None if all_namespaces else pod.metadata.namespace
    node_selector = compile_node_selector_spec(pod)
    key = (namespace, tuple(constraints), error, node_selector.key if constraints else None)
    return EvenSpec(key, namespace, tuple(constraints), error, node_selector)


class _Selects(msgspec.Struct, frozen=True):
    namespace: str | None
    selector: Selector

    def __call__(self, pod_class: PodClass) -> bool:
        return self.namespace in (None, pod_class.namespace) and self.selector.matches(pod_class.labels)


def _counts(spec: EvenSpec, constraint: Constraint, cluster: ClusterState) -> Ints:
    """Return the number of pods on each node that a constraint counts (int64[rows in use])."""
    key = ("even", spec.namespace, repr(constraint.selector))
    counter = cluster.matching_counter(key, _Selects(spec.namespace, constraint.selector))
    return counter.values[: cluster.nodes.count]


def _has_all_keys(spec: EvenSpec, rows: Rows) -> Bools:
    found = rows.everywhere(True)
    for key in spec.topology_keys:
        found = found & (rows.label(key) >= 0)
    return found


def _eligible(spec: EvenSpec, cluster: ClusterState) -> Bools:
    """Return the nodes whose pods count (bool[rows in use])."""
    rows = Rows(cluster)
    alive: Bools = cluster.nodes.alive[: cluster.nodes.count]
    return alive & matching_rows(spec.node_selector.required, rows) & _has_all_keys(spec, rows)


class EvenPodsSpread(PreFilterPlugin[EvenSpec], FilterPlugin[EvenSpec]):
    """Rejects nodes whose domain would exceed the emptiest domain by more than ``maxSkew`` pods.

    Params: per topology key (key, bytes of int64[domains]: the pods, bytes of bool[domains]: whether the domain
    exists); empty if no node counts.
    """

    name = "EvenPodsSpread"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def compile(self, pod: Pod, cluster: ClusterState) -> EvenSpec:
        """Compile the hard constraints."""
        return compile_constraints(pod, HARD, all_namespaces=False)

    def pre_filter_reads(self, spec: EvenSpec) -> Reads:
        """Return NOTHING for pods without constraints, else OBJECTS."""
        return Reads.OBJECTS if spec.constraints else Reads.NOTHING

    def pre_filter(self, spec: EvenSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return the number of pods per domain as params."""
        if not spec.constraints or spec.error:
            return PreFilterResult(())
        eligible = _eligible(spec, cluster)
        if not eligible.any():
            return PreFilterResult(())
        counts = {key: np.zeros(len(eligible), dtype=np.int64) for key in spec.topology_keys}
        for constraint in spec.constraints:
            counts[constraint.topology_key] += _counts(spec, constraint, cluster)
        found = []
        for key, per_row in counts.items():
            codes = cluster.nodes.label_column(key).codes[: len(eligible)][eligible]
            sums = np.bincount(codes, weights=per_row[eligible]).astype(np.int64)
            exists = np.bincount(codes) > 0
            found.append((key, sums.tobytes(), exists.tobytes()))
        return PreFilterResult(tuple(found))

    def filter_rule(self, spec: EvenSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the hard constraints."""
        return EvenDomains(spec, cluster)

    def reasons(self, spec: EvenSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason, or the error."""
        return (NO_METADATA_TEXT,) if verdict == NO_METADATA else (TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH,)


class ConstraintTest:
    """Tests whether nodes violate one constraint.

    Args:
        constraint: the constraint.
        sums: int64[domains], the number of pods.
        exists: bool[domains], whether the domain has a node that counts.
        column: the column of the topology key.
    """

    def __init__(self, constraint: Constraint, sums: Ints, exists: Bools, column: LabelColumn) -> None:
        self._codes: Any = column.codes
        self._sums: Any = sums.copy()
        # A node whose domain has more pods violates the constraint.
        self._most = constraint.max_skew + int(sums[exists].min()) - int(constraint.matches_itself)

    def broken(self, row: int) -> bool:
        """Return whether the node's domain has too many pods, or the node lacks the topology key."""
        code = self._codes[row]
        if code < 0:
            return True
        return (self._sums[code] if code < len(self._sums) else 0) > self._most


class EvenDomains(CountingRule):
    """Returns `NOT_SPREAD` for nodes that violate a constraint or lack a topology key."""

    def __init__(self, spec: EvenSpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_others = True
        self._spec, self._cluster = spec, cluster
        self._error = NO_METADATA if spec.error else 0
        self._seen: Params | None = None
        self._domains: dict[str, tuple[Ints, Bools]] = {}
        self._tests: list[ConstraintTest] = []

    def bind(self) -> None:
        """Drop references to the labels of nodes."""
        self._seen = None

    def refresh(self) -> bool:
        """Read the sums of PreFilter. If the params changed, every row is evaluated again in any case."""
        if self.params is not self._seen:
            self._seen = self.params
            self._domains = dict(_domains(self.params))
            tests = [] if not self._domains else self._spec.constraints
            self._tests = [
                ConstraintTest(
                    item, *self._domains[item.topology_key], self._cluster.nodes.label_column(item.topology_key)
                )
                for item in tests
            ]
        return False

    def filter(self, row: int) -> int:
        """Check each constraint for a node."""
        if self._error:
            return self._error
        for number in range(len(self._tests)):
            test = self._tests[number]
            if test.broken(row):
                return _NOT_SPREAD
        return 0

    def filter_changed(self, row: int, changes: PodChanges) -> int:
        """Return the verdict on a row whose pods a trial has moved."""
        spec, nodes, domains = self._spec, self._cluster.nodes, self._domains
        if self._error:
            return NO_METADATA
        if not domains:
            return 0
        codes = {key: int(nodes.label_column(key).codes[row]) for key in domains}
        moved = dict.fromkeys(domains, 0)
        touched = set[str]()
        if all(code >= 0 for code in codes.values()):
            for constraint in spec.constraints:
                change, any_moved = _change(spec, constraint, changes)
                moved[constraint.topology_key] += change
                if any_moved:
                    touched.add(constraint.topology_key)
        for constraint in spec.constraints:
            key = constraint.topology_key
            code, (sums, exists) = codes[key], domains[key]
            if code < 0:
                return NOT_SPREAD
            is_domain = code < len(sums) and bool(exists[code])
            own = (int(sums[code]) if code < len(sums) else 0) + moved[key]
            others = exists.copy()
            if is_domain:
                others[code] = False
            least = [int(sums[others].min())] if others.any() else []
            if is_domain or key in touched:
                # A domain that has no counted node exists once a pod is added to it.
                least.append(own)
            if own + int(constraint.matches_itself) - min(least) > constraint.max_skew:
                return NOT_SPREAD
        return 0


def _domains(params: Params | None) -> Iterator[tuple[str, tuple[Ints, Bools]]]:
    for entry in params or ():
        assert isinstance(entry, tuple)
        key, sums, exists = entry
        yield key, (np.frombuffer(sums, dtype=np.int64), np.frombuffer(exists, dtype=np.bool_))


def _change(spec: EvenSpec, constraint: Constraint, changes: PodChanges) -> tuple[int, bool]:
    """Return how a trial changes a constraint's count on the row, and whether it moved any pod that counts."""

    def number(infos: Sequence[PodInfo]) -> int:
        selects = _Selects(spec.namespace, constraint.selector)
        return sum(selects(info.pod_class) for info in infos)

    removed, added = number(list(changes.removed.values())), number(changes.added)
    return added - removed, bool(removed or added)


class EvenPodsSpreadPriority(PreScorePlugin[EvenSpec], RowPriority[EvenSpec], FailingPriority[EvenSpec]):
    """Prefers nodes in domains with few pods that the soft constraints count. Without constraints all nodes score 0."""

    name = "EvenPodsSpreadPriority"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def compile(self, pod: Pod, cluster: ClusterState) -> EvenSpec:
        """Compile the soft constraints."""
        return compile_constraints(pod, SOFT, all_namespaces=True)

    def map_error(self, spec: EvenSpec) -> str:
        """Return why no node can be scored, or ""."""
        return spec.error

    def pre_score_reads(self, spec: EvenSpec) -> Reads:
        """Return NOTHING for pods without constraints, else OBJECTS."""
        return Reads.OBJECTS if spec.constraints else Reads.NOTHING

    def pre_score(self, spec: EvenSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return the number of pods per domain as params, for domains with a feasible node."""
        if not spec.constraints:
            return ()
        eligible = _eligible(spec, cluster)
        scored = feasible & _has_all_keys(spec, Rows(cluster))
        found = []
        for key in spec.topology_keys:
            codes = cluster.nodes.label_column(key).codes[: len(eligible)]
            sums = np.zeros(len(cluster.nodes.label_column(key).values) + 1, dtype=np.int64)
            for constraint in spec.constraints:
                if constraint.topology_key == key:
                    np.add.at(sums, codes[eligible], _counts(spec, constraint, cluster)[eligible])
            open_to_all = np.zeros(len(sums), dtype=np.bool_)
            open_to_all[codes[scored]] = True
            found.append((key, np.where(open_to_all, sums, 0).tobytes()))
        return tuple(found)

    def score_rule(self, spec: EvenSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that sums the pods in a node's domains."""
        return PodsInDomains(spec, cluster)


class PodsInDomains(ScoreRule):
    """Scores the sum of the counts of all constraints; `NOWHERE` if the node lacks a topology key."""

    def __init__(self, spec: EvenSpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.normalizes = True
        self._spec, self._cluster = spec, cluster
        self._seen: Params | None = None
        self._count = len(spec.constraints)
        self._codes: list[Any] = []
        self._sums: list[Any] = []

    def bind(self) -> None:
        """Drop references to the labels of nodes."""
        self._seen = None

    def refresh(self) -> bool:
        """Read the sums of PreScore. If the params changed, every row is evaluated again in any case."""
        if self.params is not self._seen:
            self._seen = self.params
            tables = {}
            for entry in self.params or ():
                assert isinstance(entry, tuple)
                tables[str(entry[0])] = np.frombuffer(entry[1], dtype=np.int64)
            constraints = self._spec.constraints if tables else ()
            self._codes = [self._cluster.nodes.label_column(item.topology_key).codes for item in constraints]
            self._sums = [tables[item.topology_key] for item in constraints]
        return False

    def score(self, row: int) -> int:
        """Return the number of pods in the node's domains."""
        total = 0
        for number in range(len(self._codes)):
            code = self._codes[number][row]
            if code < 0:
                return NOWHERE
            total += int(self._sums[number][code])
        return total

    def score_all(self, raw: Ints) -> None:
        """Score all rows, constraint by constraint."""
        count = self.columns.count
        total = np.zeros(count, dtype=np.int64)
        has_keys = np.ones(count, dtype=np.bool_)
        for codes, sums in zip(self._codes, self._sums, strict=True):
            total += sums[codes[:count]]
            has_keys &= codes[:count] >= 0
        np.asarray(raw)[:count] = np.where(has_keys, total, NOWHERE)

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the sum of all counts, and the smallest; empty if there is nothing to normalise."""
        values = np.asarray(raw)[np.asarray(feasible) != 0]
        counted = values[values != NOWHERE]
        if not self._count or not len(counted):
            return ()
        return (int(counted.sum()), int(counted.min()))

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return 10 for the fewest pods, less for more, and 0 for nodes without a topology key.

        All nodes with the keys get 10 if one node has all pods, or there are none.
        """
        if not scale or raw == NOWHERE:
            return 0
        total, smallest = scale
        if total == smallest:
            return MAX_PRIORITY
        return int(float(MAX_PRIORITY) * (float(total - raw) / float(total - smallest)))

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalised scores of all rows."""
        count = self.columns.count
        values, scores = np.asarray(raw)[:count], np.asarray(normalized)
        if not scale:
            scores[:count] = 0
            return
        total, smallest = scale
        if total == smallest:
            scores[:count] = np.where(values != NOWHERE, MAX_PRIORITY, 0)
            return
        share = float(MAX_PRIORITY) * ((total - values).astype(np.float64) / float(total - smallest))
        scores[:count] = np.where(values != NOWHERE, share, 0.0).astype(np.int64)
