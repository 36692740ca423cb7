"""InterPodAffinity: pods go where pods that they like are, and stay away from those that they, or that dislike them, don't.

Nothing is searched: each distinct term is a counter of pods per row, summed up per domain of its topology key; a cycle reads the
sums. Where no two nodes share a domain, as with host names, it reads each node's own count. Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from bayplan.framework.configuration.plugin_arguments import InterPodAffinityArgs
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
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status, unresolvable
from bayplan.objects.namespace import Namespace
from bayplan.objects.pod import Pod
from bayplan.plugins import inter_pod_affinity_hints
from bayplan.state.affinity_terms import AffinityTerm, PodTerms, TermKind, pod_terms
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter, DomainTable
from bayplan.state.hypothetical import HypotheticalRows
from bayplan.state.pod_info import PodClass
from bayplan.state.row_classes import Column
from bayplan.state.views import Rows

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

AFFINITY = 1 | UNRESOLVABLE_BIT
ANTI_AFFINITY = 2
EXISTING_ANTI_AFFINITY = 4
STATE_MISSING = 8 | ERROR_BIT

Tables = tuple[tuple[str, bytes | Counter], ...]
"""Per topology key one element a domain, and one for nodes without the key, which comes last; or whose count each node has."""

Sums = tuple[tuple[tuple[str, bytes], ...], tuple[tuple[int, Counter], ...]]
"""Weighted sums: per topology key int64 for each domain as before; and counters of nodes that are domains of their own."""


class TermTables:
    """The domain tables that one spec reads; made when first needed, made anew when namespaces changed.

    Attributes:
        namespace_version: of the catalog, when they were made. owned_seen: how many terms of pods had been looked at.
        owned: per kind the terms of pods that match the spec's pod. all_required: pods that match all required terms, per key.
        anti: pods that each required anti-affinity term matches. preferred: weight, key and pods of each preferred term.
        required_of_others: key and owners of each required anti-affinity term in `owned`.
        weighed: weight, key and pods of all that is scored; None where that must be put together anew.
        matches_itself: whether the pod's required affinity would be content with the pod itself.
    """

    def __init__(self) -> None:
        self.reset(-1)

    def reset(self, namespace_version: int) -> None:
        """Forget all tables."""
        self.namespace_version = namespace_version
        self.owned_seen = 0
        self.owned: dict[TermKind, list[tuple[AffinityTerm, DomainTable]]] = {}
        self.all_required: list[tuple[str, DomainTable]] = []
        self.anti: list[tuple[str, DomainTable]] = []
        self.preferred: list[tuple[int, str, DomainTable]] = []
        self.required_of_others: list[tuple[str, DomainTable]] = []
        self.weighed: list[tuple[int, str, DomainTable]] | None = None
        self.matches_itself = False


@dataclass(frozen=True)
class InterPodAffinitySpec:
    """The pod's own terms, and what terms of others are asked about.

    Attributes:
        key: everything below.
        namespace, labels: of the pod.
        terms: the pod's own.
        tables: what is counted for them; filled as terms of other pods come.
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
    """Filters and scores by the pods that are in a node's domains."""

    name = "InterPodAffinity"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    skips_whatever_is_feasible = True
    compiles_requests = False
    scalar = True

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = arguments if isinstance(arguments, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._hard_weight = given.hard_pod_affinity_weight
        self._ignores_existing = given.ignore_preferred_terms_of_existing_pods

    def compile(self, pod: Pod, cluster: ClusterState) -> InterPodAffinitySpec:
        """Compile the pod's terms."""
        terms = pod_terms(pod)
        labels = pod.metadata.labels
        # The two kinds of reader differ in what else they depend on: terms of others are asked about namespace and labels.
        key = (pod.metadata.namespace, tuple(sorted(labels.items())), terms)
        return InterPodAffinitySpec(key, pod.metadata.namespace, labels, terms, TermTables())

    # PreFilter and Filter.

    def pre_filter(
        self, spec: InterPodAffinitySpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Read the sums of all terms that matter; SKIP where no node can fail for them."""
        if spec.terms.error:
            return unresolvable(f"parsing pod: {spec.terms.error}")
        tables = self._tables(spec, cluster)
        required = spec.terms.required_affinity or spec.terms.required_anti_affinity
        if not required and not any(_some(table, cluster) for _, table in tables.required_of_others):
            return SKIP
        return PreFilterResult(self._filter_params(spec, tables, cluster))

    def params_after_changes(
        self, spec: InterPodAffinitySpec, params: Params | None, cluster: ClusterState
    ) -> Params | None:
        """Read the sums again."""
        if params is None:
            return None
        return self._filter_params(spec, self._tables(spec, cluster), cluster)

    def _filter_params(self, spec: InterPodAffinitySpec, tables: TermTables, cluster: ClusterState) -> Params:
        affinity = _positive(tables.all_required, cluster)
        # The first pod of a group that wants its own kind may go anywhere that has the keys.
        first_of_group = tables.matches_itself and not any(_some(table, cluster) for _, table in tables.all_required)
        anti = _positive(tables.anti, cluster)
        existing = _positive(tables.required_of_others, cluster)
        return (affinity, first_of_group, anti, existing)

    def filter(self, spec: InterPodAffinitySpec, params: Params | None, rows: Rows) -> Codes:
        """Return the first of three rules that a node breaks: the pod's affinity, its anti-affinity, that of others."""
        if params is None:
            return rows.codes(rows.fill(STATE_MISSING))
        affinity, first_of_group, anti, existing = params
        wrong = rows.everywhere(False)
        for key, table in _tables_of(affinity):
            wrong = wrong | (rows.label(key) < 0 if first_of_group else _has_none(key, table, rows))
        disliked = rows.everywhere(False)
        for key, table in _tables_of(anti):
            disliked = disliked | _has_some(key, table, rows)
        dislikes = rows.everywhere(False)
        for key, table in _tables_of(existing):
            dislikes = dislikes | _has_some(key, table, rows)
        verdict = rows.where(dislikes, EXISTING_ANTI_AFFINITY, 0)
        verdict = rows.where(disliked, ANTI_AFFINITY, verdict)
        return rows.codes(rows.where(wrong, AFFINITY, verdict))

    def filter_supposing(self, spec: InterPodAffinitySpec, params: Params | None, rows: HypotheticalRows) -> Codes:
        """Return the verdicts of rows with the counts of their domains as they would be if pods on the row were as supposed."""
        if params is None:
            return rows.codes(rows.fill(STATE_MISSING))
        cluster = rows.state
        tables, end = self._tables(spec, cluster), cluster.node_log.end
        lacks_pods = lacks_key = rows.everywhere(False)
        alone = rows.everywhere(tables.matches_itself)
        for key, table in tables.all_required:
            has_key, change = rows.has_label(key), rows.count_change(table.counter)
            sums = table.sums(end)
            alone = alone & (int(sums.sum()) + has_key * change == 0)
            lacks_key = lacks_key | (rows.label(key) < 0)
            lacks_pods = lacks_pods | (has_key * (sums[rows.label(key)] + change) <= 0)
        wrong = np.where(alone, lacks_key, lacks_pods)
        disliked, dislikes = (_has_some_supposing(each, rows) for each in (tables.anti, tables.required_of_others))
        verdict = rows.where(dislikes, EXISTING_ANTI_AFFINITY, 0)
        verdict = rows.where(disliked, ANTI_AFFINITY, verdict)
        return rows.codes(rows.where(wrong, AFFINITY, verdict))

    def filter_columns(
        self, spec: InterPodAffinitySpec, params: Params, cluster: ClusterState
    ) -> Sequence[Column] | None:
        """Return the topology keys; None where single nodes are asked what they count."""
        affinity, _, anti, existing = params
        tables = (*_tables_of(affinity), *_tables_of(anti), *_tables_of(existing))
        if any(not isinstance(table, bytes) for _, table in tables):
            return None
        return list(dict.fromkeys(key for key, _ in tables))

    def reasons(self, spec: InterPodAffinitySpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reason of a rule."""
        if verdict == STATE_MISSING:
            return ('error reading "PreFilterInterPodAffinity" from cycleState: not found',)
        if verdict == AFFINITY:
            return (REASON_AFFINITY,)
        return (REASON_ANTI_AFFINITY if verdict == ANTI_AFFINITY else REASON_EXISTING_ANTI_AFFINITY,)

    # PreScore and Score.

    def pre_score(self, spec: InterPodAffinitySpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Weigh the sums of all preferred terms (and required ones of others) per key; SKIP where nothing matches."""
        has_own = bool(spec.terms.preferred_affinity or spec.terms.preferred_anti_affinity)
        if self._ignores_existing and not has_own:
            return SKIP
        tables = self._tables(spec, cluster)
        if not tables.preferred and not tables.owned:
            return SKIP
        if tables.weighed is None:
            tables.weighed = [*tables.preferred, *self._owned_weights(tables)]
        end = cluster.node_log.end
        weighted: dict[str, Ints] = {}
        own: list[tuple[int, Counter]] = []
        for weight, key, table in tables.weighed:
            # Whether anything matched is one question, what the weights add up to another: they can cancel.
            if not table.counter.total:
                continue
            if cluster.nodes.coverage(key, end).distinct:
                own.append((weight, table.counter))
                continue
            sums = table.sums(end)
            if np.count_nonzero(sums):
                known = weighted.get(key)
                sums = sums if weight == 1 else weight * sums
                weighted[key] = sums if known is None else known + sums
        if not weighted and not own:
            return SKIP
        return (tuple((key, sums.tobytes()) for key, sums in weighted.items()), tuple(own))

    def _owned_weights(self, tables: TermTables) -> Iterable[tuple[int, str, DomainTable]]:
        if self._hard_weight > 0:
            for term, table in tables.owned.get(TermKind.REQUIRED_AFFINITY, ()):
                yield self._hard_weight, term.topology_key, table
        for term, table in tables.owned.get(TermKind.PREFERRED_AFFINITY, ()):
            yield term.weight, term.topology_key, table
        for term, table in tables.owned.get(TermKind.PREFERRED_ANTI_AFFINITY, ()):
            yield -term.weight, term.topology_key, table

    def score(self, spec: InterPodAffinitySpec, params: Params | None, rows: Rows) -> Ints:
        """Return the sum of weights in the domains of each node."""
        total: Ints | None = None
        sums, own = _sums_of(params)
        for key, table in sums:
            found = rows.looked_up_ints(table, rows.label(key))
            total = found if total is None else total + found
        for weight, counter in own:
            found = weight * rows.counts(counter)
            total = found if total is None else total + found
        return rows.fill(0) if total is None else total

    def score_columns(
        self, spec: InterPodAffinitySpec, params: Params, cluster: ClusterState
    ) -> Sequence[Column] | None:
        """Return the topology keys and the counters."""
        sums, own = _sums_of(params)
        return list(dict.fromkeys((*(key for key, _ in sums), *(counter for _, counter in own))))

    def score_error(self, spec: InterPodAffinitySpec, params: Params | None) -> str:
        """Refuse to score where PreScore is disabled, as upstream does."""
        return 'failed to read "PreScoreInterPodAffinity" from cycleState: not found' if params is None else ""

    def scale(self, spec: InterPodAffinitySpec, params: Params | None, raw: Ints) -> Params:
        """Return the smallest and the largest sum."""
        return (raw.item(raw.argmin()), raw.item(raw.argmax()))

    def normalize(self, spec: InterPodAffinitySpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 0 for the smallest and 100 for the largest, in Go's order of operations; 0 for all where they are equal."""
        smallest, largest = _pair(scale)
        if largest == smallest:
            return raw * 0
        return rows.trunc(float(MAX_NODE_SCORE) * ((raw - smallest) / float(largest - smallest)))

    # Tables.

    def _tables(self, spec: InterPodAffinitySpec, cluster: ClusterState) -> TermTables:
        """Return the tables of a spec, with those of terms that came since it was last asked."""
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
                        tables.required_of_others.append((term.topology_key, table))
            tables.owned_seen, tables.weighed = len(terms), None
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
        """Register pods that come, go or change labels, and nodes that come or change labels."""
        return inter_pod_affinity_hints.events()


class Selection(msgspec.Struct, frozen=True):
    """Which pods a term of the incoming pod selects.

    Attributes:
        key: says all that `matches` depends on.
        everywhere: whether the term reaches every namespace.
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
    """Return what a term selects now.

    Its selector of namespaces is resolved to names; and, as upstream does by oversight, it is also held against no labels at all:
    a selector that matches those (DoesNotExist, NotIn) reaches the pods of every namespace.
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


def _some(table: DomainTable, cluster: ClusterState) -> bool:
    """Return whether a counted pod is on a node with the topology key."""
    end = cluster.node_log.end
    if cluster.nodes.coverage(table.key, end).complete:
        return table.counter.total > 0
    return bool(table.sums(end).any())


def _positive(sums: Sequence[tuple[str, DomainTable]], cluster: ClusterState) -> Tables:
    """Return per key which domains have a positive sum, as bytes of bools, of several sums of a key any; or the counters."""
    if not sums:
        return ()
    end = cluster.node_log.end
    found: dict[str, bytes] = {}
    own: dict[tuple[str, Counter], None] = {}
    for key, table in sums:
        if cluster.nodes.coverage(key, end).distinct:
            own[(key, table.counter)] = None
            continue
        flags, known = table.positive(end), found.get(key)
        if known is not None and known is not flags:
            flags = (np.frombuffer(known, dtype=np.bool_) | np.frombuffer(flags, dtype=np.bool_)).tobytes()
        found[key] = flags
    return (*found.items(), *own)


def _has_some(key: str, table: bytes | Counter, rows: Rows) -> Bools:
    return rows.looked_up(table, rows.label(key)) if isinstance(table, bytes) else rows.counts(table) > 0


def _has_some_supposing(sums: Sequence[tuple[str, DomainTable]], rows: HypotheticalRows) -> Bools:
    """Return in which rows' domains some of the counted pods would be."""
    found, end = rows.everywhere(False), rows.state.node_log.end
    for key, table in sums:
        counts = table.sums(end)[rows.label(key)] + rows.count_change(table.counter)
        found = found | (rows.has_label(key) & (counts > 0))
    return found


def _has_none(key: str, table: bytes | Counter, rows: Rows) -> Bools:
    lacking: Bools = (rows.looked_up(table, rows.label(key)) if isinstance(table, bytes) else rows.counts(table)) == 0
    return lacking


def _tables_of(params: Hashable) -> Tables:
    assert isinstance(params, tuple)
    return params


def _sums_of(params: Params | None) -> Sums:
    if not params:
        return (), ()
    sums, own = params
    assert isinstance(sums, tuple)
    assert isinstance(own, tuple)
    return sums, own


def _pair(scale: Params) -> tuple[int, int]:
    smallest, largest = scale
    assert isinstance(smallest, int)
    assert isinstance(largest, int)
    return smallest, largest
