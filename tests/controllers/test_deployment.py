"""Deployments: ReplicaSets, rollouts, scaling, history."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.objects.workloads import Deployment, ReplicaSet
from tests.cluster.world import World, workload


def stored(world: World) -> Deployment:
    found = world.store.get(Deployment, "default/web")
    assert found is not None
    return found


def sizes(world: World) -> list[int]:
    """Return the sizes of the ReplicaSets, oldest first."""
    return [item.spec.replicas or 0 for item in world.store.all(ReplicaSet)]


def web(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    return workload("Deployment", "web", image=image, **{"replicas": 4, **spec})


def rolled_out(world: World, **spec: Any) -> None:
    world.apply(web(**spec))
    world.settle()


def test_a_replica_set_has_the_name_labels_annotations_and_owner_of_its_deployment() -> None:
    world = World(nodes=2)
    rolled_out(world)
    [replica_set] = world.store.all(ReplicaSet)
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
    assert (owner.kind, owner.uid, owner.controller) == ("Deployment", stored(world).metadata.uid, True)
    assert all(name.startswith(f"web-{digest}-") for name in world.names())
    assert all(item.metadata.labels == {"app": "x", "pod-template-hash": digest} for item in world.pods())


def test_a_finished_rollout_is_reported_as_available() -> None:
    world = World(nodes=2)
    rolled_out(world)
    status = stored(world).status
    assert (status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas) == (4, 4, 4, 4)
    assert (status.unavailable_replicas, status.observed_generation) == (0, 1)
    assert [(item.type, item.status, item.reason) for item in status.conditions] == [
        ("Available", "True", "MinimumReplicasAvailable")
    ]


def test_a_deployment_without_ready_pods_is_reported_as_unavailable() -> None:
    world = World(binds=False)
    rolled_out(world)
    [condition] = stored(world).status.conditions
    assert (condition.status, condition.reason) == ("False", "MinimumReplicasUnavailable")
    assert condition.message == "Deployment does not have minimum availability."
    assert stored(world).status.unavailable_replicas == 4


@pytest.mark.parametrize(("steps", "want"), [([4, 7], 7), ([4, 1], 1), ([4, 0], 0), ([0, 3], 3)])
def test_scaling_reuses_the_replica_set(steps: list[int], want: int) -> None:
    world = World(nodes=2)
    for replicas in steps:
        rolled_out(world, replicas=replicas)
    assert sizes(world) == [want]
    assert len(world.names()) == want
    assert stored(world).status.available_replicas == want


def lowest_and_highest(world: World, start: int) -> tuple[int, int]:
    """Return the fewest ready pods and the most pods there were since an event."""
    running: dict[str, bool] = {}
    fewest, most = 10**9, 0
    for number, event in enumerate(world.events):
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
    world = World(nodes=3)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    rolled_out(world, replicas=replicas, strategy=strategy)
    start = len(world.events)
    rolled_out(world, replicas=replicas, strategy=strategy, image="app:2")
    assert lowest_and_highest(world, start) == (fewest, most)
    assert sizes(world) == [0, replicas]
    assert {item.spec.containers[0].image for item in world.pods()} == {"app:2"}
    assert stored(world).status.updated_replicas == replicas
    assert stored(world).metadata.annotations["deployment.kubernetes.io/revision"] == "2"


def test_a_rollout_with_pending_pods_stops_at_the_unavailability_limit() -> None:
    world = World(nodes=1)
    rolled_out(world)
    world.binds = False
    rolled_out(world, image="app:2")
    assert sizes(world) == [3, 2]
    assert world.phases() == {"Running": 3, "Pending": 2}


def test_recreate_waits_until_the_old_pods_are_deleted() -> None:
    world = World(nodes=1, termination_scale=1.0)
    recreate = {"type": "Recreate"}
    rolled_out(world, strategy=recreate)
    rolled_out(world, strategy=recreate, image="app:2")
    assert world.phases() == {"Terminating": 4}
    assert sizes(world) == [0]
    world.run_until(30)
    assert world.phases() == {"Running": 4}
    assert sizes(world) == [0, 4]


def test_a_rollback_reuses_the_old_replica_set_with_a_new_revision() -> None:
    world = World(nodes=2)
    for image in ("app:1", "app:2", "app:1"):
        rolled_out(world, image=image)
    assert sizes(world) == [4, 0]
    revisions = [item.metadata.annotations["deployment.kubernetes.io/revision"] for item in world.store.all(ReplicaSet)]
    assert revisions == ["3", "2"]


def test_old_replica_sets_are_deleted_above_the_history_limit() -> None:
    world = World(nodes=2)
    for number in range(6):
        rolled_out(world, image=f"app:{number}", revisionHistoryLimit=2)
    assert sizes(world) == [0, 0, 4]
    left = [item.spec.template.spec.containers[0].image for item in world.store.all(ReplicaSet)]
    assert left == ["app:3", "app:4", "app:5"]


def test_a_paused_deployment_scales_but_does_not_roll_out() -> None:
    world = World(nodes=2)
    rolled_out(world)
    rolled_out(world, paused=True, image="app:2", replicas=6)
    assert sizes(world) == [6]
    rolled_out(world, image="app:2", replicas=6)
    assert sizes(world) == [0, 6]


def test_scaling_during_a_rollout_is_proportional() -> None:
    world = World(nodes=1)
    rolled_out(world, replicas=10)
    world.binds = False
    rolled_out(world, replicas=10, image="app:2")
    assert sizes(world) == [8, 5]
    rolled_out(world, replicas=20, image="app:2")
    assert sizes(world) == [15, 10]


def test_min_ready_seconds_delays_a_rollout() -> None:
    world = World(nodes=1)
    rolled_out(world, minReadySeconds=10)
    world.run_until(10)
    rolled_out(world, minReadySeconds=10, image="app:2")
    assert sizes(world) == [3, 2]
    world.run_until(19)
    assert sizes(world) == [3, 2]
    world.run_until(30)
    assert sizes(world) == [0, 4]


def test_deployment_annotations_are_copied_except_last_applied_configuration() -> None:
    world = World(nodes=1)
    document = web()
    document["metadata"]["annotations"] = {"team": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    world.apply(document)
    world.settle()
    [replica_set] = world.store.all(ReplicaSet)
    assert replica_set.metadata.annotations["team"] == "x"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in replica_set.metadata.annotations


def test_a_replica_set_name_collision_changes_the_hash() -> None:
    world = World(nodes=1)
    rolled_out(world)
    [name] = world.added(ReplicaSet)
    other = World(nodes=1)
    other.apply(workload("ReplicaSet", name, replicas=0))
    rolled_out(other)
    names = other.added(ReplicaSet)
    assert len(set(names)) == 2
    assert stored(other).status.collision_count == 1
    assert len(other.names(names[1])) == 4


def test_a_recorded_cluster_preserves_replica_sets_and_pods() -> None:
    first = World(nodes=2)
    rolled_out(first)
    world = World(nodes=0)
    recorded = [
        *first.store.all(Deployment),
        *first.store.all(ReplicaSet),
        *first.store.nodes.values(),
        *first.store.pods.values(),
    ]
    world.apply(*reversed(recorded))
    world.settle()
    assert world.names() == first.names()
    assert [item.metadata.name for item in world.store.all(ReplicaSet)] == first.added(ReplicaSet)
    assert world.deleted(ReplicaSet) == []
