"""PodTopologySpread: pods that belong together are spread evenly over the values of node labels.

Matching pods are counted per row and summed up per domain by deltas; a cycle reads the sums.
Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/, KEP-895, KEP-3022, KEP-3094, KEP-3243.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bayplan.base.go_arithmetic import log
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ClusterEvent, QueueingHint
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    FilterPlugin,
    Handle,
    NormalizePlugin,
    Params,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
)
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status, error
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import SelectorError, compile_required_node_affinity, find_untolerated_taint
from bayplan.plugins.pod_topology_spread_hints import PodTopologySpreadHints
from bayplan.plugins.spread_constraints import HARD, HOSTNAME, SOFT, SpreadConstraint, SpreadConstraints
from bayplan.plugins.spread_tables import ConstraintTable, SpreadTables, smallest_with
from bayplan.state.arrays import Bools, Codes, Floats, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter, Eligibility
from bayplan.state.hypothetical import HypotheticalRows
from bayplan.state.node_matching import required_node_affinity_matches
from bayplan.state.pod_info import PodClass
from bayplan.state.row_classes import Column
from bayplan.state.smallest_count import NO_NODE, SmallestCount
from bayplan.state.views import Rows

REASON_CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

UNEVEN = 1
NO_LABEL = 2 | UNRESOLVABLE_BIT
STATE_MISSING = 4 | ERROR_BIT

REJECTING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class PodTopologySpreadSpec:
    """The pod, and what is counted for its constraints.

    Attributes:
        key: what constraints, eligibility and self-match follow from.
        pod: the first with this key.
        from_catalog: whether the constraints depend on services and workloads.
        tables: the counts.
    """

    key: Hashable
    pod: Pod
    from_catalog: bool
    tables: SpreadTables = field(compare=False)


class PodTopologySpread(
    PreFilterPlugin[PodTopologySpreadSpec],
    FilterPlugin[PodTopologySpreadSpec],
    PreScorePlugin[PodTopologySpreadSpec],
    NormalizePlugin[PodTopologySpreadSpec],
):
    """Filters by hard constraints and scores by soft ones."""

    name = "PodTopologySpread"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    skips_whatever_is_feasible = True
    compiles_requests = False
    scalar = True

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._constraints = SpreadConstraints(arguments, handle.feature_gates, handle.cluster.catalog)
        self._comparison_operators = handle.feature_gates.enabled("TaintTolerationComparisonOperators")
        self._hints = PodTopologySpreadHints(self._constraints)

    def compile(self, pod: Pod, cluster: ClusterState) -> PodTopologySpreadSpec:
        """Keep what the constraints follow from; they are compiled when first asked for."""
        metadata, spec = pod.metadata, pod.spec
        owner = metadata.controller()
        key = (
            metadata.namespace,
            tuple(sorted(metadata.labels.items())),
            None if owner is None else (owner.api_version, owner.kind, owner.name),
            repr(spec.topology_spread_constraints),
            compile_required_node_affinity(pod).key,
            spec.tolerations,
        )
        return PodTopologySpreadSpec(key, pod, self._constraints.needs_catalog(pod), SpreadTables())

    def pre_filter_reads(self, spec: PodTopologySpreadSpec) -> Reads:
        """Pods that have, and can get, no constraints depend on nothing."""
        return Reads.OBJECTS if spec.from_catalog or spec.pod.spec.topology_spread_constraints else Reads.NOTHING

    def pre_score_reads(self, spec: PodTopologySpreadSpec) -> Reads:
        """As for PreFilter."""
        return self.pre_filter_reads(spec)

    # PreFilter and Filter.

    def pre_filter(
        self, spec: PodTopologySpreadSpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Find the domains that are too full already; SKIP without hard constraints."""
        tables = self._tables(spec, cluster)
        if tables.hard_error:
            return error(f"get constraints from pod: {tables.hard_error}")
        if not tables.hard:
            return SKIP
        return PreFilterResult(self._too_full(tables, cluster))

    def params_after_changes(
        self, spec: PodTopologySpreadSpec, params: Params | None, cluster: ClusterState
    ) -> Params | None:
        """Count again."""
        return None if params is None else self._too_full(self._tables(spec, cluster), cluster, params)

    def _too_full(self, tables: SpreadTables, cluster: ClusterState, before: Params | None = None) -> Params:
        """Return per hard constraint its key, what tells where one more pod would make it uneven, and what was not counted.

        The second are bools by domain, as bytes; or, where nodes are domains of their own, the counter, how many pods a node may
        have already, and as bytes of bools which nodes count (empty: all). The third are sums of `ConstraintTable.others`, as
        bytes (empty: there were none). `before` is what this returned at PreFilter, where pods came or went since.
        """
        end = cluster.node_log.end
        found: list[Hashable] = []
        for number, entry in enumerate(tables.hard):
            constraint, itself = entry.constraint, int(entry.matches_itself)
            uncounted = entry.others.sums(end).tobytes() if entry.others.counter.total else b""
            if before is None and cluster.nodes.coverage(constraint.topology_key, end).distinct:
                smallest, nodes = entry.smallest.now(end)
                if nodes < constraint.min_domains:
                    smallest = 0
                most = constraint.max_skew + smallest - itself
                eligible = b"" if nodes == len(cluster.nodes) else entry.eligibility.flags(end)
                found.append((constraint.topology_key, (entry.counter, most, eligible), uncounted))
                continue
            exists, sums = entry.domains(end, cluster), entry.sums.sums(end)
            if before is not None:
                sums = sums + entry.others.sums(end)
                uncounted = _item(before[number])[2]
                if uncounted:
                    sums -= np.frombuffer(uncounted, dtype=np.int64)
            counts = sums[exists]
            smallest = counts.item(counts.argmin()) if len(counts) else NO_NODE
            if len(counts) < constraint.min_domains:
                smallest = 0
            # In domains that don't exist no pod counts.
            uneven = sums * exists > constraint.max_skew + smallest - itself
            found.append((constraint.topology_key, uneven.tobytes(), uncounted))
        return tuple(found)

    def filter(self, spec: PodTopologySpreadSpec, params: Params | None, rows: Rows) -> Codes:
        """Return the first constraint's objection: a missing label, or a domain that is too full."""
        if params is None:
            return rows.codes(rows.fill(STATE_MISSING))
        verdict = rows.fill(0)
        for item in reversed(params):
            key, full, _ = _item(item)
            if isinstance(full, bytes):
                domain = rows.label(key)
                verdict = rows.where(rows.looked_up(full, domain), UNEVEN, verdict)
                verdict = rows.where(domain < 0, NO_LABEL, verdict)
                continue
            counter, most, eligible = full
            uneven = rows.counts(counter) > most
            if eligible:
                # Nodes that don't count have no pods that do.
                uneven = uneven & rows.looked_up(eligible, rows.row_numbers())
            verdict = rows.where(uneven if most >= 0 else rows.everywhere(True), UNEVEN, verdict)
        return rows.codes(verdict)

    def filter_supposing(self, spec: PodTopologySpreadSpec, params: Params | None, rows: HypotheticalRows) -> Codes:
        """Return the verdicts of rows with the counts of their domains as they would be if pods on the row were as supposed."""
        if params is None:
            return rows.codes(rows.fill(STATE_MISSING))
        cluster = rows.state
        end = cluster.node_log.end
        verdict = rows.fill(0)
        for entry in reversed(self._tables(spec, cluster).hard):
            constraint, domain = entry.constraint, rows.label(entry.constraint.topology_key)
            exists, sums = entry.domains(end, cluster), entry.sums.sums(end)
            change = rows.count_change(entry.counter) + rows.count_change(entry.others.counter)
            counts = (sums * exists)[domain] + change * entry.eligibility.mask(end)[rows.row_numbers()]
            smallest = smallest_with(sums, exists, domain, counts)
            if np.count_nonzero(exists) < constraint.min_domains:
                smallest = rows.fill(0)
            uneven = counts + int(entry.matches_itself) - smallest > constraint.max_skew
            verdict = rows.where(domain < 0, NO_LABEL, rows.where(uneven, UNEVEN, verdict))
        return rows.codes(verdict)

    def filter_columns(
        self, spec: PodTopologySpreadSpec, params: Params, cluster: ClusterState
    ) -> Sequence[Column] | None:
        """Return the topology keys and the counters, unless single nodes tell all, or it takes more to tell who counts."""
        columns: dict[Column, None] = {}
        for item in params:
            key, full, _ = _item(item)
            if isinstance(full, bytes):
                columns[key] = None
            elif full[2]:
                return None
            else:
                columns[full[0]] = None
        return list(columns) if any(isinstance(column, str) for column in columns) else None

    def reasons(self, spec: PodTopologySpreadSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the text of an objection."""
        if verdict == STATE_MISSING:
            return ('reading "PreFilterPodTopologySpread" from cycleState: not found',)
        return (REASON_LABEL if verdict == NO_LABEL else REASON_CONSTRAINTS,)

    # PreScore and Score.

    def pre_score(self, spec: PodTopologySpreadSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Weigh the counts of soft constraints; SKIP without any.

        Returns:
            Per constraint its key and, as bytes of float64, what a domain adds to the score; of the hostname key instead the
            counter of pods per node, what each of them adds, and what every node gets beside.
        """
        tables = self._tables(spec, cluster)
        if tables.soft_error:
            return error(f"calculating preScoreState: {tables.soft_error}")
        if not tables.soft:
            return SKIP
        end = cluster.node_log.end
        found: list[Hashable] = []
        for entry, weight in zip(tables.soft, self._weights(spec, tables, cluster, feasible), strict=True):
            key, skew = entry.constraint.topology_key, float(entry.constraint.max_skew - 1)
            if key == HOSTNAME:
                found.append((key, entry.counter, weight, skew))
                continue
            # Go's order of operations: the count times the weight, plus the skew.
            sums: Any = entry.sums.sums(end)
            worth: Floats = sums * weight + skew
            # Nodes without the key, which come last, get nothing for it.
            worth[-1] = 0.0
            found.append((key, worth.tobytes()))
        return tuple(found)

    def params_on_bare_nodes(
        self, spec: PodTopologySpreadSpec, params: Params | None, cluster: ClusterState
    ) -> Params | None:
        """Return params with which pods per node count nothing; those in other domains were counted before.

        Asked after an extender has answered with nodes (`bayplan.engine.full_pass.score_over`); recorded cases
        ``extenders/bare/spread-*`` are about it.
        """
        if params is None:
            return None
        items = [item for item in params if isinstance(item, tuple)]
        return tuple((*item[:2], 0.0, item[3]) if item[0] == HOSTNAME else item for item in items)

    def _weights(
        self, spec: PodTopologySpreadSpec, tables: SpreadTables, cluster: ClusterState, feasible: Bools
    ) -> tuple[float, ...]:
        """Return per soft constraint the weight for its number of domains among feasible nodes; of the hostname key, of nodes."""
        key = (cluster.node_log.end, feasible.tobytes())
        if tables.weights_key == key:
            return tables.weights
        rows = Rows(cluster)
        counting = feasible & self._has_all_keys(spec, tables, rows)
        found = []
        for entry in tables.soft:
            name = entry.constraint.topology_key
            if name == HOSTNAME:
                found.append(int(np.count_nonzero(counting)))
                continue
            # Where nodes need not have the key, those without it are one domain more.
            present = np.zeros(len(cluster.nodes.label_column(name).values) + 1, dtype=np.bool_)
            present[rows.label(name)[counting]] = True
            found.append(int(np.count_nonzero(present)))
        tables.weights_key, tables.weights = key, tuple(log(float(size + 2)) for size in found)
        return tables.weights

    def _is_complete(self, tables: SpreadTables, cluster: ClusterState) -> bool:
        """Return whether every node has the keys of all soft constraints."""
        end = cluster.node_log.end
        if tables.complete_at != end:
            keys = [entry.constraint.topology_key for entry in tables.soft]
            tables.complete = all(cluster.nodes.coverage(key, end).complete for key in keys)
            tables.complete_at = end
        return tables.complete

    def _requires_all_keys(self, spec: PodTopologySpreadSpec) -> bool:
        return bool(spec.pod.spec.topology_spread_constraints) or not self._constraints.system_defaulted

    def _has_all_keys(self, spec: PodTopologySpreadSpec, tables: SpreadTables, rows: Rows) -> Bools:
        """Return which nodes are scored; of the others the score is 0."""
        scored = rows.everywhere(True)
        if self._requires_all_keys(spec):
            for entry in tables.soft:
                scored = scored & rows.has_label(entry.constraint.topology_key)
        return scored

    def score(self, spec: PodTopologySpreadSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the weighted counts in each node's domains, rounded half away from zero."""
        complete = self._is_complete(spec.tables, rows.state)
        total: Floats | None = None
        for item in params or ():
            assert isinstance(item, tuple)
            if item[0] == HOSTNAME:
                _, counter, weight, skew = item
                added = rows.counts(counter) * weight + skew
                if not complete:
                    added = rows.where_float(rows.has_label(HOSTNAME), added, 0.0)
            else:
                key, worth = item
                added = rows.looked_up_floats(worth, rows.label(key))
            total = added if total is None else total + added
        if total is None:
            return rows.fill(0)
        whole = rows.trunc(total)
        rounded: Ints = whole + (total - whole >= 0.5)
        return rounded if complete else rows.where(self._has_all_keys(spec, spec.tables, rows), rounded, 0)

    def score_reads(self, spec: PodTopologySpreadSpec) -> Reads:
        """Return that pods on nodes matter: they are counted where a constraint's domains are host names."""
        return Reads.NODES | Reads.USAGE

    def score_columns(
        self, spec: PodTopologySpreadSpec, params: Params, cluster: ClusterState
    ) -> Sequence[Column] | None:
        """Return the topology keys, for host names the counter; where a node lacks one of them, it takes more to tell."""
        if not self._is_complete(spec.tables, cluster):
            return None
        columns: list[Column] = []
        for item in params:
            assert isinstance(item, tuple)
            column = item[1] if item[0] == HOSTNAME else item[0]
            if column not in columns:
                columns.append(column)
        return columns

    def score_error(self, spec: PodTopologySpreadSpec, params: Params | None) -> str:
        """Refuse to score where PreScore is disabled, as upstream does."""
        return 'error reading "PreScorePodTopologySpread" from cycleState: not found' if params is None else ""

    def scale_over(
        self, spec: PodTopologySpreadSpec, params: Params | None, raw: Ints, feasible: Bools, rows: Rows
    ) -> Params:
        """Return the smallest and largest score of the feasible nodes that are scored, and as bytes of bools which are not.

        The last is empty where all feasible nodes are scored.
        """
        if self._is_complete(spec.tables, rows.state):
            scores = raw[feasible]
            return (scores.item(scores.argmin()), max(scores.item(scores.argmax()), 0), b"")
        scored = self._has_all_keys(spec, spec.tables, rows)
        scores = raw[feasible & scored]
        left_out = b"" if len(scores) == np.count_nonzero(feasible) else (~scored).tobytes()
        if not len(scores):
            return (0, 0, left_out)
        return (int(scores.min()), max(int(scores.max()), 0), left_out)

    def normalize(self, spec: PodTopologySpreadSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 100 for the smallest score, less for larger ones, 0 for nodes that are not scored."""
        smallest, largest, left_out = scale
        assert isinstance(smallest, int)
        assert isinstance(largest, int)
        assert isinstance(left_out, bytes)
        if largest == 0:
            stretched = raw * 0 + MAX_NODE_SCORE
        else:
            stretched = rows.quotient(MAX_NODE_SCORE * (largest + smallest - raw), largest)
        if left_out:
            stretched = rows.where(rows.looked_up(left_out, rows.row_numbers()), 0, stretched)
        return stretched

    # Tables.

    def _tables(self, spec: PodTopologySpreadSpec, cluster: ClusterState) -> SpreadTables:
        tables = spec.tables
        version = self._constraints.version() if spec.from_catalog else ()
        if tables.version != version:
            tables.version = version
            tables.hard, tables.hard_error = self._tables_of(spec.pod, HARD, cluster)
            tables.soft, tables.soft_error = self._tables_of(spec.pod, SOFT, cluster)
            tables.weights_key, tables.complete_at = (-1, b""), -1
        return tables

    def _tables_of(self, pod: Pod, action: str, cluster: ClusterState) -> tuple[list[ConstraintTable], str]:
        try:
            constraints = self._constraints.of(pod, action)
        except SelectorError as problem:
            return [], str(problem)
        all_keys = (
            action == HARD or bool(pod.spec.topology_spread_constraints) or not self._constraints.system_defaulted
        )
        keys = tuple(sorted({constraint.topology_key for constraint in constraints})) if all_keys else ()
        return [self._table(pod, constraint, keys, cluster) for constraint in constraints], ""

    def _table(
        self, pod: Pod, constraint: SpreadConstraint, keys: tuple[str, ...], cluster: ClusterState
    ) -> ConstraintTable:
        namespace, selector = pod.metadata.namespace, constraint.selector
        counts_nobody = selector.matches_everything

        def matches(pod_class: PodClass) -> bool:
            if pod_class.terminating or counts_nobody or pod_class.namespace != namespace:
                return False
            return selector.matches(pod_class.labels)

        def matches_later(pod_class: PodClass) -> bool:
            if pod_class.namespace != namespace or not (pod_class.terminating or counts_nobody):
                return False
            return selector.matches(pod_class.labels)

        counter = cluster.matching_counter(("spread", namespace, selector), matches)
        later = cluster.matching_counter(("spread later", namespace, selector), matches_later)
        eligibility = self._eligibility(pod, constraint, keys, cluster)
        key = constraint.topology_key
        return ConstraintTable(
            constraint,
            selector.matches(pod.metadata.labels),
            counter,
            cluster.domain_table(key, counter, eligibility),
            cluster.domain_table(key, later, eligibility),
            eligibility,
            SmallestCount(counter, eligibility),
        )

    def _eligibility(
        self, pod: Pod, constraint: SpreadConstraint, keys: tuple[str, ...], cluster: ClusterState
    ) -> Eligibility:
        """Return which nodes count for a constraint: those with all keys, that the pod could go to as far as policies say."""
        required = compile_required_node_affinity(pod) if constraint.honors_affinity else None
        tolerations = pod.spec.tolerations if constraint.honors_taints else None
        key = (keys, required.key if required is not None else None, tolerations)
        return Eligibility(key, self._mask_maker(cluster, keys, pod, constraint))

    def _mask_maker(
        self, cluster: ClusterState, keys: tuple[str, ...], pod: Pod, constraint: SpreadConstraint
    ) -> Callable[[], Bools]:
        required = compile_required_node_affinity(pod)

        def tolerated(number: int) -> bool:
            taint = find_untolerated_taint(
                cluster.nodes.taint_sets[number],
                pod.spec.tolerations,
                comparison_operators=self._comparison_operators,
                matters=lambda taint: taint.effect in REJECTING_EFFECTS,
            )
            return taint is None

        def make() -> Bools:
            rows = Rows(cluster)
            mask = cluster.nodes.alive[: len(rows)].copy()
            for key in keys:
                mask &= rows.label(key) >= 0
            if constraint.honors_affinity:
                mask &= required_node_affinity_matches(required, rows)
            if constraint.honors_taints:
                table = np.array([tolerated(number) for number in range(len(cluster.nodes.taint_sets))], dtype=np.bool_)
                mask &= table[rows.taints()]
            return mask

        return make

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register pods that come, go, change labels or tolerations, and nodes that come, go, change labels or taints."""
        return self._hints.events()


Item: TypeAlias = tuple[str, bytes | tuple[Counter, int, bytes], bytes]
"""What `_too_full` says of one constraint."""


def _item(item: Hashable) -> Item:
    assert isinstance(item, tuple)
    key, full, uncounted = item
    return key, full, uncounted
