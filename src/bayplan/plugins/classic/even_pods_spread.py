"""EvenPodsSpread and EvenPodsSpreadPriority (a gate): topology spread constraints as they were when they were new.

The predicate counts pods of the pod's namespace, the priority pods of all namespaces; both count pods that are being deleted.
Constraints over one topology key share their counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, PreFilterPlugin, PreFilterResult, PreScorePlugin, Reads
from bayplan.framework.status import ERROR_BIT, Status
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector
from bayplan.plugins.classic.essential_predicates import NodeSelectorSpec, compile_node_selector_spec
from bayplan.plugins.classic.failure_reasons import TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH, verdict_of
from bayplan.plugins.classic.pod_changes import CountingPredicate, PodChanges, label_code
from bayplan.plugins.classic.priority import MAX_PRIORITY, FailingPriority, RowPriority
from bayplan.plugins.spread_constraints import HARD, SOFT
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matching import required_node_affinity_matches
from bayplan.state.pod_info import PodClass, PodInfo
from bayplan.state.views import Rows

NOT_SPREAD = verdict_of(1, TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH)
NO_METADATA = 2 | ERROR_BIT
NO_METADATA_TEXT = "metadata not pre-computed for EvenPodsSpreadPredicate"
NOWHERE = -1
"""The raw score of nodes that lack a topology key."""


class Constraint(msgspec.Struct, frozen=True):
    """One constraint: how far counts may differ, over which key, of which pods, and whether the pod itself is one."""

    max_skew: int
    topology_key: str
    selector: Selector
    matches_itself: bool


@dataclass(frozen=True, slots=True)
class EvenSpec:
    """The constraints of one kind.

    Attributes:
        namespace: of the pods that count; None for all.
        constraints: in the order of the pod. error: why one of them can't be read, or the empty text.
        node_selector: nodes that the pod could not go to don't count.
    """

    key: Hashable
    namespace: str | None = field(compare=False)
    constraints: tuple[Constraint, ...] = field(compare=False)
    error: str = field(compare=False)
    node_selector: NodeSelectorSpec = field(compare=False)

    @property
    def topology_keys(self) -> tuple[str, ...]:
        """Return the keys, each once."""
        return tuple(dict.fromkeys(item.topology_key for item in self.constraints))


def compile_constraints(pod: Pod, action: str, *, all_namespaces: bool) -> EvenSpec:
    """Compile the hard or the soft constraints of a pod."""
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
    """Return int64[rows in use]: the pods on each node that a constraint counts."""
    key = ("even", spec.namespace, repr(constraint.selector))
    counter = cluster.matching_counter(key, _Selects(spec.namespace, constraint.selector))
    return counter.values[: cluster.nodes.count]


def _has_all_keys(spec: EvenSpec, rows: Rows) -> Bools:
    found = rows.everywhere(True)
    for key in spec.topology_keys:
        found = found & (rows.label(key) >= 0)
    return found


def _eligible(spec: EvenSpec, cluster: ClusterState) -> Bools:
    """Return bool[rows in use]: the nodes whose pods count."""
    rows = Rows(cluster)
    alive: Bools = cluster.nodes.alive[: cluster.nodes.count]
    return alive & required_node_affinity_matches(spec.node_selector.required, rows) & _has_all_keys(spec, rows)


class EvenPodsSpread(PreFilterPlugin[EvenSpec], CountingPredicate[EvenSpec]):
    """Rejects nodes whose domain would have more than ``maxSkew`` pods above the emptiest one.

    Params: per topology key (key, int64 bytes of pods per domain, bool bytes of domains that exist); empty where no node counts.
    """

    name = "EvenPodsSpread"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def compile(self, pod: Pod, cluster: ClusterState) -> EvenSpec:
        """Compile the hard constraints."""
        return compile_constraints(pod, HARD, all_namespaces=False)

    def pre_filter_reads(self, spec: EvenSpec) -> Reads:
        """Look at nothing where there is no constraint."""
        return Reads.OBJECTS if spec.constraints else Reads.NOTHING

    def pre_filter(self, spec: EvenSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Sum up the pods per domain."""
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

    def filter(self, spec: EvenSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `NOT_SPREAD` where a constraint is broken or a key is missing."""
        verdicts: Codes = np.zeros(len(rows), dtype=np.uint16)
        if spec.error:
            verdicts[:] = NO_METADATA
            return verdicts
        domains = dict(_domains(params))
        if not domains:
            return verdicts
        broken = np.zeros(len(rows), dtype=np.bool_)
        for constraint in spec.constraints:
            sums, exists = domains[constraint.topology_key]
            codes = rows.label(constraint.topology_key)
            known = np.where((codes >= 0) & (codes < len(sums)), codes, 0)
            count = np.where((codes >= 0) & (codes < len(sums)), sums[known], 0)
            skew = count + int(constraint.matches_itself) - int(sums[exists].min())
            broken |= (codes < 0) | (skew > constraint.max_skew)
        verdicts[broken] = NOT_SPREAD
        return verdicts

    def filter_changed(
        self, spec: EvenSpec, params: Params | None, cluster: ClusterState, row: int, changes: PodChanges
    ) -> int:
        """Return the verdict on one row after changes."""
        if spec.error:
            return NO_METADATA
        domains = dict(_domains(params))
        if not domains:
            return 0
        codes = {key: label_code(cluster, key, row) for key in domains}
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
                # A domain that nobody counted before becomes one by the change.
                least.append(own)
            if own + int(constraint.matches_itself) - min(least) > constraint.max_skew:
                return NOT_SPREAD
        return 0

    def reasons(self, spec: EvenSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason, or the error."""
        return (NO_METADATA_TEXT,) if verdict == NO_METADATA else (TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH,)


def _domains(params: Params | None) -> Iterator[tuple[str, tuple[Ints, Bools]]]:
    for entry in params or ():
        assert isinstance(entry, tuple)
        key, sums, exists = entry
        yield key, (np.frombuffer(sums, dtype=np.int64), np.frombuffer(exists, dtype=np.bool_))


def _change(spec: EvenSpec, constraint: Constraint, changes: PodChanges) -> tuple[int, bool]:
    """Return by how much the count of a constraint has changed on the row, and whether any pod that counts was moved."""

    def number(infos: Sequence[PodInfo]) -> int:
        selects = _Selects(spec.namespace, constraint.selector)
        return sum(selects(info.pod_class) for info in infos)

    gone, back = number(list(changes.removed.values())), number(changes.added)
    return back - gone, bool(gone or back)


class EvenPodsSpreadPriority(PreScorePlugin[EvenSpec], RowPriority[EvenSpec], FailingPriority[EvenSpec]):
    """Prefers nodes in domains with few pods that the soft constraints count; without any all get 0."""

    name = "EvenPodsSpreadPriority"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def compile(self, pod: Pod, cluster: ClusterState) -> EvenSpec:
        """Compile the soft constraints."""
        return compile_constraints(pod, SOFT, all_namespaces=True)

    def map_error(self, spec: EvenSpec) -> str:
        """Return why no node can be scored, or the empty text."""
        return spec.error

    def pre_score_reads(self, spec: EvenSpec) -> Reads:
        """Look at nothing where there is no constraint."""
        return Reads.OBJECTS if spec.constraints else Reads.NOTHING

    def pre_score(self, spec: EvenSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Sum up the pods per domain, for domains with a feasible node."""
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

    def score(self, spec: EvenSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the sum of the counts of all constraints; `NOWHERE` where a key is missing."""
        total = np.zeros(len(rows), dtype=np.int64)
        if not spec.constraints:
            return total
        tables = {}
        for entry in params or ():
            assert isinstance(entry, tuple)
            tables[str(entry[0])] = np.frombuffer(entry[1], dtype=np.int64)
        for constraint in spec.constraints:
            total += tables[constraint.topology_key][rows.label(constraint.topology_key)]
        return np.where(_has_all_keys(spec, rows), total, NOWHERE)

    def scale(self, spec: EvenSpec, params: Params | None, raw: Ints) -> Params:
        """Return the sum of all counts and the smallest; empty where nothing is to be scaled."""
        counted = raw[raw != NOWHERE]
        if not spec.constraints or not len(counted):
            return ()
        return (int(counted.sum()), int(counted.min()))

    def normalize(self, spec: EvenSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 10 for the fewest; 10 for all where all pods are in one place or nowhere, 0 for nodes that lack a key."""
        if not scale:
            return raw * 0
        total, smallest = scale
        assert isinstance(total, int)
        assert isinstance(smallest, int)
        counted = raw != NOWHERE
        if total == smallest:
            return np.where(counted, MAX_PRIORITY, 0)
        share = float(MAX_PRIORITY) * ((total - raw).astype(np.float64) / float(total - smallest))
        return np.where(counted, share, 0.0).astype(np.int64)
