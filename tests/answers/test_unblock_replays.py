"""Suggestions keep their promise: what `unblock` reports is what the scheduler does once the change is made."""

from __future__ import annotations

import pytest

from bayplan import Cluster, RecordLevel
from bayplan.answers.displaced_pods import as_waiting, is_recreated
from bayplan.answers.unblock import Suggestion
from bayplan.base.random_streams import RandomStream, RandomStreams
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from bayplan.testing.object_builders import make_budget, make_object

CLUSTERS = 60


def random_objects(draw: RandomStream) -> list[KubernetesObject]:
    """Return up to four nodes, up to six pods on them, and one to four pending pods of the workload x."""
    nodes = [random_node(draw, f"n{number}") for number in range(draw.randint(1, 4))]
    names = [node.metadata.name for node in nodes]
    running = [random_running(draw, f"r{number}", draw.choice(names)) for number in range(draw.randint(0, 6))]
    budgets = [make_budget("budget", {"app": draw.choice(["web", "db"])})] if draw.random() < 0.3 else []
    return [*nodes, *running, *budgets, *random_waiting(draw)]


def random_node(draw: RandomStream, name: str) -> Node:
    made = make_node(name).zone(draw.choice("ab"))
    made.capacity(cpu=str(draw.randint(1, 4)), memory=f"{draw.randint(2, 8)}Gi", pods=draw.choice(["2", "3", "10"]))
    if draw.random() < 0.2:
        made.taint("reserved")
    if draw.random() < 0.1:
        made.unschedulable()
    return made.obj()


def random_running(draw: RandomStream, name: str, node: str) -> Pod:
    made = make_pod(name).req(cpu=draw.choice(["500m", "1", "2"]), memory="1Gi").node(node)
    made.label(app=draw.choice(["web", "db"])).priority(draw.choice([0, 0, 5, -5])).started("2026-01-01T00:00:00Z")
    if draw.random() < 0.8:
        made.owner("ReplicaSet", draw.choice(["web", "db"]))
    if draw.random() < 0.15:
        made.pod_anti_affinity({"app": draw.choice(["x", "web"])})
    return made.obj()


def random_waiting(draw: RandomStream) -> list[Pod]:
    count, priority, cpu = draw.randint(1, 4), draw.choice([0, 0, 5]), draw.choice(["500m", "1", "2", "3", "5"])
    rules = [rule for rule in ("gate", "apart", "near", "zones", "hosts") if draw.random() < 0.15]
    near = draw.choice(["x", "web"])
    found = []
    for number in range(count):
        amount = cpu if draw.random() < 0.8 else "1"
        made = pending(number, priority).req(cpu=amount, memory=draw.choice(["1Gi", "1Gi", "3Gi"]))
        for rule in rules:
            if rule == "gate":
                made.gate("example.com/gate")
            elif rule == "apart":
                made.pod_anti_affinity({"app": "x"})
            elif rule == "near":
                made.pod_affinity({"app": near})
            else:
                made.spread({"app": "x"}, "zone" if rule == "zones" else "hostname")
        found.append(made.obj())
    return found


def pending(number: int, priority: int = 5) -> PodBuilder:
    return make_pod(f"x-{number}").label(app="x").priority(priority).owner("ReplicaSet", "x")


def replayed(cluster: Cluster, suggestion: Suggestion) -> tuple[int, list[str]]:
    """Make a suggested change for good. Return how many pods of x are placed, and the evicted pods that are not."""
    waiting = [cluster.scheduler.pods[key] for key in cluster.pending]
    trial = cluster.trial()
    gone = [pod for key in suggestion.deleted if (pod := trial.remove_pod(key)) is not None]
    for key in suggestion.ended:
        trial.remove_pod(key)
    changed = {pod.key: pod for pod in waiting}
    for document in suggestion.objects:
        item = make_object(document)
        if isinstance(item, Pod) and item.key in changed:
            changed[item.key] = item
        else:
            trial.put(item)
    trial.add_all(changed.values())
    trial.settle(preempts=True)
    gone += [trial.victims[each.pod] for each in trial.evictions]
    trial.add_all(as_waiting(pod) for pod in gone if is_recreated(pod))
    trial.settle(preempts=False)
    left = sorted(pod.key for pod in gone if not trial.node_of(pod.key))
    return sum(bool(trial.node_of(key)) for key in changed), left


def check(objects: list[KubernetesObject], text: str) -> None:
    """Replay all suggestions for the pods of x."""
    cluster = Cluster(objects, record_level=RecordLevel.OFF)
    found = cluster.unblock("replicaset/x")
    fit = len(found.pods) - len(found.waiting)
    for each in found.suggestions:
        placed, left = replayed(cluster, each)
        assert (placed - fit, left) == (each.placed, sorted(each.evicted)), f"{text}: {each.text}"


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_suggestions_for_random_clusters_have_the_promised_effect(seed: int) -> None:
    check(random_objects(RandomStreams(seed).stream("unblock")), f"seed {seed}")


def test_a_pod_that_lacks_room_is_not_retried_when_a_pod_of_its_workload_gets_a_node() -> None:
    nodes = [make_node(name).capacity(cpu="2", memory="8Gi").zone(name).obj() for name in ("a", "b")]
    low = [
        make_pod(f"low-{name}-{priority}").req(cpu="1").node(name).priority(priority).obj()
        for name in ("a", "b")
        for priority in (0, 1)
    ]
    check([*nodes, *low, *(pending(number).req(cpu="1").spread({"app": "x"}).obj() for number in range(3))], "spread")
