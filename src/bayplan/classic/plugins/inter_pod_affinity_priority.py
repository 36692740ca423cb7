"""InterPodAffinityPriority: prefers nodes near pods that the pod prefers or that prefer it, and avoids the opposite."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bayplan.base import go_arithmetic as go
from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.inter_pod_terms import TermsSpec, compile_terms, table_of
from bayplan.classic.plugins.priority import MAX_PRIORITY, RowPriority
from bayplan.framework.plugin import Handle, Reads
from bayplan.framework.rule import Params, Scale, ScoreRule
from bayplan.objects.pod import Pod
from bayplan.plugins.inter_pod_affinity import WeightedTables, WeightedTerms
from bayplan.state.affinity_terms import TermKind
from bayplan.state.arrays import Flags, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import DomainTable

_MOST = float(MAX_PRIORITY)


class InterPodAffinityPriority(RowPriority[TermsSpec]):
    """Sums weights per domain, and maps the range of the sums, extended to include 0, to scores from 0 to 10.

    Required affinity of running pods counts with hardPodAffinitySymmetricWeight.
    """

    name = "InterPodAffinityPriority"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._hard_weight = classic_arguments(arguments).hard_pod_affinity_symmetric_weight

    def compile(self, pod: Pod, cluster: ClusterState) -> TermsSpec:
        """Compile the terms."""
        return compile_terms(pod)

    def score_rule(self, spec: TermsSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that sums the weights of the scored terms."""
        return StretchedTerms(partial(self.weighted, spec, cluster), cluster)

    def weighted(self, spec: TermsSpec, cluster: ClusterState) -> WeightedTables:
        """Return the scored terms: the same list until new terms are registered."""
        owned = spec.owned
        owned.refresh(spec.namespace, spec.labels, cluster)
        if owned.weighted is None:
            owned.weighted = [*self._weighted(spec, cluster)]
        return owned.weighted

    def _weighted(self, spec: TermsSpec, cluster: ClusterState) -> Iterator[tuple[int, DomainTable]]:
        for term in spec.terms.preferred_affinity:
            yield term.weight, table_of(term, cluster)
        for term in spec.terms.preferred_anti_affinity:
            yield -term.weight, table_of(term, cluster)
        owned = spec.owned.by_kind
        for _, table in owned.get(TermKind.REQUIRED_AFFINITY, ()):
            yield self._hard_weight, table
        for term, table in owned.get(TermKind.PREFERRED_AFFINITY, ()):
            yield term.weight, table
        for term, table in owned.get(TermKind.PREFERRED_ANTI_AFFINITY, ()):
            yield -term.weight, table


class StretchedTerms(WeightedTerms):
    """Scores the sum of weights in a node's domains: 0 for the smallest to 10 for the largest; 0 if all are equal."""

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the smallest sum, but at most 0, and the largest, but at least 0."""
        smallest, largest = 0, 0
        for row in range(self.columns.count):
            if feasible[row]:
                smallest, largest = min(smallest, raw[row]), max(largest, raw[row])
        return (int(smallest), int(largest))

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the position of a sum between the smallest (0) and the largest (10), truncated."""
        smallest, largest = scale[0], scale[1]
        if largest == smallest:
            return 0
        return go.to_int64(_MOST * ((raw - smallest) / float(largest - smallest)))
