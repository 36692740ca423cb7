"""PodDisruptionBudgets: the number of pods that may be evicted now."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from tests.cluster.world import World, job, pod, workload


def budget(**spec: Any) -> dict[str, Any]:
    status = spec.pop("status", {})
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
        "status": status,
    }


def stored(world: World) -> PodDisruptionBudget:
    found = world.store.get(PodDisruptionBudget, "default/b")
    assert found is not None
    return found


def numbers(world: World) -> tuple[int, int, int, int]:
    """Return expected, desired healthy, healthy and allowed."""
    status = stored(world).status
    return status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"minAvailable": 2}, (4, 2, 4, 2), id="minAvailable as a number"),
        pytest.param({"minAvailable": 9}, (4, 9, 4, 0), id="minAvailable above the number of pods"),
        pytest.param({"minAvailable": "60%"}, (4, 3, 4, 1), id="minAvailable as a percentage, rounded up"),
        pytest.param({"maxUnavailable": 1}, (4, 3, 4, 1), id="maxUnavailable as a number"),
        pytest.param({"maxUnavailable": "30%"}, (4, 2, 4, 2), id="maxUnavailable as a percentage, rounded up"),
        pytest.param({"maxUnavailable": 9}, (4, 0, 4, 4), id="maxUnavailable above the number of pods"),
        pytest.param({}, (0, 0, 4, 0), id="a budget without a limit allows nothing"),
        pytest.param(
            {"minAvailable": 1, "selector": {"matchLabels": {"app": "y"}}}, (0, 1, 0, 0), id="a budget of no pods"
        ),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"])
def test_disruptions_allowed_follow_min_available_and_max_unavailable(
    kind: str, spec: dict[str, Any], want: tuple[int, int, int, int]
) -> None:
    world = World(nodes=2)
    world.apply(workload(kind, "w", replicas=4))
    world.settle()
    world.apply(budget(**spec))
    world.settle()
    assert numbers(world) == want
    [condition] = stored(world).status.conditions
    assert (condition.type, condition.status == "True") == ("DisruptionAllowed", want[3] > 0)
    assert condition.reason == ("SufficientPods" if want[3] else "InsufficientPods")


def test_the_status_is_updated_when_pods_change() -> None:
    world = World(nodes=1, termination_scale=1.0)
    world.apply(budget(minAvailable=2), workload("ReplicaSet", "w", replicas=3))
    world.settle()
    seen = [numbers(world)]
    world.delete(Pod, f"default/{world.names()[0]}")
    world.binds = False
    world.settle()
    seen.append(numbers(world))
    world.run_until(30)
    seen.append(numbers(world))
    world.binds = True
    world.settle()
    seen.append(numbers(world))
    assert seen == [(3, 2, 3, 1), (4, 2, 2, 0), (3, 2, 2, 0), (3, 2, 3, 1)]


def test_a_healthy_pod_that_leaves_the_selector_no_longer_counts() -> None:
    world = World(nodes=1)
    world.apply(budget(minAvailable=1), *(pod(f"p{number}", labels={"app": "x"}) for number in range(3)))
    world.settle()
    assert numbers(world) == (3, 1, 3, 2)
    leaving = world.store.pods["default/p0"]
    labels = replace(leaving, metadata=replace(leaving.metadata, labels={"app": "y"}))
    world.apply(labels)
    world.settle()
    assert numbers(world) == (2, 1, 2, 1)


def test_the_status_is_updated_when_scale_or_budget_changes() -> None:
    world = World(nodes=1)
    world.apply(workload("Deployment", "w", replicas=2), budget(maxUnavailable="50%"))
    world.settle()
    assert numbers(world) == (2, 1, 2, 1)
    world.apply(workload("Deployment", "w", replicas=8))
    world.settle()
    assert numbers(world) == (8, 4, 8, 4)
    world.apply(budget(maxUnavailable=0))
    world.settle()
    assert numbers(world) == (8, 8, 8, 0)
    assert stored(world).status.observed_generation == stored(world).metadata.generation == 2
    world.delete(PodDisruptionBudget, "default/b")
    world.delete(Node, "node-0")
    world.settle()
    assert list(world.store.all(PodDisruptionBudget)) == []


def test_only_pods_of_the_namespace_count_and_max_unavailable_requires_an_owner() -> None:
    world = World(nodes=1)
    elsewhere = pod("elsewhere", labels={"app": "x"})
    elsewhere["metadata"]["namespace"] = "other"
    world.apply(elsewhere, pod("plain", labels={"app": "x"}), budget(minAvailable=0))
    world.settle()
    assert numbers(world) == (1, 0, 1, 1)
    world.apply(budget(maxUnavailable=1))
    world.settle()
    assert numbers(world) == (0, 0, 1, 0)


def test_a_budget_for_pods_without_a_scale_subresource_allows_no_disruptions() -> None:
    world = World(nodes=1)
    world.apply(job("calc"), budget(maxUnavailable=1))
    world.settle()
    [condition] = stored(world).status.conditions
    assert (condition.status, condition.reason) == ("False", "SyncFailed")
    assert condition.message == "jobs.batch does not implement the scale subresource"
    assert stored(world).status.disruptions_allowed == 0


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({}, 0, id="without a status: nothing is allowed"),
        pytest.param({"disruptionsAllowed": 3, "expectedPods": 4}, 3, id="with one: it is kept"),
    ],
)
def test_a_recorded_budget_preserves_its_status_if_pod_owners_are_missing(status: dict[str, int], want: int) -> None:
    world = World(nodes=1)
    orphan = pod("p", labels={"app": "x"})
    orphan["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "u", "controller": True}
    ]
    world.apply(orphan, budget(maxUnavailable=1, status=status))
    world.settle()
    assert stored(world).status.disruptions_allowed == want


def test_an_invalid_budget_is_reported() -> None:
    world = World(nodes=1)
    world.apply(workload("ReplicaSet", "w", replicas=1), budget(maxUnavailable="half"))
    world.settle()
    assert list(world.cluster.failures()) == ["PodDisruptionBudget default/b"]


def test_pods_wake_the_controller_only_if_a_budget_exists() -> None:
    world = World(nodes=1, binds=False)
    world.apply(pod("a"))
    assert world.cluster.next_wakeup() is None
    world.apply(budget(minAvailable=1))
    world.settle()
    world.apply(pod("b", labels={"app": "x"}))
    assert world.cluster.next_wakeup() == 0
