"""A naive implementation of Kubernetes 1.16's rules: loops over nodes and pods, fractions instead of integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import trunc

from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import milli_value, value
from bayplan.objects.service import Service
from tests.oracle.selectors import matches_labels
from tests.oracle.world import World

DEFAULTS = {"cpu": 100, "memory": 200 * 1024 * 1024}
TERMS = ("pod_affinity", "pod_anti_affinity")


def asked(pod: Pod, name: str, *, defaults: bool) -> int:
    """Return a pod's request: the sum over its containers or the largest of an init container, whichever is more."""

    def of(requests: object) -> int:
        assert isinstance(requests, dict)
        if name in requests:
            return milli_value(requests[name]) if name == "cpu" else value(requests[name])
        return DEFAULTS.get(name, 0) if defaults else 0

    main = sum(of(container.resources.requests) for container in pod.spec.containers)
    return max([main, *(of(container.resources.requests) for container in pod.spec.init_containers)])


def offered(world: World, node: str, name: str) -> int:
    """Return the allocatable amount of a resource on a node."""
    amounts = world.nodes[node].status.allocatable
    if name not in amounts:
        return 0
    return milli_value(amounts[name]) if name == "cpu" else value(amounts[name])


def _wanted(world: World, node: str, pod: Pod, name: str) -> int:
    there = [running for running, place in world.pods.values() if place == node]
    return sum(asked(each, name, defaults=True) for each in [*there, pod])


# Predicates.


def fits_resources(world: World, node: str, pod: Pod) -> bool:
    """Return whether the node has enough pods, CPU and memory left.

    A pod with any request fails if any resource is overcommitted.
    """
    there = [running for running, place in world.pods.values() if place == node]
    if len(there) + 1 > offered(world, node, "pods"):
        return False
    if not any(asked(pod, name, defaults=False) for name in ("cpu", "memory")):
        return True
    return all(
        sum(asked(each, name, defaults=False) for each in [*there, pod]) <= offered(world, node, name)
        for name in ("cpu", "memory")
    )


def satisfies_pod_affinity(world: World, node: str, pod: Pod) -> bool:
    """Return whether a node satisfies all required affinity and anti-affinity, of the pod and of running pods."""
    for running, place in world.pods.values():
        for term in _required(running, "pod_anti_affinity"):
            where = world.value(place, term.topology_key)
            if where is not None and where == world.value(node, term.topology_key) and _matches(term, running, pod):
                return False
    if any(
        _matches(term, pod, neighbour)
        for term in _required(pod, "pod_anti_affinity")
        for neighbour in world.neighbours(node, term.topology_key)
    ):
        return False
    terms = _required(pod, "pod_affinity")
    friends = {key for key, (each, _) in world.pods.items() if all(_matches(term, pod, each) for term in terms)}
    near = all(
        any(neighbour.key in friends for neighbour in world.neighbours(node, term.topology_key)) for term in terms
    )
    if near:
        return True
    places = [(world.pods[key][1], term.topology_key) for key in friends for term in terms]
    nowhere = not any(world.value(place, key) is not None for place, key in places)
    return nowhere and all(_matches(term, pod, pod) for term in terms)


def _required(pod: Pod, kind: str) -> Sequence[PodAffinityTerm]:
    affinity = getattr(pod.spec.affinity, kind) if pod.spec.affinity is not None else None
    return () if affinity is None else affinity.required_during_scheduling_ignored_during_execution


def _matches(term: PodAffinityTerm, owner: Pod, pod: Pod) -> bool:
    namespaces = term.namespaces or (owner.metadata.namespace,)
    return pod.metadata.namespace in namespaces and matches_labels(term.label_selector, pod.metadata.labels)


# Priorities.


def least_requested(world: World, node: str, pod: Pod) -> int:
    """Return the mean of the free fractions of CPU and memory, in tenths."""
    return sum(_tenths(world, node, pod, name, lambda used: 1 - used) for name in ("cpu", "memory")) // 2


def most_requested(world: World, node: str, pod: Pod) -> int:
    """Return the mean of the requested fractions of CPU and memory, in tenths."""
    return sum(_tenths(world, node, pod, name, lambda used: used) for name in ("cpu", "memory")) // 2


def _tenths(world: World, node: str, pod: Pod, name: str, worth: Callable[[Fraction], Fraction]) -> int:
    capacity, wanted = offered(world, node, name), _wanted(world, node, pod, name)
    if capacity == 0 or wanted > capacity:
        return 0
    return trunc(worth(Fraction(wanted, capacity)) * 10)


def selector_spread(
    world: World, feasible: Iterable[str], pod: Pod, services: Iterable[Service], zone: str
) -> dict[str, int]:
    """Return the scores of SelectorSpreadPriority, by node."""
    selectors = [
        service.spec.selector
        for service in services
        if service.spec.selector and service.spec.selector.items() <= pod.metadata.labels.items()
    ]
    counts = {
        node: sum(
            place == node
            and running.metadata.namespace == pod.metadata.namespace
            and bool(selectors)
            and all(selector.items() <= running.metadata.labels.items() for selector in selectors)
            for running, place in world.pods.values()
        )
        for node in feasible
    }
    zones = {node: world.value(node, zone) for node in counts}
    by_zone = {
        name: sum(count for node, count in counts.items() if zones[node] == name) for name in zones.values() if name
    }
    most, most_in_zone = max(counts.values()), max(by_zone.values(), default=0)
    found = {}
    for node, count in counts.items():
        score = 10.0 * (float(most - count) / float(most)) if most else 10.0
        name = zones[node]
        if name:
            apart = 10.0 * (float(most_in_zone - by_zone[name]) / float(most_in_zone)) if most_in_zone else 10.0
            score = (score * (1.0 - 2.0 / 3.0)) + ((2.0 / 3.0) * apart)
        found[node] = int(score)
    return found


def inter_pod_affinity(world: World, feasible: Iterable[str], pod: Pod, hard_weight: int) -> dict[str, int]:
    """Return the scores of InterPodAffinityPriority, from the preferences of the pod and of running pods, by node."""
    sums = dict.fromkeys(feasible, 0)
    for running, place in world.pods.values():
        for node in sums:
            for weight, term, owner, other in _wishes(pod, running, hard_weight):
                where = world.value(place, term.topology_key)
                if where is not None and where == world.value(node, term.topology_key) and _matches(term, owner, other):
                    sums[node] += weight
    smallest, largest = min(0, *sums.values()), max(0, *sums.values())
    if smallest == largest:
        return dict.fromkeys(sums, 0)
    return {node: int(10.0 * (float(total - smallest) / float(largest - smallest))) for node, total in sums.items()}


def _wishes(pod: Pod, running: Pod, hard_weight: int) -> list[tuple[int, PodAffinityTerm, Pod, Pod]]:
    found = [(sign * weight, term, pod, running) for sign, weight, term in _preferred(pod)]
    found += [(sign * weight, term, running, pod) for sign, weight, term in _preferred(running)]
    found += [(hard_weight, term, running, pod) for term in _required(running, "pod_affinity")]
    return found


def _preferred(pod: Pod) -> list[tuple[int, int, PodAffinityTerm]]:
    found = []
    for sign, kind in ((1, "pod_affinity"), (-1, "pod_anti_affinity")):
        affinity = getattr(pod.spec.affinity, kind) if pod.spec.affinity is not None else None
        if affinity is not None:
            for item in affinity.preferred_during_scheduling_ignored_during_execution:
                found.append((sign, item.weight, item.pod_affinity_term))
    return found


# Preemption.


def victims(world: World, node: str, pod: Pod) -> list[str] | None:
    """Return the pods to evict from a node, highest priority first; None if evictions do not help.

    Budgets are ignored.
    """
    lower = sorted(
        (running for running, place in world.pods.values() if place == node and priority(running) < priority(pod)),
        key=lambda running: (-priority(running), running.status.start_time or "~"),
    )
    left = {key: item for key, item in world.pods.items() if item[0] not in lower}
    rest = World(world.nodes, left, world.namespaces)
    if not _fits(rest, node, pod):
        return None
    gone = []
    for running in lower:
        rest.pods[running.key] = (running, node)
        if not _fits(rest, node, pod):
            del rest.pods[running.key]
            gone.append(running.key)
    return gone


def _fits(world: World, node: str, pod: Pod) -> bool:
    return fits_resources(world, node, pod) and satisfies_pod_affinity(world, node, pod)


def priority(pod: Pod) -> int:
    """Return a pod's priority, 0 if it has none."""
    return pod.spec.priority or 0


def best_of(candidates: dict[str, list[Pod]]) -> set[str]:
    """Return the nodes with the least important victims. Budgets are ignored, so each list of victims is sorted."""

    def loss(gone: list[Pod]) -> tuple[object, ...]:
        if not gone:
            return ()
        first = [each for each in gone if priority(each) == priority(gone[0])]
        earliest = min(each.status.start_time or "~" for each in first)
        # The latest start time is best; start times have one length, so negated characters reverse their order.
        turned = tuple(-ord(letter) for letter in earliest)
        return (priority(gone[0]), sum(priority(each) + 2**31 for each in gone), len(gone), turned)

    least = min((loss(gone) for gone in candidates.values()), default=None)
    return {node for node, gone in candidates.items() if loss(gone) == least}
