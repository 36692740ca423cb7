"""InterPodAffinity: places pods near pods that they require or prefer, and away from pods that either side rejects.

Each distinct term is a counter of pods by row, summed by domain of its topology key; a rule only looks up a node's
domain. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

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
from bayplan.state.counters import Counter, DomainTable
from bayplan.state.pod_info import PodClass

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

AFFINITY = 1 | UNRESOLVABLE_BIT
ANTI_AFFINITY = 2
EXISTING_ANTI_AFFINITY = 4
STATE_MISSING = 8 | ERROR_BIT


class TermTables:
    """The domain tables that one spec reads. They are rebuilt when namespaces change.

    Attributes:
        namespace_version: the catalog's version of namespaces when the tables were built.
        owned_seen: the number of other pods' terms processed so far.
        owned: by kind, the terms of other pods that match the spec's pod.
        all_required: by topology key, the pods that match all required affinity terms.
        anti: for each required anti-affinity term, its topology key and the matching pods.
        preferred: weight, topology key and matching pods of each preferred term.
        existing_anti: topology key and owners of each required anti-affinity term in `owned`.
        weighted: weight, topology key and pods of all scored terms; None if it must be rebuilt.
        matches_itself: whether the pod itself satisfies its required affinity.
        version: changes when any of these lists changes.
    """

    def __init__(self) -> None:
        self.version = 0
        self.reset(-1)

    def reset(self, namespace_version: int) -> None:
        """Drop all tables."""
        self.namespace_version = namespace_version
        self.owned_seen = 0
        self.owned: dict[TermKind, list[tuple[AffinityTerm, DomainTable]]] = {}
        self.all_required: list[tuple[str, DomainTable]] = []
        self.anti: list[tuple[str, DomainTable]] = []
        self.preferred: list[tuple[int, str, DomainTable]] = []
        self.existing_anti: list[tuple[str, DomainTable]] = []
        self.weighted: list[tuple[int, str, DomainTable]] | None = None
        self.matches_itself = False
        self.version += 1


@dataclass(frozen=True)
class InterPodAffinitySpec:
    """The pod's own terms, and its namespace and labels, against which terms of other pods are matched.

    Attributes:
        key: namespace, labels and terms.
        namespace, labels: the namespace and labels of the pod.
        terms: the pod's own terms.
        tables: the counts for all terms; terms of other pods are added when they appear.
    """

    key: Hashable
    namespace: str
    labels: dict[str, str] = field(compare=False)
    terms: PodTerms
    tables: TermTables = field(compare=False)


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
        terms = pod_terms(pod)
        labels = pod.metadata.labels
        # Namespace and labels are part of the key, because terms of other pods are matched against them.
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
        if not required and not any(table.some() for _, table in tables.existing_anti):
            return SKIP
        return PROCEED

    def filter_rule(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the required terms."""
        return RequiredTerms(self, spec, cluster)

    # PreScore and Score.

    def pre_score(self, spec: InterPodAffinitySpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return SKIP if no pod matches a scored term: preferred terms, and other pods' terms that match this pod."""
        has_own = bool(spec.terms.preferred_affinity or spec.terms.preferred_anti_affinity)
        if self._ignores_existing and not has_own:
            return SKIP
        for _, _, table in self.weighted(spec, cluster):
            # A sum of 0 does not mean that nothing matches: weights can cancel each other out.
            if table.counter.total and table.some():
                return ()
        return SKIP

    def weighted(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> list[tuple[int, str, DomainTable]]:
        """Return weight, topology key and pods of each scored term."""
        tables = self.tables(spec, cluster)
        if tables.weighted is None:
            tables.weighted = [*tables.preferred, *self._owned_weights(tables)]
        return tables.weighted

    def _owned_weights(self, tables: TermTables) -> Iterable[tuple[int, str, DomainTable]]:
        if self._hard_weight > 0:
            for term, table in tables.owned.get(TermKind.REQUIRED_AFFINITY, ()):
                yield self._hard_weight, term.topology_key, table
        for term, table in tables.owned.get(TermKind.PREFERRED_AFFINITY, ()):
            yield term.weight, term.topology_key, table
        for term, table in tables.owned.get(TermKind.PREFERRED_ANTI_AFFINITY, ()):
            yield -term.weight, term.topology_key, table

    def score_rule(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that sums the weights of the scored terms."""
        return WeightedTerms(self, spec, cluster)

    # Tables.

    def tables(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> TermTables:
        """Return the tables of a spec, updated with the terms that were added since the last call."""
        tables = spec.tables
        version = cluster.catalog.version(Namespace)
        if tables.namespace_version != version:
            tables.reset(version)
            self._register_own(spec, tables, cluster)
        if tables.owned_seen != cluster.counters.owned_count():
            namespace = cluster.catalog.get(Namespace, spec.namespace)
            namespace_labels = namespace.metadata.labels if namespace is not None else {}
            terms = [term for term in cluster.counters.owned_keys() if isinstance(term, AffinityTerm)]
            for term in terms[tables.owned_seen :]:
                if term.matches(spec.namespace, spec.labels, namespace_labels):
                    table = cluster.domain_table(term.topology_key, cluster.counters.owned(term))
                    tables.owned.setdefault(term.kind, []).append((term, table))
                    if term.kind is TermKind.REQUIRED_ANTI_AFFINITY:
                        tables.existing_anti.append((term.topology_key, table))
            tables.owned_seen, tables.weighted = len(terms), None
            tables.version += 1
        return tables

    def _register_own(self, spec: InterPodAffinitySpec, tables: TermTables, cluster: ClusterState) -> None:
        terms = spec.terms
        required = [_resolved(term, cluster) for term in terms.required_affinity]
        if required:
            key = ("all", tuple(sorted((selection.key for selection in required), key=repr)))

            def matches_all(pod_class: PodClass) -> bool:
                return all(selection.matches(pod_class) for selection in required)

            counter = cluster.matching_counter(key, matches_all)
            keys = dict.fromkeys(term.topology_key for term in terms.required_affinity)
            tables.all_required = [(name, cluster.domain_table(name, counter)) for name in keys]
            own = PodClass(-1, spec.namespace, spec.labels, False)
            tables.matches_itself = matches_all(own)
        for term in terms.required_anti_affinity:
            tables.anti.append((term.topology_key, _table_of(term, cluster)))
        for term in (*terms.preferred_affinity, *terms.preferred_anti_affinity):
            weight = term.weight if term.kind is TermKind.PREFERRED_AFFINITY else -term.weight
            tables.preferred.append((weight, term.topology_key, _table_of(term, cluster)))

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register pods that are added, deleted or relabelled, and nodes that are added or relabelled."""
        pod_event = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
        node_event = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return ((pod_event, is_schedulable_after_pod_change), (node_event, is_schedulable_after_node_change))


class Selection(msgspec.Struct, frozen=True):
    """The pods that a term of the incoming pod selects.

    Attributes:
        key: equal for selections that match the same pods.
        term: the term.
        namespaces: the names of the namespaces to which the term applies.
        everywhere: whether the term applies to every namespace.
    """

    key: Hashable
    term: AffinityTerm
    namespaces: frozenset[str]
    everywhere: bool

    def matches(self, pod_class: PodClass) -> bool:
        """Return whether the term selects pods of a class."""
        if not self.everywhere and pod_class.namespace not in self.namespaces:
            return False
        return self.term.selector.matches(pod_class.labels)


def _resolved(term: AffinityTerm, cluster: ClusterState) -> Selection:
    """Return the pods that a term selects, given the current namespaces.

    The term's namespace selector is resolved to names. As upstream does by mistake, it is also matched against an empty
    label set: a selector that requires no labels (DoesNotExist, NotIn) selects pods of every namespace.
    """
    selector = term.namespace_selector
    everywhere = selector.matches({})
    names = term.namespaces
    if not selector.matches_nothing and not everywhere:
        found = [
            item.metadata.name for item in cluster.catalog.all(Namespace) if selector.matches(item.metadata.labels)
        ]
        names = names.union(found)
    key = (term.selector, everywhere or tuple(sorted(names)))
    return Selection(key, term, names, everywhere)


def _table_of(term: AffinityTerm, cluster: ClusterState) -> DomainTable:
    selection = _resolved(term, cluster)
    counter: Counter = cluster.matching_counter(("one", selection.key), selection.matches)
    return cluster.domain_table(term.topology_key, counter)


class RequiredTerms(FilterRule):
    """Checks the required terms in order: the pod's affinity, its anti-affinity, the anti-affinity of existing pods."""

    def __init__(self, plugin: InterPodAffinity, spec: InterPodAffinitySpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_others = True
        self._plugin, self._spec, self._cluster = plugin, spec, cluster
        self._version = -1
        self._affinity: list[DomainTable] = []
        self._anti: list[DomainTable] = []
        self._existing: list[DomainTable] = []
        self._tables: list[DomainTable] = []
        self._matches_itself = self._first_of_group = False
        # The sum of the tables' versions, which change when a domain of several nodes gets its first matching pod or
        # loses its last.
        self._tables_version = -1

    def refresh(self) -> bool:
        """Update the tables; return whether a domain of several nodes got its first matching pod or lost its last."""
        tables = self._plugin.tables(self._spec, self._cluster)
        moved = False
        if tables.version != self._version:
            self._version = tables.version
            self._affinity = [table for _, table in tables.all_required]
            self._anti = [table for _, table in tables.anti]
            self._existing = [table for _, table in tables.existing_anti]
            self._tables = [*self._affinity, *self._anti, *self._existing]
            self._matches_itself = tables.matches_itself
            moved = True
        tables_version, first = 0, self._matches_itself
        for number in range(len(self._tables)):
            table = self._tables[number]
            table.refresh()
            if not table.distinct:
                tables_version += table.positive_version
        for number in range(len(self._affinity)):
            table = self._affinity[number]
            first = first and table.positive == 0
        if tables_version != self._tables_version or first != self._first_of_group:
            moved = True
        self._tables_version, self._first_of_group = tables_version, first
        return moved

    def filter(self, row: int) -> int:
        """Return the verdict from the counts in the domains of the node."""
        if self.params is None:
            return STATE_MISSING
        for number in range(len(self._affinity)):
            table = self._affinity[number]
            code = table.codes[row]
            # The first pod of a group with affinity to itself may run on any node that has the topology keys.
            if code < 0 or (not self._first_of_group and table.values[code] <= 0):
                return AFFINITY
        for number in range(len(self._anti)):
            table = self._anti[number]
            code = table.codes[row]
            if code >= 0 and table.values[code] > 0:
                return ANTI_AFFINITY
        for number in range(len(self._existing)):
            table = self._existing[number]
            code = table.codes[row]
            if code >= 0 and table.values[code] > 0:
                return EXISTING_ANTI_AFFINITY
        return 0


class WeightedTerms(ScaledScoreRule):
    """Scores the sum of weights in the domains of a node; the smallest sum becomes 0, the largest 100."""

    def __init__(self, plugin: InterPodAffinity, spec: InterPodAffinitySpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.normalizes = True
        self._plugin, self._spec, self._cluster = plugin, spec, cluster
        self._seen: object = None
        self._tables: list[DomainTable] = []
        self._weights: list[int] = []
        self._tables_version = -1

    def refresh(self) -> bool:
        """Update the tables; return whether a domain of several nodes gained or lost matching pods."""
        weighted = self._plugin.weighted(self._spec, self._cluster)
        moved = False
        if weighted is not self._seen:
            self._seen = weighted
            self._tables = [table for _, _, table in weighted]
            self._weights = [weight for weight, _, _ in weighted]
            moved = True
        tables_version = 0
        for number in range(len(self._tables)):
            table = self._tables[number]
            table.refresh()
            if not table.distinct:
                tables_version += table.version
        if tables_version != self._tables_version:
            moved = True
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
    if any(other is not None and _has_no_match(other) for other in (before, after)):
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


def _has_no_match(pod: Pod) -> bool:
    """Return whether a pod is neither on a node nor nominated to one, so that it can't affect other pods."""
    return not pod.spec.node_name and not pod.status.nominated_node_name


def _all_match(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Return whether there are terms and all match a pod; compares namespaces only by name."""
    if not terms:
        return False
    return all(term.matches(pod.metadata.namespace, pod.metadata.labels, {}) for term in terms)
