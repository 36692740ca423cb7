"""MatchInterPodAffinity: required pod affinity and anti-affinity, both of the pod and of running pods.

Upstream counts pods that a trial adds differently from existing ones: a pod that matches any anti-affinity term counts
for all of them, and a pod without a node (a nominated one) counts for none of the pod's terms.
"""

from __future__ import annotations

import numpy as np

from bayplan.classic.plugins.failure_reasons import (
    EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH,
    POD_AFFINITY_NOT_MATCH,
    POD_AFFINITY_RULES_NOT_MATCH,
    POD_ANTI_AFFINITY_RULES_NOT_MATCH,
    verdict_of,
)
from bayplan.classic.plugins.inter_pod_terms import (
    TermsSpec,
    all_match,
    compile_terms,
    matches,
    table_of,
    tables_of_all,
)
from bayplan.classic.plugins.pod_changes import CountingRule, PodChanges
from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.framework.rule import FilterRule
from bayplan.objects.pod import Pod
from bayplan.state.affinity_terms import AffinityTerm, TermKind, pod_terms
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import DomainTable
from bayplan.state.pod_info import PodInfo

EXISTING = verdict_of(1, EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH)
AFFINITY = verdict_of(2, POD_AFFINITY_RULES_NOT_MATCH)
ANTI_AFFINITY = verdict_of(4, POD_ANTI_AFFINITY_RULES_NOT_MATCH)
_EXISTING, _AFFINITY, _ANTI_AFFINITY = EXISTING, AFFINITY, ANTI_AFFINITY
REASONS = {
    EXISTING: EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH,
    AFFINITY: POD_AFFINITY_RULES_NOT_MATCH,
    ANTI_AFFINITY: POD_ANTI_AFFINITY_RULES_NOT_MATCH,
}


class MatchInterPodAffinity(FilterPlugin[TermsSpec]):
    """Rejects nodes in domains with pods that conflict with the pod's terms, or whose terms conflict with the pod."""

    name = "MatchInterPodAffinity"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> TermsSpec:
        """Compile the terms."""
        return compile_terms(pod)

    def filter_rule(self, spec: TermsSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the required terms."""
        return RequiredTerms(spec, cluster)

    def reasons(self, spec: TermsSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reason that all three rules share, then that of the violated rule."""
        return (POD_AFFINITY_NOT_MATCH, REASONS[verdict])


class RequiredTerms(CountingRule):
    """Checks three rules in order: anti-affinity of running pods, the pod's affinity, the pod's anti-affinity.

    The tables count the pods that match all affinity terms, those that match each anti-affinity term, and the owners of
    each anti-affinity term that matches the pod.
    """

    def __init__(self, spec: TermsSpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_others = True
        self._spec, self._cluster = spec, cluster
        self._affinity_tables = [table for _, table in tables_of_all(spec.terms.required_affinity, cluster)]
        self._anti_affinity_tables = [table_of(term, cluster) for term in spec.terms.required_anti_affinity]
        self._existing_tables: list[DomainTable] = []
        self._matches_itself = _matches_itself(spec)
        self._first_of_group = False
        self._version = self._tables_version = -1

    def refresh(self) -> bool:
        """Update the tables; return whether a domain of several nodes got its first matching pod or lost its last."""
        spec, owned, moved = self._spec, self._spec.owned, False
        owned.refresh(spec.namespace, spec.labels, self._cluster)
        if owned.version != self._version:
            self._version, moved = owned.version, True
            self._existing_tables = [table for _, table in owned.by_kind.get(TermKind.REQUIRED_ANTI_AFFINITY, ())]
        tables_version, first = 0, self._matches_itself
        for tables in (self._affinity_tables, self._anti_affinity_tables, self._existing_tables):
            for number in range(len(tables)):
                table = tables[number]
                table.refresh()
                if not table.distinct:
                    tables_version += table.positive_version
        for number in range(len(self._affinity_tables)):
            table = self._affinity_tables[number]
            first = first and table.positive == 0
        if tables_version != self._tables_version or first != self._first_of_group:
            moved = True
        self._tables_version, self._first_of_group = tables_version, first
        return moved

    def filter(self, row: int) -> int:
        """Return the verdict from the counts in the node's domains."""
        for number in range(len(self._existing_tables)):
            table = self._existing_tables[number]
            code = table.codes[row]
            if code >= 0 and table.values[code] > 0:
                return _EXISTING
        # The first pod of a group with affinity to itself may run on any node.
        if not self._first_of_group:
            for number in range(len(self._affinity_tables)):
                table = self._affinity_tables[number]
                code = table.codes[row]
                if code < 0 or table.values[code] == 0:
                    return _AFFINITY
        for number in range(len(self._anti_affinity_tables)):
            table = self._anti_affinity_tables[number]
            code = table.codes[row]
            if code >= 0 and table.values[code] > 0:
                return _ANTI_AFFINITY
        return 0

    def filter_changed(self, row: int, changes: PodChanges) -> int:
        """Return the verdict on a row whose pods a trial has moved."""
        if self._violates_existing_anti_affinity(row, changes):
            return EXISTING
        if self._violates_affinity(row, changes):
            return AFFINITY
        return ANTI_AFFINITY if self._violates_anti_affinity(row, changes) else 0

    def _code(self, key: str, row: int) -> int:
        return int(self._cluster.nodes.label_column(key).codes[row])

    def _violates_existing_anti_affinity(self, row: int, changes: PodChanges) -> bool:
        spec, counts = self._spec, dict[str, int]()
        for table in self._existing_tables:
            counts[table.key] = counts.get(table.key, 0) + _pods_in(table, row)
        for infos, sign in ((changes.removed.values(), -1), (changes.added, 1)):
            for info in infos:
                for term in pod_terms(info.pod).required_anti_affinity:
                    if matches(term, spec.namespace, spec.labels):
                        counts[term.topology_key] = counts.get(term.topology_key, 0) + sign
        return any([count > 0 and self._code(key, row) >= 0 for key, count in counts.items()])

    def _violates_affinity(self, row: int, changes: PodChanges) -> bool:
        terms = self._spec.terms.required_affinity
        if not terms:
            return False
        moved = [(info, 1) for info in changes.restored.values()] + [(info, -1) for info in changes.removed.values()]
        # Only removed and restored pods count: nominated pods have no node.
        change = sum(
            [sign for info, sign in moved if all_match(terms, info.pod.metadata.namespace, info.pod.metadata.labels)]
        )
        if all(
            [self._code(table.key, row) >= 0 and _pods_in(table, row) + change > 0 for table in self._affinity_tables]
        ):
            return False
        none_match = all(
            [
                int(np.asarray(table.values).sum()) + (change if self._code(table.key, row) >= 0 else 0) == 0
                for table in self._affinity_tables
            ]
        )
        return not (none_match and self._matches_itself)

    def _violates_anti_affinity(self, row: int, changes: PodChanges) -> bool:
        terms, counts = self._spec.terms.required_anti_affinity, dict[str, int]()
        for term, table in zip(terms, self._anti_affinity_tables, strict=True):
            removed = sum([_matches_info(term, info) for info in changes.removed.values()])
            counts[table.key] = counts.get(table.key, 0) + _pods_in(table, row) - removed
        restored = sum([any([_matches_info(term, info) for term in terms]) for info in changes.restored.values()])
        return any([count + restored > 0 and self._code(key, row) >= 0 for key, count in counts.items()])


def _pods_in(table: DomainTable, row: int) -> int:
    """Return the number of pods in the domain of a row at the last refresh; 0 for nodes without the key."""
    code = int(table.codes[row])
    return int(table.values[code]) if code >= 0 else 0


def _matches_itself(spec: TermsSpec) -> bool:
    return all_match(spec.terms.required_affinity, spec.namespace, spec.labels)


def _matches_info(term: AffinityTerm, info: PodInfo) -> bool:
    return matches(term, info.pod.metadata.namespace, info.pod.metadata.labels)
