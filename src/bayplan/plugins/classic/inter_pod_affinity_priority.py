"""InterPodAffinityPriority: nodes near pods that the pod prefers, or that prefer the pod, are better; near those it shuns worse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayplan.framework.plugin import Handle, Params, PreScorePlugin, Reads
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.arguments import classic_arguments
from bayplan.plugins.classic.inter_pod_terms import TermsSpec, compile_terms, table_of
from bayplan.plugins.classic.priority import MAX_PRIORITY, RowPriority
from bayplan.state.affinity_terms import TermKind
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import DomainTable
from bayplan.state.views import Rows


class InterPodAffinityPriority(PreScorePlugin[TermsSpec], RowPriority[TermsSpec]):
    """Sums up weights per domain, then stretches them from 0 for the least to 10 for the most; both ends start at 0.

    Required affinity of running pods counts with hardPodAffinitySymmetricWeight.
    """

    name = "InterPodAffinityPriority"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._hard_weight = classic_arguments(arguments).hard_pod_affinity_symmetric_weight

    def compile(self, pod: Pod, cluster: ClusterState) -> TermsSpec:
        """Compile the terms."""
        return compile_terms(pod)

    def pre_score(self, spec: TermsSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return the weighted sums per topology key."""
        spec.owned.follow(spec.namespace, spec.labels, cluster)
        weighted: dict[str, Ints] = {}
        for weight, key, table in self._weighted_tables(spec, cluster):
            sums = table.sums()
            if sums.any():
                known = weighted.get(key)
                weighted[key] = weight * sums if known is None else known + weight * sums
        return tuple((key, sums.tobytes()) for key, sums in weighted.items())

    def _weighted_tables(self, spec: TermsSpec, cluster: ClusterState) -> Iterator[tuple[int, str, DomainTable]]:
        for term in spec.terms.preferred_affinity:
            yield term.weight, term.topology_key, table_of(term, cluster)
        for term in spec.terms.preferred_anti_affinity:
            yield -term.weight, term.topology_key, table_of(term, cluster)
        owned = spec.owned.by_kind
        for term, table in owned.get(TermKind.REQUIRED_AFFINITY, ()):
            yield self._hard_weight, term.topology_key, table
        for term, table in owned.get(TermKind.PREFERRED_AFFINITY, ()):
            yield term.weight, term.topology_key, table
        for term, table in owned.get(TermKind.PREFERRED_ANTI_AFFINITY, ()):
            yield -term.weight, term.topology_key, table

    def score(self, spec: TermsSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the sum of weights in the domains of each node."""
        total = rows.fill(0)
        for entry in params or ():
            assert isinstance(entry, tuple)
            key, table = entry
            total = total + np.frombuffer(table, dtype=np.int64)[rows.label(key)]
        return total

    def scale(self, spec: TermsSpec, params: Params | None, raw: Ints) -> Params:
        """Return the smallest sum, at most 0, and the largest, at least 0."""
        return (min(0, int(raw.min())), max(0, int(raw.max())))

    def normalize(self, spec: TermsSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 0 for the smallest to 10 for the largest; 0 for all where they are equal."""
        smallest, largest = scale
        assert isinstance(smallest, int)
        assert isinstance(largest, int)
        if largest == smallest:
            return raw * 0
        share: Ints = (float(MAX_PRIORITY) * ((raw - smallest) / float(largest - smallest))).astype(np.int64)
        return share
