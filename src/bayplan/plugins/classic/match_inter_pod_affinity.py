"""MatchInterPodAffinity: required pod affinity and anti-affinity, of the pod and of those that run already.

When pods are added on trial, upstream counts them in another way than those that were there: one that matches any anti-affinity
term counts for all of them, and one without a node (a nominated one) counts for no term of the pod at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.failure_reasons import (
    EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH,
    POD_AFFINITY_NOT_MATCH,
    POD_AFFINITY_RULES_NOT_MATCH,
    POD_ANTI_AFFINITY_RULES_NOT_MATCH,
    verdict_of,
)
from bayplan.plugins.classic.inter_pod_terms import (
    TermsSpec,
    all_match,
    compile_terms,
    matches,
    table_of,
    tables_of_all,
)
from bayplan.plugins.classic.pod_changes import CountingPredicate, PodChanges, label_code
from bayplan.state.affinity_terms import AffinityTerm, TermKind, pod_terms
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo
from bayplan.state.views import Rows

EXISTING = verdict_of(1, EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH)
AFFINITY = verdict_of(2, POD_AFFINITY_RULES_NOT_MATCH)
ANTI_AFFINITY = verdict_of(4, POD_ANTI_AFFINITY_RULES_NOT_MATCH)
REASONS = {
    EXISTING: EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH,
    AFFINITY: POD_AFFINITY_RULES_NOT_MATCH,
    ANTI_AFFINITY: POD_ANTI_AFFINITY_RULES_NOT_MATCH,
}


class MatchInterPodAffinity(PreFilterPlugin[TermsSpec], CountingPredicate[TermsSpec]):
    """Rejects nodes in whose domains are pods that the pod, or that dislike the pod, don't go with.

    Params: sums per domain, as (topology key, int64 bytes): pods that match all affinity terms, pods per anti-affinity term, and
    owners of each anti-affinity term that matches the pod.
    """

    name = "MatchInterPodAffinity"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def compile(self, pod: Pod, cluster: ClusterState) -> TermsSpec:
        """Compile the terms."""
        return compile_terms(pod)

    def pre_filter(self, spec: TermsSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Read the sums."""
        spec.owned.follow(spec.namespace, spec.labels, cluster)
        wanted = tables_of_all(spec.terms.required_affinity, cluster)
        shunned = [(term.topology_key, table_of(term, cluster)) for term in spec.terms.required_anti_affinity]
        owned = spec.owned.by_kind.get(TermKind.REQUIRED_ANTI_AFFINITY, ())
        return PreFilterResult(
            (
                tuple((key, table.sums().tobytes()) for key, table in wanted),
                tuple((key, table.sums().tobytes()) for key, table in shunned),
                tuple((term.topology_key, table.sums().tobytes()) for term, table in owned),
            )
        )

    def filter(self, spec: TermsSpec, params: Params | None, rows: Rows) -> Codes:
        """Return the first of three rules that a node breaks."""
        wanted, shunned, owned = (list(_sums(part)) for part in params or ((), (), ()))
        disliked, lonely, near = (rows.everywhere(False) for _ in range(3))
        for key, sums in owned:
            disliked = disliked | (sums[rows.label(key)] > 0)
        # The first pod of a group that wants its own kind may go anywhere.
        if any(sums.any() for _, sums in wanted) or not _content_with_itself(spec):
            for key, sums in wanted:
                lonely = lonely | (sums[rows.label(key)] == 0)
        for key, sums in shunned:
            near = near | (sums[rows.label(key)] > 0)
        verdict = rows.where(near, ANTI_AFFINITY, 0)
        verdict = rows.where(lonely, AFFINITY, verdict)
        return rows.codes(rows.where(disliked, EXISTING, verdict))

    def filter_changed(
        self, spec: TermsSpec, params: Params | None, cluster: ClusterState, row: int, changes: PodChanges
    ) -> int:
        """Return the verdict on one row after changes."""
        wanted, shunned, owned = (list(_sums(part)) for part in params or ((), (), ()))
        if self._is_disliked(spec, owned, cluster, row, changes):
            return EXISTING
        if self._is_lonely(spec, wanted, cluster, row, changes):
            return AFFINITY
        if self._is_near(spec, shunned, cluster, row, changes):
            return ANTI_AFFINITY
        return 0

    def _is_disliked(
        self, spec: TermsSpec, owned: list[tuple[str, Ints]], cluster: ClusterState, row: int, changes: PodChanges
    ) -> bool:
        counts: dict[str, int] = {}
        for key, sums in owned:
            counts[key] = counts.get(key, 0) + int(sums[label_code(cluster, key, row)])
        for infos, sign in ((changes.removed.values(), -1), (changes.added, 1)):
            for info in infos:
                for term in _anti_affinity_terms(info):
                    if matches(term, spec.namespace, spec.labels):
                        counts[term.topology_key] = counts.get(term.topology_key, 0) + sign
        return any(count > 0 and label_code(cluster, key, row) >= 0 for key, count in counts.items())

    def _is_lonely(
        self, spec: TermsSpec, wanted: list[tuple[str, Ints]], cluster: ClusterState, row: int, changes: PodChanges
    ) -> bool:
        terms = spec.terms.required_affinity
        if not terms:
            return False
        change = _count(changes, lambda info: all_match(terms, info.pod.metadata.namespace, info.pod.metadata.labels))
        here = {key: label_code(cluster, key, row) for key, _ in wanted}
        if all(here[key] >= 0 and int(sums[here[key]]) + change > 0 for key, sums in wanted):
            return False
        nowhere = all(int(sums.sum()) + (change if here[key] >= 0 else 0) == 0 for key, sums in wanted)
        return not (nowhere and _content_with_itself(spec))

    def _is_near(
        self, spec: TermsSpec, shunned: list[tuple[str, Ints]], cluster: ClusterState, row: int, changes: PodChanges
    ) -> bool:
        terms = spec.terms.required_anti_affinity
        counts: dict[str, int] = {}
        for term, (key, sums) in zip(terms, shunned, strict=True):
            gone = sum(_matches_info(term, info) for info in changes.removed.values())
            counts[key] = counts.get(key, 0) + int(sums[label_code(cluster, key, row)]) - gone
        back = sum(any(_matches_info(term, info) for term in terms) for info in changes.restored.values())
        return any(count + back > 0 and label_code(cluster, key, row) >= 0 for key, count in counts.items())

    def reasons(self, spec: TermsSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return that affinity is the matter, then the rule that is broken."""
        return (POD_AFFINITY_NOT_MATCH, REASONS[verdict])


def _sums(part: object) -> Iterator[tuple[str, Ints]]:
    assert isinstance(part, tuple)
    for key, table in part:
        yield key, np.frombuffer(table, dtype=np.int64)


def _content_with_itself(spec: TermsSpec) -> bool:
    return all_match(spec.terms.required_affinity, spec.namespace, spec.labels)


def _anti_affinity_terms(info: PodInfo) -> tuple[AffinityTerm, ...]:
    return pod_terms(info.pod).required_anti_affinity


def _matches_info(term: AffinityTerm, info: PodInfo) -> bool:
    return matches(term, info.pod.metadata.namespace, info.pod.metadata.labels)


def _count(changes: PodChanges, counts: Callable[[PodInfo], bool]) -> int:
    """Return by how much the number of pods that count has changed; pods without a node don't."""
    return sum(map(counts, changes.restored.values())) - sum(map(counts, changes.removed.values()))
