"""PodTopologySpread: spreads pods that belong together evenly over the values of node labels.

A cycle only reads the numbers of matching pods per domain, which counters keep up to date. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/, KEP-895, KEP-3022, KEP-3094,
KEP-3243.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct

from bayplan.base import go_arithmetic as go
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import (
    PROCEED,
    FilterPlugin,
    Handle,
    NormalizePlugin,
    Params,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
)
from bayplan.framework.rule import MAX_NODE_SCORE, FilterRule, Scale, ScoreRule
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status, error
from bayplan.objects.node import Taint
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import SelectorError, compile_required_node_affinity, find_untolerated_taint
from bayplan.plugins.spread_constraints import HARD, SOFT, SpreadConstraint, SpreadConstraints
from bayplan.plugins.spread_tables import ConstraintTable, SpreadGroups, SpreadTables
from bayplan.state.arrays import Bools, Codes, Flags, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Eligibility
from bayplan.state.node_matcher import matching_rows
from bayplan.state.pod_info import PodClass
from bayplan.state.views import Rows

REASON_CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

UNEVEN = 1
NO_LABEL = 2 | UNRESOLVABLE_BIT
STATE_MISSING = 4 | ERROR_BIT


class PodTopologySpreadSpec(Struct, frozen=True, eq=False):
    """The pod, and the counts for its constraints.

    Attributes:
        key: identifies the constraints, the eligible nodes, and whether the pod matches its own constraints.
        pod: the first pod with this key.
        from_catalog: whether the constraints depend on services and workloads.
        tables: the counts for the constraints.
    """

    key: Hashable
    pod: Pod
    from_catalog: bool
    tables: SpreadTables


class PodTopologySpread(
    PreFilterPlugin[PodTopologySpreadSpec],
    FilterPlugin[PodTopologySpreadSpec],
    PreScorePlugin[PodTopologySpreadSpec],
    NormalizePlugin[PodTopologySpreadSpec],
):
    """Filters nodes by hard topology spread constraints and scores them by soft ones."""

    name = "PodTopologySpread"
    texts = MappingProxyType(
        {
            UNEVEN: REASON_CONSTRAINTS,
            NO_LABEL: REASON_LABEL,
            STATE_MISSING: 'reading "PreFilterPodTopologySpread" from cycleState: not found',
        }
    )
    error_without_pre_score = 'error reading "PreScorePodTopologySpread" from cycleState: not found'
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.CATALOG
    reads_feasible = False
    compiles_requests = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._constraints = SpreadConstraints(arguments, handle.feature_gates, handle.cluster.catalog)
        self._comparison_operators = handle.feature_gates.enabled("TaintTolerationComparisonOperators")

    def compile(self, pod: Pod, cluster: ClusterState) -> PodTopologySpreadSpec:
        """Return the data on which the constraints depend; they are compiled on first use."""
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
        """Return CATALOG if the constraints depend on services and workloads, else NOTHING."""
        return Reads.CATALOG if spec.from_catalog else Reads.NOTHING

    def pre_score_reads(self, spec: PodTopologySpreadSpec) -> Reads:
        """Return the same as `pre_filter_reads`."""
        return self.pre_filter_reads(spec)

    # PreFilter and Filter.

    def pre_filter(
        self, spec: PodTopologySpreadSpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return SKIP if there are no hard constraints, an Error if a constraint is invalid."""
        tables = self.tables(spec, cluster)
        if tables.hard_error:
            return error(f"get constraints from pod: {tables.hard_error}")
        return PROCEED if tables.hard else SKIP

    def filter_rule(self, spec: PodTopologySpreadSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the hard constraints."""
        return HardSpread(partial(self.tables, spec, cluster), cluster)

    # PreScore and Score.

    def pre_score(self, spec: PodTopologySpreadSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return SKIP if there are no soft constraints, an Error if a constraint is invalid."""
        tables = self.tables(spec, cluster)
        if tables.soft_error:
            return error(f"calculating preScoreState: {tables.soft_error}")
        return () if tables.soft else SKIP

    def score_rule(self, spec: PodTopologySpreadSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores the soft constraints."""
        return SoftSpread(partial(self.tables, spec, cluster), cluster)

    # Tables.

    def tables(self, spec: PodTopologySpreadSpec, cluster: ClusterState) -> SpreadTables:
        """Return the tables of a spec, rebuilt if services or workloads on which they depend changed."""
        tables, pod = spec.tables, spec.pod
        version = self._constraints.version() if spec.from_catalog else ()
        if tables.version != version:
            tables.version = version
            # Nodes that lack the key of a soft constraint are scored only with the system's defaults.
            all_keys = bool(pod.spec.topology_spread_constraints) or not self._constraints.system_defaulted
            tables.hard, tables.hard_error = self._tables_of(pod, HARD, True, cluster)
            tables.soft, tables.soft_error = self._tables_of(pod, SOFT, all_keys, cluster)
            tables.groups = SpreadGroups(tables.soft, all_keys, cluster.node_log)
        return tables

    def _tables_of(
        self, pod: Pod, action: str, all_keys: bool, cluster: ClusterState
    ) -> tuple[list[ConstraintTable], str]:
        try:
            constraints = self._constraints.of(pod, action)
        except SelectorError as problem:
            return [], str(problem)
        keys = tuple(sorted({constraint.topology_key for constraint in constraints})) if all_keys else ()
        # Constraints with equal policies share the mask of nodes: a pod may have thousands of constraints with
        # different keys.
        shared: dict[Hashable, Eligibility] = {}
        return [self._table(pod, constraint, keys, cluster, shared) for constraint in constraints], ""

    def _table(
        self,
        pod: Pod,
        constraint: SpreadConstraint,
        keys: tuple[str, ...],
        cluster: ClusterState,
        shared: dict[Hashable, Eligibility],
    ) -> ConstraintTable:
        namespace, selector = pod.metadata.namespace, constraint.selector

        def is_counted(pod_class: PodClass, *, later: bool) -> bool:
            if pod_class.namespace != namespace or (pod_class.terminating or selector.matches_everything) != later:
                return False
            return selector.matches(pod_class.labels)

        counter = cluster.matching_counter(("spread", namespace, selector), partial(is_counted, later=False))
        later = cluster.matching_counter(("spread later", namespace, selector), partial(is_counted, later=True))
        eligibility = self._eligibility(pod, constraint, keys, cluster)
        eligibility = shared.setdefault(eligibility.key, eligibility)
        key = constraint.topology_key
        return ConstraintTable(
            constraint,
            selector.matches(pod.metadata.labels),
            cluster.domain_table(key, counter, eligibility),
            cluster.domain_table(key, later, eligibility),
        )

    def _eligibility(
        self, pod: Pod, constraint: SpreadConstraint, keys: tuple[str, ...], cluster: ClusterState
    ) -> Eligibility:
        """Return the nodes that count for a constraint: those with all topology keys, as restricted by its policies.

        The policies exclude nodes by the pod's node affinity and by taints that the pod does not tolerate.
        """
        required = compile_required_node_affinity(pod) if constraint.honors_affinity else None
        tolerations = pod.spec.tolerations if constraint.honors_taints else None

        def tolerated(taints: tuple[Taint, ...]) -> bool:
            operators = self._comparison_operators
            return find_untolerated_taint(taints, pod.spec.tolerations, comparison_operators=operators) is None

        def make() -> Bools:
            nodes, rows = cluster.nodes, Rows(cluster)
            mask = nodes.alive[: len(rows)].copy()
            for key in keys:
                mask &= rows.label(key) >= 0
            if required is not None:
                mask &= matching_rows(required, rows)
            if tolerations is not None:
                mask &= np.array(list(map(tolerated, nodes.taint_sets)), dtype=np.bool_)[rows.taints()]
            return mask

        return Eligibility((keys, required.key if required is not None else None, tolerations), make)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register added, deleted and changed pods and nodes: changes of labels, tolerations and taints."""
        pod_actions = (
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        )
        node_actions = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            (ClusterEvent(EventResource.POD, pod_actions), self._constraints.is_schedulable_after_pod_change),
            (ClusterEvent(EventResource.NODE, node_actions), self._constraints.is_schedulable_after_node_change),
        )


class HardSpread(FilterRule):
    """Returns `NO_LABEL` or `UNEVEN` for the first hard constraint that a node violates."""

    def __init__(self, spread_tables: Callable[[], SpreadTables], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_others = True
        self._spread_tables = spread_tables
        self._tables: list[ConstraintTable] = []

    def refresh(self) -> bool:
        """Update the counts; return whether verdicts may change on rows on which no pods were added or removed."""
        tables = self._spread_tables().hard
        moved = tables is not self._tables
        self._tables = tables
        for table in self._tables:
            before = table.smallest
            table.refresh()
            # If every node is a domain, a row changes only with its own pods, unless the smallest count changed.
            if table.sums.distinct:
                moved = moved or table.smallest != before
            elif table.mark_uneven():
                moved = True
        return moved

    def after_changes(self, params: Params | None) -> None:
        """Update the counts after pods were moved temporarily."""
        for table in self._tables:
            table.after_changes()

    def filter(self, row: int) -> int:
        """Return the verdict from the counts in the node's domains."""
        if self.params is None:
            return STATE_MISSING
        for table in self._tables:
            code = table.sums.codes[row]
            if code < 0:
                return NO_LABEL
            if table.is_uneven(code):
                return UNEVEN
        return 0

    def filter_all(self, codes: Codes) -> None:
        """Write the verdicts of all rows, constraint by constraint, so that each domain is evaluated once."""
        count = self.columns.count
        if self.params is None:
            for row in range(count):
                codes[row] = STATE_MISSING
            return
        for row in range(count):
            codes[row] = 0
        for table in self._tables:
            last, domains = table.sums.last, table.sums.codes
            # The last element is for nodes without the key.
            verdicts = np.full(last + 1, NO_LABEL, dtype=np.uint16)
            verdict = verdicts
            for code in range(last):
                verdict[code] = UNEVEN if table.is_uneven(code) else 0
            for row in range(count):
                if not codes[row]:
                    code = domains[row]
                    codes[row] = verdict[code if code >= 0 else last]


class SoftSpread(ScoreRule):
    """Scores the weighted counts in a node's domains, rounded half away from zero; the smallest becomes 100.

    The weight of a constraint depends on the number of domains among the feasible nodes. Nodes that are equal for the
    constraints are scored once, as a group.
    """

    def __init__(self, spread_tables: Callable[[], SpreadTables], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.normalizes = True
        self.reads_feasible = True
        self._spread_tables = spread_tables
        self._tables: list[ConstraintTable] = []
        self._groups: Any = None
        self._regrouped = -1
        # By group: the raw score, the normalised score, and whether it has feasible nodes.
        self._raw: Any = np.zeros(0, dtype=np.int64)
        self._normalized: Any = self._raw
        self._has_feasible: Any = np.zeros(0, dtype=np.uint8)
        # Scratch space by domain: whether it has a feasible node.
        self._seen: Any = np.zeros(0, dtype=np.uint8)
        # Whether some feasible nodes are not scored.
        self._some_not_scored = False
        # The weight of each constraint.
        self._weights: Any = np.zeros(0, dtype=np.float64)

    def prepare(self, feasible: Flags) -> None:
        """Compute the weights of the constraints, and the raw score of each group."""
        tables = self._spread_tables()
        if tables.soft is not self._tables:
            self._tables = tables.soft
            self._weights = np.zeros(len(self._tables), dtype=np.float64)
        for table in self._tables:
            table.sums.refresh()
        self._groups = tables.groups
        self._groups.refresh(self.columns.capacity, self.columns.count)
        self._regrouped = self._groups.regrouped
        size = self._find_feasible_groups(feasible)
        for number in range(len(self._tables)):
            table = self._tables[number]
            domains = size if self._groups.by_node[number] else self._count_domains(number, table)
            self._weights[number] = go.log(float(domains + 2))
        for group in range(self._groups.count):
            self._raw[group] = self._weigh(group)

    def _find_feasible_groups(self, feasible: Flags) -> int:
        """Record which groups have feasible nodes; return the number of feasible nodes that are scored."""
        groups = self._groups
        if len(self._raw) != len(groups.scored):
            self._raw = np.zeros(len(groups.scored), dtype=np.int64)
            self._normalized = np.zeros(len(groups.scored), dtype=np.int64)
            self._has_feasible = np.zeros(len(groups.scored), dtype=np.uint8)
        has_feasible, of_row, scored = self._has_feasible, groups.of_row, groups.scored
        for group in range(groups.count):
            has_feasible[group] = 0
        size, self._some_not_scored = 0, False
        for row in range(self.columns.count):
            if feasible[row]:
                group = of_row[row]
                has_feasible[group] = 1
                if scored[group]:
                    size += 1
                else:
                    self._some_not_scored = True
        return size

    def _count_domains(self, number: int, table: ConstraintTable) -> int:
        """Return the number of domains among the scored feasible nodes; nodes without the key count as one domain."""
        groups, width, last = self._groups, len(self._tables), table.sums.last
        if len(self._seen) <= last:
            self._seen = np.zeros(last + 1, dtype=np.uint8)
        flags, count = self._seen, 0
        for code in range(last + 1):
            flags[code] = 0
        for group in range(groups.count):
            if self._has_feasible[group] and groups.scored[group]:
                code = groups.parts[group * width + number]
                if code < 0:
                    code = last
                if not flags[code]:
                    flags[code] = 1
                    count += 1
        return count

    def _weigh(self, group: int) -> int:
        """Return the weighted sum of the counts in a group's domains, in Go's order; 0 if the group is not scored."""
        groups, width = self._groups, len(self._tables)
        if not groups.scored[group]:
            return 0
        total = 0.0
        for number in range(width):
            table = self._tables[number]
            part = groups.parts[group * width + number]
            if part < 0:
                continue
            weight, pods = self._weights[number], part
            if not groups.by_node[number]:
                pods = table.sums.values[part]
            elif self.columns.bare:
                # If an extender returned node objects instead of names, the pods on nodes are unknown.
                weight = 0.0
            total = total + (float(pods) * weight + float(table.max_skew - 1))
        return go.to_int64(go.round(total))

    def score(self, row: int) -> int:
        """Return the score of the node's group. Raises TypeError before `prepare`."""
        self._check_prepared()
        return self._raw[self._groups.of_row[row]]

    def score_all(self, raw: Ints) -> None:
        """Write the scores of all rows from those of their groups."""
        self._check_prepared()
        scores, of_row = self._raw, self._groups.of_row
        for row in range(self.columns.count):
            raw[row] = scores[of_row[row]]

    def _check_prepared(self) -> None:
        if self._groups is None or self._regrouped != self._groups.regrouped:
            raise TypeError("scores need prepare(): groups are unknown, or have changed since")

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the smallest and largest score of the scored feasible nodes, and which nodes are not scored, as bytes.

        The bytes, one bool per row, are empty if all feasible nodes are scored. `prepare` has computed the scores.
        """
        groups, smallest, largest, seen = self._groups, 0, 0, False
        for group in range(groups.count):
            if self._has_feasible[group] and groups.scored[group]:
                score = self._raw[group]
                smallest = score if not seen or score < smallest else smallest
                largest = score if not seen or score > largest else largest
                seen = True
        not_scored = b""
        if self._some_not_scored:
            not_scored = bytes([not groups.scored[groups.of_row[row]] for row in range(self.columns.count)])
        return (int(smallest), max(int(largest), 0), not_scored)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return 100 for the smallest score, less for larger ones, 0 for nodes that are not scored."""
        not_scored = scale[2]
        return 0 if not_scored and not_scored[row] else self._normalize_score(scale, raw)

    def _normalize_score(self, scale: Scale, raw: int) -> int:
        smallest, largest = scale[0], scale[1]
        if largest == 0:
            return MAX_NODE_SCORE
        return go.quotient(go.mul(MAX_NODE_SCORE, go.sub(go.add(largest, smallest), raw)), largest)

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalised scores of all rows from those of their groups; `raw` is the result of this rule's `score_all`.

        A rule that was never prepared has no groups: decisions rebuilt from records use one, which normalises each row.
        """
        if self._groups is None:
            ScoreRule.normalize_all(self, scale, raw, normalized)
            return
        scores, of_row = self._normalize_groups(scale), self._groups.of_row
        for row in range(self.columns.count):
            normalized[row] = scores[of_row[row]]

    def normalize_rows(self, scale: Scale, raw: Ints, rows: Index, count: int, normalized: Ints) -> None:
        """Write the normalised scores of some rows from those of their groups; `raw` is the result of `score_all`."""
        scores, of_row = self._normalize_groups(scale), self._groups.of_row
        for number in range(count):
            normalized[rows[number]] = scores[of_row[rows[number]]]

    def _normalize_groups(self, scale: Scale) -> Any:
        self._check_prepared()
        for group in range(self._groups.count):
            ignored = scale[2] and not self._groups.scored[group]
            self._normalized[group] = 0 if ignored else self._normalize_score(scale, self._raw[group])
        return self._normalized
