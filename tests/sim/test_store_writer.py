"""Deletion: finalizers, propagation, and the garbage collector."""

from __future__ import annotations

import pytest

from bayplan.controllers.writer import Propagation
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.workloads import CronJob, Deployment, Job, ReplicaSet
from tests.cluster.world import Json, World, job, node, pod, template, workload


def world_with_deployment() -> World:
    world = World(nodes=2)
    world.apply(workload("Deployment", "d", replicas=3))
    world.settle()
    return world


def counts(world: World) -> tuple[int, int, int]:
    return len(world.store.all(Deployment)), len(world.store.all(ReplicaSet)), len(world.store.pods)


@pytest.mark.parametrize(
    ("propagation", "want"),
    [
        pytest.param(Propagation.BACKGROUND, (0, 0, 0), id="background: everything is deleted"),
        pytest.param(Propagation.FOREGROUND, (0, 0, 0), id="foreground: everything is deleted"),
        pytest.param(Propagation.ORPHAN, (0, 1, 3), id="orphan: what was owned stays"),
    ],
)
def test_what_was_owned_follows(propagation: Propagation, want: tuple[int, int, int]) -> None:
    world = world_with_deployment()
    world.delete(Deployment, "default/d", propagation=propagation)
    world.settle()
    assert counts(world) == want
    world.store.check_invariants()


def kinds_deleted(world: World) -> list[str]:
    return [event.kind.__name__ for event in world.events if event.type == "DELETED"]


@pytest.mark.parametrize(
    ("propagation", "want"),
    [
        pytest.param(Propagation.BACKGROUND, ["Deployment", "ReplicaSet", "Pod"], id="background: owners first"),
        pytest.param(Propagation.FOREGROUND, ["Pod", "ReplicaSet", "Deployment"], id="foreground: dependents first"),
    ],
)
def test_the_order_in_which_they_go(propagation: Propagation, want: list[str]) -> None:
    world = world_with_deployment()
    world.delete(Deployment, "default/d", propagation=propagation)
    world.settle()
    assert list(dict.fromkeys(kinds_deleted(world))) == want


def test_orphans_lose_their_owner() -> None:
    world = world_with_deployment()
    world.delete(Deployment, "default/d", propagation=Propagation.ORPHAN)
    world.settle()
    [left] = world.store.all(ReplicaSet)
    assert left.metadata.owner_references == ()
    assert all(item.metadata.owner_references for item in world.pods())


def test_foreground_deletion_waits_for_pods_that_linger() -> None:
    world = World(nodes=1, termination_scale=1.0)
    world.apply(workload("ReplicaSet", "rs", replicas=2))
    world.settle()
    world.delete(ReplicaSet, "default/rs", propagation=Propagation.FOREGROUND)
    world.settle()
    [waiting] = world.store.all(ReplicaSet)
    assert waiting.metadata.finalizers == ("foregroundDeletion",)
    assert world.phases() == {"Terminating": 2}
    world.run_until(30)
    assert (len(world.store.all(ReplicaSet)), world.names()) == (0, [])


def test_an_object_with_a_finalizer_waits_until_it_is_gone() -> None:
    world = World()
    document = node("n")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    world.apply(document)
    world.delete(Node, "n")
    held = world.store.nodes["n"]
    assert held.metadata.deletion_timestamp == "1970-01-01T00:00:00Z"
    before = len(world.events)
    world.delete(Node, "n")
    assert len(world.events) == before


def test_protection_finalizers_of_volumes_hold_nothing_back() -> None:
    world = World()
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
    }
    world.apply(claim)
    world.delete(PersistentVolumeClaim, "default/c")
    assert len(world.store.all(PersistentVolumeClaim)) == 0


def test_an_object_with_two_owners_goes_with_the_last() -> None:
    world = World()
    for name in ("one", "two"):
        world.apply(workload("ReplicaSet", name, replicas=0))
    owners = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": item.metadata.name, "uid": item.metadata.uid}
        for item in world.store.all(ReplicaSet)
    ]
    document = pod("p")
    document["metadata"]["ownerReferences"] = owners
    world.apply(document)
    world.delete(ReplicaSet, "default/one")
    world.settle()
    assert [owner.name for owner in world.pods()[0].metadata.owner_references] == ["two"]
    world.delete(ReplicaSet, "default/two")
    world.settle()
    assert world.names() == []


def test_two_owners_that_go_together_take_it_along() -> None:
    world = World()
    for name in ("one", "two"):
        world.apply(workload("ReplicaSet", name, replicas=0))
    owners = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": item.metadata.name, "uid": item.metadata.uid}
        for item in world.store.all(ReplicaSet)
    ]
    document = pod("p")
    document["metadata"]["ownerReferences"] = owners
    world.apply(document)
    for name in ("one", "two"):
        world.delete(ReplicaSet, f"default/{name}")
    world.settle()
    assert world.names() == []


def test_a_pod_whose_owner_never_came_is_left_alone() -> None:
    world = World(nodes=1)
    document = pod("p", uid="u")
    document["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "x", "controller": True}
    ]
    world.apply(document)
    world.settle()
    assert world.phases() == {"Running": 1}


def test_deleting_a_cron_job_takes_jobs_and_pods_along() -> None:
    world = World(nodes=1)
    world.apply(workload("CronJob", "tick", schedule="* * * * *", jobTemplate={"spec": {"template": template()}}))
    world.run_until(60)
    assert (len(world.store.all(Job)), len(world.names("tick-"))) == (1, 1)
    world.delete(CronJob, "default/tick")
    world.settle()
    assert (len(world.store.all(Job)), world.names()) == (0, [])


def test_pods_of_a_deleted_job_lose_their_finalizer() -> None:
    world = World(nodes=1)
    world.apply(job("calc", parallelism=2))
    world.settle()
    assert world.phases() == {"Running": 2}
    world.delete(Job, "default/calc")
    world.settle()
    assert world.names() == []


def test_orphaned_pods_of_a_job_are_free_to_go() -> None:
    world = World(nodes=1)
    world.apply(job("calc", parallelism=2))
    world.settle()
    world.delete(Job, "default/calc", propagation=Propagation.ORPHAN)
    world.settle()
    assert world.phases() == {"Running": 2}
    assert {item.metadata.finalizers for item in world.pods()} == {()}
    world.delete(Pod, f"default/{world.names()[0]}")
    assert len(world.names()) == 1


def test_deleting_what_is_not_there_does_nothing() -> None:
    world = World()
    kind: type[KubernetesObject] = type(decode(pod("p")))
    assert world.cluster.delete(kind, "default/p", 0) == []
    assert kind is Pod
