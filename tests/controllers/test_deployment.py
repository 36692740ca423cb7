"""Deployments: ReplicaSets, rollouts, scaling, history."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.objects.workloads import Deployment, ReplicaSet
from tests.cluster.cluster_fixture import ClusterFixture, workload


def stored(fixture: ClusterFixture) -> Deployment:
    found = fixture.store.get(Deployment, "default/web")
    assert found is not None
    return found


def sizes(fixture: ClusterFixture) -> list[int]:
    """Return the sizes of the ReplicaSets, oldest first."""
    return [item.spec.replicas or 0 for item in fixture.store.all(ReplicaSet)]


def web(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    return workload("Deployment", "web", image=image, **{"replicas": 4, **spec})


def rolled_out(fixture: ClusterFixture, **spec: Any) -> None:
    fixture.apply(web(**spec))
    fixture.settle()


def test_a_replica_set_has_the_name_labels_annotations_and_owner_of_its_deployment() -> None:
    fixture = ClusterFixture(nodes=2)
    rolled_out(fixture)
    [replica_set] = fixture.store.all(ReplicaSet)
    digest = replica_set.metadata.labels["pod-template-hash"]
    assert replica_set.metadata.name == f"web-{digest}"
    assert set(digest) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert replica_set.metadata.labels == replica_set.spec.template.metadata.labels
    assert replica_set.spec.selector is not None
    assert replica_set.spec.selector.match_labels == {"app": "x", "pod-template-hash": digest}
    assert replica_set.metadata.annotations == {
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "5",
    }
    [owner] = replica_set.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("Deployment", stored(fixture).metadata.uid, True)
    assert all(name.startswith(f"web-{digest}-") for name in fixture.names())
    assert all(item.metadata.labels == {"app": "x", "pod-template-hash": digest} for item in fixture.pods())


def test_a_finished_rollout_is_reported_as_available() -> None:
    fixture = ClusterFixture(nodes=2)
    rolled_out(fixture)
    status = stored(fixture).status
    assert (status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas) == (4, 4, 4, 4)
    assert (status.unavailable_replicas, status.observed_generation) == (0, 1)
    assert [(item.type, item.status, item.reason) for item in status.conditions] == [
        ("Available", "True", "MinimumReplicasAvailable")
    ]


def test_a_deployment_without_ready_pods_is_reported_as_unavailable() -> None:
    fixture = ClusterFixture(binds=False)
    rolled_out(fixture)
    [condition] = stored(fixture).status.conditions
    assert (condition.status, condition.reason) == ("False", "MinimumReplicasUnavailable")
    assert condition.message == "Deployment does not have minimum availability."
    assert stored(fixture).status.unavailable_replicas == 4


@pytest.mark.parametrize(("steps", "want"), [([4, 7], 7), ([4, 1], 1), ([4, 0], 0), ([0, 3], 3)])
def test_scaling_reuses_the_replica_set(steps: list[int], want: int) -> None:
    fixture = ClusterFixture(nodes=2)
    for replicas in steps:
        rolled_out(fixture, replicas=replicas)
    assert sizes(fixture) == [want]
    assert len(fixture.names()) == want
    assert stored(fixture).status.available_replicas == want


def lowest_and_highest(fixture: ClusterFixture, start: int) -> tuple[int, int]:
    """Return the minimum number of running pods and the maximum number of pods since an event."""
    running: dict[str, bool] = {}
    fewest, most = 10**9, 0
    for number, event in enumerate(fixture.events):
        if event.kind.__name__ != "Pod":
            continue
        item: Any = event.new
        if item is None:
            running.pop(event.object.key, None)
        else:
            running[item.key] = item.status.phase == "Running"
        if number >= start:
            fewest, most = min(fewest, sum(running.values())), max(most, len(running))
    return fewest, most


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "fewest", "most"),
    [
        pytest.param(8, "25%", "25%", 6, 10, id="a quarter each"),
        pytest.param(4, 0, 1, 3, 4, id="without surge, one at a time"),
        pytest.param(4, 1, 0, 4, 5, id="without a gap, one at a time"),
        pytest.param(4, "100%", 0, 4, 8, id="all new ones first"),
        pytest.param(4, 0, "100%", 0, 4, id="all old ones first"),
        pytest.param(1, "25%", "25%", 1, 2, id="a single pod"),
    ],
)
def test_a_rolling_update_obeys_max_surge_and_max_unavailable(
    replicas: int, surge: int | str, unavailable: int | str, fewest: int, most: int
) -> None:
    fixture = ClusterFixture(nodes=3)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    rolled_out(fixture, replicas=replicas, strategy=strategy)
    start = len(fixture.events)
    rolled_out(fixture, replicas=replicas, strategy=strategy, image="app:2")
    assert lowest_and_highest(fixture, start) == (fewest, most)
    assert sizes(fixture) == [0, replicas]
    assert {item.spec.containers[0].image for item in fixture.pods()} == {"app:2"}
    assert stored(fixture).status.updated_replicas == replicas
    assert stored(fixture).metadata.annotations["deployment.kubernetes.io/revision"] == "2"


def test_a_rollout_with_pending_pods_stops_at_the_unavailability_limit() -> None:
    fixture = ClusterFixture(nodes=1)
    rolled_out(fixture)
    fixture.binds = False
    rolled_out(fixture, image="app:2")
    assert sizes(fixture) == [3, 2]
    assert fixture.phases() == {"Running": 3, "Pending": 2}


def test_recreate_waits_until_the_old_pods_are_deleted() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    recreate = {"type": "Recreate"}
    rolled_out(fixture, strategy=recreate)
    rolled_out(fixture, strategy=recreate, image="app:2")
    assert fixture.phases() == {"Terminating": 4}
    assert sizes(fixture) == [0]
    fixture.run_until(30)
    assert fixture.phases() == {"Running": 4}
    assert sizes(fixture) == [0, 4]


def test_a_rollback_reuses_the_old_replica_set_with_a_new_revision() -> None:
    fixture = ClusterFixture(nodes=2)
    for image in ("app:1", "app:2", "app:1"):
        rolled_out(fixture, image=image)
    assert sizes(fixture) == [4, 0]
    revisions = [
        item.metadata.annotations["deployment.kubernetes.io/revision"] for item in fixture.store.all(ReplicaSet)
    ]
    assert revisions == ["3", "2"]


def test_old_replica_sets_are_deleted_above_the_history_limit() -> None:
    fixture = ClusterFixture(nodes=2)
    for number in range(6):
        rolled_out(fixture, image=f"app:{number}", revisionHistoryLimit=2)
    assert sizes(fixture) == [0, 0, 4]
    left = [item.spec.template.spec.containers[0].image for item in fixture.store.all(ReplicaSet)]
    assert left == ["app:3", "app:4", "app:5"]


def test_a_paused_deployment_scales_but_does_not_roll_out() -> None:
    fixture = ClusterFixture(nodes=2)
    rolled_out(fixture)
    rolled_out(fixture, paused=True, image="app:2", replicas=6)
    assert sizes(fixture) == [6]
    rolled_out(fixture, image="app:2", replicas=6)
    assert sizes(fixture) == [0, 6]


def test_scaling_during_a_rollout_is_proportional() -> None:
    fixture = ClusterFixture(nodes=1)
    rolled_out(fixture, replicas=10)
    fixture.binds = False
    rolled_out(fixture, replicas=10, image="app:2")
    assert sizes(fixture) == [8, 5]
    rolled_out(fixture, replicas=20, image="app:2")
    assert sizes(fixture) == [15, 10]


def test_min_ready_seconds_delays_a_rollout() -> None:
    fixture = ClusterFixture(nodes=1)
    rolled_out(fixture, minReadySeconds=10)
    fixture.run_until(10)
    rolled_out(fixture, minReadySeconds=10, image="app:2")
    assert sizes(fixture) == [3, 2]
    fixture.run_until(19)
    assert sizes(fixture) == [3, 2]
    fixture.run_until(30)
    assert sizes(fixture) == [0, 4]


def test_deployment_annotations_are_copied_except_last_applied_configuration() -> None:
    fixture = ClusterFixture(nodes=1)
    document = web()
    document["metadata"]["annotations"] = {"team": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    fixture.apply(document)
    fixture.settle()
    [replica_set] = fixture.store.all(ReplicaSet)
    assert replica_set.metadata.annotations["team"] == "x"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in replica_set.metadata.annotations


def test_a_replica_set_name_collision_changes_the_hash() -> None:
    fixture = ClusterFixture(nodes=1)
    rolled_out(fixture)
    [name] = fixture.added(ReplicaSet)
    other = ClusterFixture(nodes=1)
    other.apply(workload("ReplicaSet", name, replicas=0))
    rolled_out(other)
    names = other.added(ReplicaSet)
    assert len(set(names)) == 2
    assert stored(other).status.collision_count == 1
    assert len(other.names(names[1])) == 4


def test_a_recorded_cluster_preserves_replica_sets_and_pods() -> None:
    first = ClusterFixture(nodes=2)
    rolled_out(first)
    fixture = ClusterFixture(nodes=0)
    recorded = [
        *first.store.all(Deployment),
        *first.store.all(ReplicaSet),
        *first.store.nodes.values(),
        *first.store.pods.values(),
    ]
    fixture.apply(*reversed(recorded))
    fixture.settle()
    assert fixture.names() == first.names()
    assert [item.metadata.name for item in fixture.store.all(ReplicaSet)] == first.added(ReplicaSet)
    assert fixture.deleted(ReplicaSet) == []
