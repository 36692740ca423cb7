"""On random small clusters the classic rules agree with a naive implementation."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.service import Service
from bayplan.testing.builders import PodBuilder, make_pod
from tests.classic.cycles import ZONE, Item, configured, cycle_of, node, typed
from tests.oracle import classic
from tests.oracle.world import World

HOST = "kubernetes.io/hostname"
APPS = ("a", "b")


def _terms(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        {"labelSelector": {"matchLabels": {"app": draw(st.sampled_from(APPS))}}, "topologyKey": key}
        for key in draw(st.lists(st.sampled_from((HOST, ZONE)), min_size=1, max_size=2))
    ]


def _affinity(draw: st.DrawFn) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    for kind in draw(st.lists(st.sampled_from(("podAffinity", "podAntiAffinity")), max_size=2)):
        preferred = [{"weight": draw(st.integers(1, 100)), "podAffinityTerm": term} for term in _terms(draw)]
        if draw(st.booleans()):
            affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        else:
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": _terms(draw)}
    return affinity


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    """Draw a pod."""
    builder = make_pod(name, draw(st.sampled_from(("default", "default", "other"))))
    builder.label(app=draw(st.sampled_from(APPS))).priority(draw(st.integers(-2, 3)))
    for resource, amounts in (("cpu", ("0", "100m", "1", "3")), ("memory", ("0", "1", "512Mi", "2Gi"))):
        if draw(st.booleans()):
            builder.req({resource: draw(st.sampled_from(amounts))})
    if draw(st.booleans()):
        builder.spec(affinity=_affinity(draw))
    return builder


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Item], World, list[Service], PodBuilder]:
    """Draw a cluster (as objects, and as a world with its services) and a pod to schedule in it."""
    objects: list[Item] = []
    for number in range(draw(st.integers(1, 5))):
        builder = node(
            f"n{number}",
            draw(st.sampled_from(("0", "1", "4", "3500m"))),
            draw(st.sampled_from(("0", "1Gi", "4Gi", "4095Mi"))),
            pods=draw(st.sampled_from(("2", "10"))),
        )
        builder.label({HOST: f"n{number}"})
        zone = draw(st.sampled_from(("", "a", "b")))
        objects.append(builder.label({ZONE: zone}) if zone else builder)
    nodes = len(objects)
    for number in range(draw(st.integers(0, 7))):
        running = draw(pods(f"r{number}")).node(f"n{draw(st.integers(0, nodes - 1))}")
        # All start times differ, so that there is a unique order of importance.
        running.document().setdefault("status", {})["startTime"] = f"2026-01-01T00:00:0{number * 3 % 7}Z"
        objects.append(running)
    for name in draw(st.lists(st.sampled_from(APPS), max_size=2, unique=True)):
        metadata = {"name": name, "namespace": "default"}
        spec = {"selector": {"app": name}}
        objects.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    made = [typed(item) for item in objects]
    world = World(
        {item.metadata.name: item for item in made if isinstance(item, Node)},
        {item.key: (item, item.spec.node_name) for item in made if isinstance(item, Pod)},
    )
    services = [item for item in made if isinstance(item, Service)]
    return objects, world, services, draw(pods("p"))


PREDICATES = ("PodFitsResources", "MatchInterPodAffinity")
PRIORITIES = (
    "LeastRequestedPriority",
    "MostRequestedPriority",
    "SelectorSpreadPriority",
    "InterPodAffinityPriority",
)


@settings(max_examples=150, deadline=None)
@given(cluster=clusters(), hard_weight=st.integers(1, 100))
def test_feasible_nodes_and_scores_match_the_naive_rules(
    cluster: tuple[list[Item], World, list[Service], PodBuilder], hard_weight: int
) -> None:
    objects, world, services, builder = cluster
    policy = {
        "predicates": [{"name": name} for name in PREDICATES],
        "priorities": [{"name": name, "weight": 1} for name in PRIORITIES],
        "hardPodAffinitySymmetricWeight": hard_weight,
    }
    found = cycle_of(objects, builder, configured(policy=policy))
    pod = found.pod
    feasible = [
        name
        for name in world.nodes
        if classic.fits_resources(world, name, pod) and classic.satisfies_pod_affinity(world, name, pod)
    ]
    assert found.feasible == sorted(feasible)
    if not feasible:
        return
    mine = [service for service in services if service.metadata.namespace == pod.metadata.namespace]
    assert found.table() == {
        "LeastRequestedPriority": {name: classic.least_requested(world, name, pod) for name in feasible},
        "MostRequestedPriority": {name: classic.most_requested(world, name, pod) for name in feasible},
        "SelectorSpreadPriority": classic.selector_spread(world, feasible, pod, mine, ZONE),
        "InterPodAffinityPriority": classic.inter_pod_affinity(world, feasible, pod, hard_weight),
    }


@settings(max_examples=150, deadline=None)
@given(cluster=clusters())
def test_preemption_candidates_and_the_best_match_the_naive_rules(
    cluster: tuple[list[Item], World, list[Service], PodBuilder],
) -> None:
    objects, world, _, builder = cluster
    policy = {"predicates": [{"name": name} for name in PREDICATES], "priorities": []}
    found = cycle_of(objects, builder.priority(2), configured(policy=policy))
    if found.feasible:
        return
    candidates = {}
    for name in world.nodes:
        helpless = "node(s) didn't match pod affinity rules" in found.reasons(name)
        gone = None if helpless else classic.victims(world, name, found.pod)
        if gone is not None:
            candidates[name] = [world.pods[key][0] for key in gone]
    assert found.candidates() == {name: [pod.metadata.name for pod in gone] for name, gone in candidates.items()}
    assert found.best() == sorted(classic.best_of(candidates))
