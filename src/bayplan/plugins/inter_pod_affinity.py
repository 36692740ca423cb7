"""InterPodAffinity: places pods near pods that they require or prefer, and away from pods that either side rejects.

A rule reads one number per term: the matching pods in the node's domain, which counters keep up to date. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from bayplan.base import go_arithmetic as go
from bayplan.framework.configuration.plugin_arguments import InterPodAffinityArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint, hint
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
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status, unresolvable
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins import normalize_score
from bayplan.plugins.normalize_score import ScaledScoreRule
from bayplan.state.affinity_terms import AffinityTerm, PodTerms, TermKind, pod_terms
from bayplan.state.arrays import Bools, Flags, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import DomainTable, Matches
from bayplan.state.pod_info import PodClass

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

AFFINITY = 1 | UNRESOLVABLE_BIT
ANTI_AFFINITY = 2
EXISTING_ANTI_AFFINITY = 4
STATE_MISSING = 8 | ERROR_BIT


WeightedTables: TypeAlias = list[tuple[int, DomainTable]]
"""The weight of each scored term, and the pods that it counts."""


class TermTables:
    """The domain tables of one spec, rebuilt when namespaces change.

    Attributes:
        namespace_version: the catalog's version of namespaces at the last rebuild.
        owned_seen: the number of registered terms of other pods that have been compared with the spec's pod.
        affinity: for each topology key of the required affinity, the pods that match all required affinity terms.
        anti: for each required anti-affinity term, the pods that match it.
        existing_anti: for each required anti-affinity term that matches the spec's pod, the pods that own it.
        weighted: all scored terms; a new list when terms are added.
        matches_itself: whether the pod matches its own required affinity.
        version: changes when tables of required terms are added, or all tables are dropped.
    """

    def __init__(self) -> None:
        self.version = 0
        self.reset(-1)

    def reset(self, namespace_version: int) -> None:
        """Drop all tables."""
        self.namespace_version = namespace_version
        self.owned_seen = 0
        self.affinity: list[DomainTable] = []
        self.anti: list[DomainTable] = []
        self.existing_anti: list[DomainTable] = []
        self.weighted: WeightedTables = []
        self.matches_itself = False
        self.version += 1


class InterPodAffinitySpec(msgspec.Struct, frozen=True, eq=False):
    """The pod's terms, and its namespace and labels, against which terms of other pods are matched."""

    key: Hashable
    namespace: str
    labels: dict[str, str]
    terms: PodTerms
    tables: TermTables


class InterPodAffinity(
    PreFilterPlugin[InterPodAffinitySpec],
    FilterPlugin[InterPodAffinitySpec],
    PreScorePlugin[InterPodAffinitySpec],
    NormalizePlugin[InterPodAffinitySpec],
):
    """Filters and scores nodes by the pods that run in their topology domains."""

    name = "InterPodAffinity"
    texts = MappingProxyType(
        {
            AFFINITY: REASON_AFFINITY,
            ANTI_AFFINITY: REASON_ANTI_AFFINITY,
            EXISTING_ANTI_AFFINITY: REASON_EXISTING_ANTI_AFFINITY,
            STATE_MISSING: 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
        }
    )
    error_without_pre_score = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.COUNTERS | Reads.CATALOG
    reads_feasible = False
    compiles_requests = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = arguments if isinstance(arguments, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._hard_weight = given.hard_pod_affinity_weight
        self._ignores_existing = given.ignore_preferred_terms_of_existing_pods

    def compile(self, pod: Pod, cluster: ClusterState) -> InterPodAffinitySpec:
        """Compile the pod's terms."""
        terms, labels = pod_terms(pod), pod.metadata.labels
        key = (pod.metadata.namespace, tuple(sorted(labels.items())), terms)
        return InterPodAffinitySpec(key, pod.metadata.namespace, labels, terms, TermTables())

    # PreFilter and Filter.

    def pre_filter(
        self, spec: InterPodAffinitySpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return SKIP if no required term, of this pod or another, can reject a node."""
        if spec.terms.error:
            return unresolvable(f"parsing pod: {spec.terms.error}")
        tables = self.tables(spec, cluster)
        required = spec.terms.required_affinity or spec.terms.required_anti_affinity
        if not required and not any(table.some() for table in tables.existing_anti):
            return SKIP
        return PROCEED

    def filter_rule(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the required terms."""
        return RequiredTerms(partial(self.tables, spec, cluster), cluster)

    # PreScore and Score.

    def pre_score(self, spec: InterPodAffinitySpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return SKIP if no pod matches or owns a scored term."""
        if self._ignores_existing and not spec.terms.preferred_affinity and not spec.terms.preferred_anti_affinity:
            return SKIP
        for _, table in self.weighted(spec, cluster):
            # The sum of the weights is no criterion: weights can cancel each other out.
            if table.counter.total and table.some():
                return ()
        return SKIP

    def score_rule(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that sums the weights of the scored terms."""
        return WeightedTerms(partial(self.weighted, spec, cluster), cluster)

    def weighted(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> WeightedTables:
        """Return all scored terms: the pod's preferred terms, and other pods' terms that match the pod."""
        return self.tables(spec, cluster).weighted

    # Tables.

    def tables(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> TermTables:
        """Return a spec's tables, after adding the terms of other pods that are new since the last call."""
        tables = spec.tables
        version = cluster.catalog.version(Namespace)
        if tables.namespace_version != version:
            tables.reset(version)
            self._add_own_terms(spec, tables, cluster)
        if tables.owned_seen != cluster.counters.registered:
            self._add_owned_terms(spec, tables, cluster)
        return tables

    def _add_own_terms(self, spec: InterPodAffinitySpec, tables: TermTables, cluster: ClusterState) -> None:
        terms = spec.terms
        if terms.required_affinity:
            selections = [_selection(term, cluster) for term in terms.required_affinity]
            key = ("all", tuple(sorted((key for key, _ in selections), key=repr)))

            def matches_all(pod_class: PodClass) -> bool:
                return all(matches(pod_class) for _, matches in selections)

            counter = cluster.matching_counter(key, matches_all)
            keys = dict.fromkeys(term.topology_key for term in terms.required_affinity)
            tables.affinity = [cluster.domain_table(name, counter) for name in keys]
            tables.matches_itself = matches_all(PodClass(spec.namespace, spec.labels, False))
        tables.anti = [_table_of(term, cluster) for term in terms.required_anti_affinity]
        preferred = (*terms.preferred_affinity, *terms.preferred_anti_affinity)
        tables.weighted = [(self._weight_of(term), _table_of(term, cluster)) for term in preferred]

    def _add_owned_terms(self, spec: InterPodAffinitySpec, tables: TermTables, cluster: ClusterState) -> None:
        namespace = cluster.catalog.get(Namespace, spec.namespace)
        namespace_labels = namespace.metadata.labels if namespace is not None else {}
        weighted: WeightedTables = []
        for counter in cluster.counters.owned_since(tables.owned_seen):
            term = counter.term
            if isinstance(term, AffinityTerm) and term.matches(spec.namespace, spec.labels, namespace_labels):
                table = cluster.domain_table(term.topology_key, counter)
                if term.kind is TermKind.REQUIRED_ANTI_AFFINITY:
                    tables.existing_anti.append(table)
                    tables.version += 1
                elif term.kind is not TermKind.REQUIRED_AFFINITY or self._hard_weight > 0:
                    weighted.append((self._weight_of(term), table))
        tables.owned_seen = cluster.counters.registered
        if weighted:
            tables.weighted = [*tables.weighted, *weighted]

    def _weight_of(self, term: AffinityTerm) -> int:
        weight = self._hard_weight if term.kind is TermKind.REQUIRED_AFFINITY else term.weight
        return -weight if term.kind is TermKind.PREFERRED_ANTI_AFFINITY else weight

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register pods that are added, deleted or relabelled, and nodes that are added or relabelled."""
        pod_event = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
        node_event = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return ((pod_event, is_schedulable_after_pod_change), (node_event, is_schedulable_after_node_change))


def _selection(term: AffinityTerm, cluster: ClusterState) -> tuple[Hashable, Matches]:
    """Return which pods a term of the incoming pod selects, given the current namespaces, and a key for this selection.

    As upstream does by mistake, the namespace selector is also matched against an empty label set: a selector that
    requires no labels (DoesNotExist, NotIn) selects pods of every namespace.
    """
    selector, names = term.namespace_selector, term.namespaces
    everywhere = selector.matches({})
    if not selector.matches_nothing and not everywhere:
        found = [
            item.metadata.name for item in cluster.catalog.all(Namespace) if selector.matches(item.metadata.labels)
        ]
        names = names.union(found)

    def matches(pod_class: PodClass) -> bool:
        return (everywhere or pod_class.namespace in names) and term.selector.matches(pod_class.labels)

    return (term.selector, everywhere or tuple(sorted(names))), matches


def _table_of(term: AffinityTerm, cluster: ClusterState) -> DomainTable:
    key, matches = _selection(term, cluster)
    return cluster.domain_table(term.topology_key, cluster.matching_counter(("one", key), matches))


class RequiredTerms(FilterRule):
    """Checks the required terms in order: the pod's affinity, its anti-affinity, the anti-affinity of existing pods."""

    def __init__(self, term_tables: Callable[[], TermTables], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_others = True
        self._term_tables = term_tables
        self._version = self._tables_version = -1
        self._affinity: list[DomainTable] = []
        self._anti: list[DomainTable] = []
        self._existing: list[DomainTable] = []
        self._tables: list[DomainTable] = []
        self._matches_itself = self._first_of_group = False

    def refresh(self) -> bool:
        """Update the tables; return whether verdicts may change on rows on which no pods were added or removed."""
        tables = self._term_tables()
        moved = False
        if tables.version != self._version:
            self._version = tables.version
            self._affinity, self._anti, self._existing = tables.affinity, tables.anti, tables.existing_anti
            self._tables = [*self._affinity, *self._anti, *self._existing]
            self._matches_itself = tables.matches_itself
            moved = True
        tables_version, first = 0, self._matches_itself
        for table in self._tables:
            table.refresh()
            if not table.distinct:
                tables_version += table.positive_version
        for table in self._affinity:
            first = first and table.positive == 0
        if tables_version != self._tables_version or first != self._first_of_group:
            moved = True
        self._tables_version, self._first_of_group = tables_version, first
        return moved

    def filter(self, row: int) -> int:
        """Return the verdict from the counts in the domains of the node."""
        if self.params is None:
            return STATE_MISSING
        for table in self._affinity:
            code = table.codes[row]
            # The first pod of a group with affinity to itself may run on any node that has the topology keys.
            if code < 0 or (not self._first_of_group and table.values[code] <= 0):
                return AFFINITY
        for table in self._anti:
            code = table.codes[row]
            if code >= 0 and table.values[code] > 0:
                return ANTI_AFFINITY
        for table in self._existing:
            code = table.codes[row]
            if code >= 0 and table.values[code] > 0:
                return EXISTING_ANTI_AFFINITY
        return 0


class WeightedTerms(ScaledScoreRule):
    """Scores the sum of weights in the domains of a node; the smallest sum becomes 0, the largest 100."""

    def __init__(self, weighted: Callable[[], WeightedTables], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.normalizes = True
        self._weighted = weighted
        self._seen: object = None
        self._tables: list[DomainTable] = []
        self._weights: list[int] = []
        self._tables_version = -1

    def refresh(self) -> bool:
        """Update the tables; return whether the sum of a row may have changed although no pod was added or removed there."""
        weighted = self._weighted()
        moved = weighted is not self._seen
        if moved:
            self._seen = weighted
            self._weights = [weight for weight, _ in weighted]
            self._tables = [table for _, table in weighted]
        tables_version = 0
        for table in self._tables:
            table.refresh()
            if not table.distinct:
                tables_version += table.version
        moved = moved or tables_version != self._tables_version
        self._tables_version = tables_version
        return moved

    def score(self, row: int) -> int:
        """Sum the weights of the matching pods in the node's domains."""
        total = 0
        for number in range(len(self._tables)):
            table = self._tables[number]
            code = table.codes[row]
            if code >= 0:
                total = go.add(total, go.mul(self._weights[number], table.values[code]))
        return total

    def score_all(self, raw: Ints) -> None:
        """Sum the weights for all rows, term by term."""
        count = self.columns.count
        for row in range(count):
            raw[row] = 0
        for number in range(len(self._tables)):
            table = self._tables[number]
            if table.positive == 0:
                continue
            codes, values, weight = table.codes, table.values, self._weights[number]
            for row in range(count):
                code = codes[row]
                if code >= 0:
                    raw[row] = go.add(raw[row], go.mul(weight, values[code]))

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the smallest and the largest sum over the feasible rows."""
        return normalize_score.score_range(raw, feasible, self.columns.count)

    def level(self, scale: Scale) -> int:
        """Return 0 if all sums are equal, else -1."""
        return 0 if scale[0] == scale[1] else -1

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return 0 for the smallest and 100 for the largest sum, with Go's order of operations; 0 if all are equal."""
        smallest, largest = scale[0], scale[1]
        if largest == smallest:
            return 0
        share = go.divide(float(go.sub(raw, smallest)), float(go.sub(largest, smallest)))
        return go.to_int64(float(MAX_NODE_SCORE) * share)


# Queueing hints.


@hint(Pod)
def is_schedulable_after_pod_change(pod: Pod, before: Pod | None, after: Pod | None) -> HintAnswer | bool:
    """Queue the pod if a change adds a pod that its affinity requires, or removes one that anti-affinity rejects."""
    if before is not None and after is not None and pod.metadata.uid == after.metadata.uid:
        return True
    if _has_no_match(before) or _has_no_match(after):
        return False
    terms = pod_terms(pod)
    if terms.error:
        return HintAnswer.ERROR
    needs, avoids = terms.required_affinity, terms.required_anti_affinity
    if before is not None and after is not None:
        came = not _all_match(needs, before) and _all_match(needs, after)
        return came or (_all_match(avoids, before) and not _all_match(avoids, after))
    if after is not None:
        return _all_match(needs, after)
    if before is None:
        return HintAnswer.ERROR
    if _all_match(avoids, before):
        return True
    others = pod_terms(before)
    if others.error and not others.required_anti_affinity:
        return HintAnswer.ERROR
    return _all_match(others.required_anti_affinity, pod)


@hint(Node, new=True)
def is_schedulable_after_node_change(pod: Pod, before: Node | None, after: Node) -> HintAnswer | bool:
    """Queue the pod if a node joined a domain of its required terms, or left one of its anti-affinity terms."""
    terms = pod_terms(pod)
    if terms.error:
        return HintAnswer.ERROR
    for term in terms.required_affinity:
        value = after.metadata.labels.get(term.topology_key)
        known = before.metadata.labels.get(term.topology_key) if before is not None else None
        if value is not None and value != known:
            return True
    for term in terms.required_anti_affinity:
        if before is None:
            return True
        known = before.metadata.labels.get(term.topology_key)
        if known is not None and known != after.metadata.labels.get(term.topology_key):
            return True
    return False


def _has_no_match(pod: Pod | None) -> bool:
    """Return whether there is a pod that is neither on a node nor nominated to one, so that it can't affect others."""
    return pod is not None and not pod.spec.node_name and not pod.status.nominated_node_name


def _all_match(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Return whether there are terms and all match a pod; compares namespaces only by name."""
    if not terms:
        return False
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    # A list, because generators take longer in compiled code, and pods have few terms.
    return not [term for term in terms if not term.matches(namespace, labels, {})]
