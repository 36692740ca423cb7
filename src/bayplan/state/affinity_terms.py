"""Compiled pod affinity terms: the pods that a term matches, its topology key, its weight.

A term of a pod is evaluated when that pod is scheduled and, once it runs, for every other pod. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache

import msgspec

from bayplan.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector


class TermKind(Enum):
    """The kind of a term, by the list that contains it."""

    REQUIRED_AFFINITY = "podAffinity.required"
    REQUIRED_ANTI_AFFINITY = "podAntiAffinity.required"
    PREFERRED_AFFINITY = "podAffinity.preferred"
    PREFERRED_ANTI_AFFINITY = "podAntiAffinity.preferred"


class AffinityTerm(msgspec.Struct, frozen=True):
    """One term; equal terms of different pods are the same object.

    Attributes:
        topology_key: the node label whose values are the domains.
        namespaces: the namespaces that the term names; the pod's own if it names none and has no namespace selector.
        weight: the weight of a preferred term; 0 for a required term.
    """

    kind: TermKind
    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term of a running pod matches a pod, by its labels, and its namespace's name or labels."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


class PodTerms(msgspec.Struct, frozen=True):
    """The terms of one pod, in the order of `TermKind`.

    Attributes:
        error: the error of a term that cannot be compiled, in upstream's words, or "".
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
    error: str = ""

    def all(self) -> Iterator[AffinityTerm]:
        """Yield all terms, in the order of `TermKind`."""
        yield from (*self.required_affinity, *self.required_anti_affinity)
        yield from (*self.preferred_affinity, *self.preferred_anti_affinity)


NO_TERMS = PodTerms()

MAX_OBJECTS = 4096
"""Maximum number of affinity objects in `_TERMS_BY_ID`. It is cleared when full, because it keeps objects of deleted pods."""

_TERMS_BY_ID: dict[int, tuple[Affinity, str, PodTerms]] = {}
"""By `id` of an affinity object: the object, which keeps its `id` while it is here, a namespace, and the terms.

Encoding an affinity object takes 6,000 instructions.
"""

_encode, _decode = (
    msgspec.msgpack.Encoder().encode,
    msgspec.msgpack.Decoder(tuple[PodAffinity | None, PodAntiAffinity | None]).decode,
)


def pod_terms(pod: Pod) -> PodTerms:
    """Return the compiled terms of a pod. As in upstream, a list that contains an invalid term is empty.

    Queueing hints call this for every waiting pod at every event.
    """
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    namespace = pod.metadata.namespace
    known = _TERMS_BY_ID.get(id(affinity))
    if known is not None and known[0] is affinity and known[1] == namespace:
        return known[2]
    # Node affinity is not part of the cache key: in pods of a DaemonSet it names the node, so it would differ for each.
    found = _pod_terms(namespace, _encode((affinity.pod_affinity, affinity.pod_anti_affinity)))
    if len(_TERMS_BY_ID) >= MAX_OBJECTS:
        _TERMS_BY_ID.clear()
    _TERMS_BY_ID[id(affinity)] = (affinity, namespace, found)
    return found


@lru_cache(maxsize=4096)
def _pod_terms(namespace: str, encoded: bytes) -> PodTerms:
    lists: list[list[tuple[PodAffinityTerm, int]]] = [[], [], [], []]
    for number, terms in enumerate(_decode(encoded)):
        if terms is not None:
            lists[number] = [(item, 0) for item in terms.required_during_scheduling_ignored_during_execution]
            weighted = terms.preferred_during_scheduling_ignored_during_execution
            lists[number + 2] = [(item.pod_affinity_term, item.weight) for item in weighted]
    found: list[tuple[AffinityTerm, ...]] = []
    errors = []
    for kind, listed in zip(TermKind, lists, strict=True):
        try:
            found.append(tuple([_compile(kind, term, weight, namespace) for term, weight in listed]))
        except SelectorError as problem:
            found.append(())
            errors.append(str(problem))
    return PodTerms(found[0], found[1], found[2], found[3], ", ".join(errors))


def _compile(kind: TermKind, term: PodAffinityTerm, weight: int, namespace: str) -> AffinityTerm:
    namespaces = frozenset(term.namespaces)
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((namespace,))
    return AffinityTerm(
        kind,
        term.topology_key,
        compile_label_selector(term.label_selector),
        namespaces,
        compile_label_selector(term.namespace_selector),
        weight,
    )
