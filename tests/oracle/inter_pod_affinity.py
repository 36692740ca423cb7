"""A naive InterPodAffinity that applies the documented rules to each node and each running pod, on the typed objects.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.objects.affinity import PodAffinityTerm, WeightedPodAffinityTerm
from bayplan.objects.pod import Pod
from tests.oracle.selectors import matches_labels
from tests.oracle.world import World

AFFINITY, ANTI_AFFINITY, EXISTING = "affinity", "anti-affinity", "existing anti-affinity"


def required(pod: Pod, kind: str) -> Sequence[PodAffinityTerm]:
    """Return the required terms of ``pod_affinity`` or ``pod_anti_affinity``."""
    affinity = getattr(pod.spec.affinity, kind, None)
    return affinity.required_during_scheduling_ignored_during_execution if affinity is not None else ()


def preferred(pod: Pod, kind: str) -> Sequence[WeightedPodAffinityTerm]:
    """Return the preferred terms of ``pod_affinity`` or ``pod_anti_affinity``."""
    affinity = getattr(pod.spec.affinity, kind, None)
    return affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else ()


def selects(term: PodAffinityTerm, owner: Pod, other: Pod, world: World) -> bool:
    """Return whether a term of the pod that is being scheduled selects another pod (or itself).

    The term's namespace selector selects namespaces by their labels. If it matches a namespace without labels, it
    matches all namespaces, which is an oversight of upstream.
    """
    selector = term.namespace_selector
    namespace = other.metadata.namespace
    if selector is None:
        reached = namespace in (term.namespaces or (owner.metadata.namespace,))
    else:
        picked = namespace in world.namespaces and matches_labels(selector, world.namespaces[namespace])
        reached = namespace in term.namespaces or picked or matches_labels(selector, {})
    return reached and matches_labels(term.label_selector, other.metadata.labels)


def running_selects(term: PodAffinityTerm, owner: Pod, incoming: Pod, labels: Mapping[str, str]) -> bool:
    """Return whether a running pod's term selects the pod that is being scheduled, whose namespace has these labels."""
    namespace = incoming.metadata.namespace
    if term.namespace_selector is None:
        reached = namespace in (term.namespaces or (owner.metadata.namespace,))
    else:
        reached = namespace in term.namespaces or matches_labels(term.namespace_selector, labels)
    return reached and matches_labels(term.label_selector, incoming.metadata.labels)


def objection(pod: Pod, node: str, world: World) -> str | None:
    """Return the first rule that forbids a node for a pod, or None."""
    if not affinity_is_met(pod, node, world):
        return AFFINITY
    for term in required(pod, "pod_anti_affinity"):
        if any(selects(term, pod, other, world) for other in world.neighbours(node, term.topology_key)):
            return ANTI_AFFINITY
    for other, place in world.pods.values():
        for term in required(other, "pod_anti_affinity"):
            value = world.value(place, term.topology_key)
            same_domain = value is not None and world.value(node, term.topology_key) == value
            if same_domain and running_selects(term, other, pod, world.labels_of(pod.metadata.namespace)):
                return EXISTING
    return None


def affinity_is_met(pod: Pod, node: str, world: World) -> bool:
    """Return whether the pod's required affinity allows a node."""
    terms = required(pod, "pod_affinity")
    if any(world.value(node, term.topology_key) is None for term in terms):
        return False

    def selected_by_all(other: Pod) -> bool:
        return all(selects(term, pod, other, world) for term in terms)

    if all(any(map(selected_by_all, world.neighbours(node, term.topology_key))) for term in terms):
        return True
    # Exception for the first pod of a group: it matches its own terms, and no running pod matches them on any node.
    somebody = any(
        selected_by_all(other) and world.value(place, term.topology_key) is not None
        for other, place in world.pods.values()
        for term in terms
    )
    return not somebody and selected_by_all(pod)


def skips_filter(pod: Pod, world: World) -> bool:
    """Return whether no node can fail, because neither the pod nor any running pod has a required term that applies."""
    if required(pod, "pod_affinity") or required(pod, "pod_anti_affinity"):
        return False
    labels = world.labels_of(pod.metadata.namespace)
    return not any(
        world.value(place, term.topology_key) is not None and running_selects(term, other, pod, labels)
        for other, place in world.pods.values()
        for term in required(other, "pod_anti_affinity")
    )


def weights(pod: Pod, world: World, hard_weight: int, ignore_existing: bool) -> list[tuple[str, str, int]]:
    """Return the topology key, the domain and the weight of each match of a preferred term.

    Required affinity of running pods counts, too, with the weight `hard_weight` if that is positive.
    """
    own = [*preferred(pod, "pod_affinity"), *preferred(pod, "pod_anti_affinity")]
    if ignore_existing and not own:
        return []
    labels = world.labels_of(pod.metadata.namespace)
    found: list[tuple[PodAffinityTerm, int, str]] = []
    for other, place in world.pods.values():
        for sign, kind in ((1, "pod_affinity"), (-1, "pod_anti_affinity")):
            for item in preferred(pod, kind):
                if selects(item.pod_affinity_term, pod, other, world):
                    found.append((item.pod_affinity_term, sign * item.weight, place))
            for item in preferred(other, kind):
                if running_selects(item.pod_affinity_term, other, pod, labels):
                    found.append((item.pod_affinity_term, sign * item.weight, place))
        for term in required(other, "pod_affinity"):
            if hard_weight > 0 and running_selects(term, other, pod, labels):
                found.append((term, hard_weight, place))
    placed = [(term.topology_key, world.value(place, term.topology_key), weight) for term, weight, place in found]
    return [(key, value, weight) for key, value, weight in placed if value is not None]


def raw_score(pod: Pod, node: str, world: World, hard_weight: int = 1, ignore_existing: bool = False) -> int:
    """Return the sum of the weights of all matches in the node's domains."""
    found = weights(pod, world, hard_weight, ignore_existing)
    return sum(weight for key, value, weight in found if world.value(node, key) == value)


def normalized(raw: Mapping[str, int]) -> dict[str, int]:
    """Return the raw scores scaled to 0 for the lowest and 100 for the highest; all 0 if they are equal."""
    low, high = min(raw.values()), max(raw.values())
    if low == high:
        return dict.fromkeys(raw, 0)
    return {name: int(100.0 * ((score - low) / (high - low))) for name, score in raw.items()}
