"""Pod affinity terms for both inter-pod rules of the classic scheduler: counts of pods per topology domain."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from bayplan.objects.pod import Pod
from bayplan.state.affinity_terms import AffinityTerm, PodTerms, TermKind, pod_terms
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import DomainTable
from bayplan.state.pod_info import PodClass


class OwnedTerms:
    """The terms of running pods that match a spec's pod, by kind; extended when terms are registered."""

    __slots__ = ("by_kind", "seen", "version", "weighted")

    def __init__(self) -> None:
        self.seen = -1
        self.version = 0
        self.weighted: list[tuple[int, DomainTable]] | None = None
        self.by_kind: dict[TermKind, list[tuple[AffinityTerm, DomainTable]]] = {}

    def refresh(self, namespace: str, labels: dict[str, str], cluster: ClusterState) -> None:
        """Add the terms that were registered since the last call."""
        counters = cluster.counters
        if self.seen == counters.registered:
            return
        for counter in counters.owned_since(self.seen):
            term = counter.term
            if isinstance(term, AffinityTerm) and matches(term, namespace, labels):
                table = cluster.domain_table(term.topology_key, counter)
                self.by_kind.setdefault(term.kind, []).append((term, table))
        self.seen, self.weighted = counters.registered, None
        self.version += 1


@dataclass(frozen=True)
class TermsSpec:
    """A pod's own affinity terms, and the terms of other pods that match it."""

    key: Hashable
    namespace: str = field(compare=False)
    labels: dict[str, str] = field(compare=False)
    terms: PodTerms = field(compare=False)
    owned: OwnedTerms = field(compare=False)


def compile_terms(pod: Pod) -> TermsSpec:
    """Compile the terms of a pod."""
    terms, labels = pod_terms(pod), pod.metadata.labels
    key = (pod.metadata.namespace, tuple(sorted(labels.items())), terms)
    return TermsSpec(key, pod.metadata.namespace, labels, terms, OwnedTerms())


def matches(term: AffinityTerm, namespace: str, labels: dict[str, str]) -> bool:
    """Return whether a term matches a pod. This release has no namespace selectors."""
    return namespace in term.namespaces and term.selector.matches(labels)


def all_match(terms: Sequence[AffinityTerm], namespace: str, labels: dict[str, str]) -> bool:
    """Return whether there are terms and all match a pod."""
    return bool(terms) and all(matches(term, namespace, labels) for term in terms)


def table_of(term: AffinityTerm, cluster: ClusterState) -> DomainTable:
    """Return the table of the pods that a term matches, per domain of its topology key."""
    return tables_of_all((term,), cluster)[0][1]


def tables_of_all(terms: Sequence[AffinityTerm], cluster: ClusterState) -> list[tuple[str, DomainTable]]:
    """Return, for each topology key of the terms, the table of the pods that match all terms."""
    if not terms:
        return []
    key = ("classic terms", tuple(sorted({(tuple(sorted(term.namespaces)), repr(term.selector)) for term in terms})))

    def matching(pod_class: PodClass) -> bool:
        return all_match(terms, pod_class.namespace, pod_class.labels)

    counter = cluster.matching_counter(key, matching)
    return [(name, cluster.domain_table(name, counter)) for name in dict.fromkeys(term.topology_key for term in terms)]
