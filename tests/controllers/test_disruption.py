"""PodDisruptionBudgets: the number of pods that may be evicted now."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from tests.cluster.cluster_fixture import ClusterFixture, job, pod, template, workload


def budget(**spec: Any) -> dict[str, Any]:
    status = spec.pop("status", {})
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
        "status": status,
    }


def owned(owner: str) -> dict[str, Any]:
    """Return a pod with an owner that does not exist, given as apiVersion and kind."""
    api_version, kind = owner.split()
    reference = {"apiVersion": api_version, "kind": kind, "name": "gone", "uid": "u", "controller": True}
    document = pod("p", labels={"app": "x"})
    return {**document, "metadata": {**document["metadata"], "ownerReferences": [reference]}}


def stored(fixture: ClusterFixture) -> PodDisruptionBudget:
    found = fixture.store.get(PodDisruptionBudget, "default/b")
    assert found is not None
    return found


def numbers(fixture: ClusterFixture) -> tuple[int, int, int, int]:
    """Return expected, desired healthy, healthy and allowed."""
    status = stored(fixture).status
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
    fixture = ClusterFixture(nodes=2)
    fixture.apply(workload(kind, "w", replicas=4))
    fixture.settle()
    fixture.apply(budget(**spec))
    fixture.settle()
    assert numbers(fixture) == want
    [condition] = stored(fixture).status.conditions
    assert (condition.type, condition.status == "True") == ("DisruptionAllowed", want[3] > 0)
    assert condition.reason == ("SufficientPods" if want[3] else "InsufficientPods")


def test_the_status_is_updated_when_pods_change() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    fixture.apply(budget(minAvailable=2), workload("ReplicaSet", "w", replicas=3))
    fixture.settle()
    seen = [numbers(fixture)]
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    fixture.binds = False
    fixture.settle()
    seen.append(numbers(fixture))
    fixture.run_until(30)
    seen.append(numbers(fixture))
    fixture.binds = True
    fixture.settle()
    seen.append(numbers(fixture))
    assert seen == [(3, 2, 3, 1), (4, 2, 2, 0), (3, 2, 2, 0), (3, 2, 3, 1)]


def test_a_healthy_pod_that_leaves_the_selector_no_longer_counts() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(budget(minAvailable=1), *(pod(f"p{number}", labels={"app": "x"}) for number in range(3)))
    fixture.settle()
    assert numbers(fixture) == (3, 1, 3, 2)
    leaving = fixture.store.pods["default/p0"]
    labels = replace(leaving, metadata=replace(leaving.metadata, labels={"app": "y"}))
    fixture.apply(labels)
    fixture.settle()
    assert numbers(fixture) == (2, 1, 2, 1)


def test_the_status_is_updated_when_scale_or_budget_changes() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("Deployment", "w", replicas=2), budget(maxUnavailable="50%"))
    fixture.settle()
    assert numbers(fixture) == (2, 1, 2, 1)
    fixture.apply(workload("Deployment", "w", replicas=8))
    fixture.settle()
    assert numbers(fixture) == (8, 4, 8, 4)
    fixture.apply(budget(maxUnavailable=0))
    fixture.settle()
    assert numbers(fixture) == (8, 8, 8, 0)
    assert stored(fixture).status.observed_generation == stored(fixture).metadata.generation == 2
    fixture.delete(PodDisruptionBudget, "default/b")
    fixture.delete(Node, "node-0")
    fixture.settle()
    assert list(fixture.store.all(PodDisruptionBudget)) == []


def test_only_pods_of_the_namespace_count_and_max_unavailable_requires_an_owner() -> None:
    fixture = ClusterFixture(nodes=1)
    elsewhere = pod("elsewhere", labels={"app": "x"})
    elsewhere["metadata"]["namespace"] = "other"
    fixture.apply(elsewhere, pod("plain", labels={"app": "x"}), budget(minAvailable=0))
    fixture.settle()
    assert numbers(fixture) == (1, 0, 1, 1)
    fixture.apply(budget(maxUnavailable=1))
    fixture.settle()
    assert numbers(fixture) == (0, 0, 1, 0)


def test_adopted_and_released_pods_change_the_expected_number() -> None:
    fixture = ClusterFixture(nodes=1)
    unselected = {**template(), "metadata": {"labels": {"app": "y"}}}
    fixture.apply(
        workload("StatefulSet", "w", replicas=2), workload("StatefulSet", "v", replicas=5, template=unselected)
    )
    fixture.apply(pod("p", labels={"app": "x"}), budget(maxUnavailable=1))
    fixture.settle()
    seen = [numbers(fixture)]
    for owner in ("v-", "w-", None):
        plain = fixture.store.pods["default/p"]
        owners = fixture.pods(owner)[0].metadata.owner_references if owner is not None else ()
        fixture.cluster.put(replace(plain, metadata=replace(plain.metadata, owner_references=owners)), 0)
        fixture.settle()
        seen.append(numbers(fixture))
    assert [expected for expected, *_ in seen] == [2, 7, 2, 2]


def test_a_budget_for_pods_without_a_scale_subresource_allows_no_disruptions() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(job("calc"), budget(maxUnavailable=1))
    fixture.settle()
    [condition] = stored(fixture).status.conditions
    assert (condition.status, condition.reason) == ("False", "SyncFailed")
    assert condition.message == "jobs.batch does not implement the scale subresource"
    assert stored(fixture).status.disruptions_allowed == 0


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        pytest.param("apps/v1 DaemonSet", "daemonsets.apps does not implement the scale subresource", id="DaemonSet"),
        pytest.param("v1 Node", "nodes does not implement the scale subresource", id="a static pod"),
        pytest.param("apps/v1 ReplicaSet", 'found no controllers for pod "p"', id="a missing owner"),
        pytest.param("example.com/v1 Job", 'found no controllers for pod "p"', id="an unknown kind"),
    ],
)
@pytest.mark.parametrize("is_computed", [False, True])
def test_a_budget_whose_pods_cannot_be_counted_allows_no_disruptions(
    kind: str, message: str, is_computed: bool
) -> None:
    fixture = ClusterFixture(nodes=1)
    if is_computed:
        fixture.apply(workload("ReplicaSet", "w", replicas=3), budget(maxUnavailable=1))
        fixture.settle()
        assert numbers(fixture) == (3, 2, 3, 1)
    fixture.apply(owned(kind), budget(maxUnavailable=1))
    fixture.settle()
    [condition] = stored(fixture).status.conditions
    assert (condition.status, condition.reason, condition.message) == ("False", "SyncFailed", message)
    assert numbers(fixture) == ((3, 2, 3, 0) if is_computed else (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        pytest.param("apps/v1 ReplicaSet", 3, id="a missing owner"),
        pytest.param("example.com/v1 Job", 3, id="an unknown kind"),
        pytest.param("batch/v1 Job", 0, id="a kind without a scale subresource"),
    ],
)
def test_a_recorded_budget_preserves_its_status_if_pod_owners_are_missing(kind: str, want: int) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(owned(kind), budget(maxUnavailable=1, status={"disruptionsAllowed": 3, "expectedPods": 4}))
    fixture.settle()
    assert stored(fixture).status.disruptions_allowed == want


def test_an_invalid_budget_is_reported() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("ReplicaSet", "w", replicas=1), budget(maxUnavailable="half"))
    fixture.settle()
    assert list(fixture.cluster.failures()) == ["PodDisruptionBudget default/b"]


def test_pods_wake_the_controller_only_if_a_budget_exists() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod("a"))
    assert fixture.cluster.next_wakeup() is None
    fixture.apply(budget(minAvailable=1))
    fixture.settle()
    fixture.apply(pod("b", labels={"app": "x"}))
    assert fixture.cluster.next_wakeup() == 0
