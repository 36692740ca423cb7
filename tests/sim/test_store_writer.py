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
def test_propagation_policy_determines_which_dependents_are_deleted(
    propagation: Propagation, want: tuple[int, int, int]
) -> None:
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
def test_propagation_policy_determines_the_deletion_order(propagation: Propagation, want: list[str]) -> None:
    world = world_with_deployment()
    world.delete(Deployment, "default/d", propagation=propagation)
    world.settle()
    assert list(dict.fromkeys(kinds_deleted(world))) == want


def test_orphaned_dependents_lose_their_owner_reference() -> None:
    world = world_with_deployment()
    world.delete(Deployment, "default/d", propagation=Propagation.ORPHAN)
    world.settle()
    [left] = world.store.all(ReplicaSet)
    assert left.metadata.owner_references == ()
    assert all(item.metadata.owner_references for item in world.pods())


def test_foreground_deletion_waits_for_terminating_pods() -> None:
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


def test_an_object_with_a_finalizer_is_marked_as_terminating_once() -> None:
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


def test_volume_protection_finalizers_do_not_delay_deletion() -> None:
    world = World()
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
    }
    world.apply(claim)
    world.delete(PersistentVolumeClaim, "default/c")
    assert len(world.store.all(PersistentVolumeClaim)) == 0


def test_an_object_with_two_owners_is_deleted_with_the_last_owner() -> None:
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


def test_an_object_is_deleted_if_both_owners_are_deleted_together() -> None:
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


def test_a_pod_with_an_unknown_owner_is_not_deleted() -> None:
    world = World(nodes=1)
    document = pod("p", uid="u")
    document["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "x", "controller": True}
    ]
    world.apply(document)
    world.settle()
    assert world.phases() == {"Running": 1}


def test_deleting_a_cron_job_deletes_its_jobs_and_pods() -> None:
    world = World(nodes=1)
    world.apply(workload("CronJob", "tick", schedule="* * * * *", jobTemplate={"spec": {"template": template()}}))
    world.run_until(60)
    assert (len(world.store.all(Job)), len(world.names("tick-"))) == (1, 1)
    world.delete(CronJob, "default/tick")
    world.settle()
    assert (len(world.store.all(Job)), world.names()) == (0, [])


def test_pods_of_a_deleted_job_are_deleted_despite_their_finalizer() -> None:
    world = World(nodes=1)
    world.apply(job("calc", parallelism=2))
    world.settle()
    assert world.phases() == {"Running": 2}
    world.delete(Job, "default/calc")
    world.settle()
    assert world.names() == []


def test_orphaned_pods_of_a_job_lose_their_finalizer() -> None:
    world = World(nodes=1)
    world.apply(job("calc", parallelism=2))
    world.settle()
    world.delete(Job, "default/calc", propagation=Propagation.ORPHAN)
    world.settle()
    assert world.phases() == {"Running": 2}
    assert {item.metadata.finalizers for item in world.pods()} == {()}
    world.delete(Pod, f"default/{world.names()[0]}")
    assert len(world.names()) == 1


def test_deleting_a_missing_object_does_nothing() -> None:
    world = World()
    kind: type[KubernetesObject] = type(decode(pod("p")))
    assert world.cluster.delete(kind, "default/p", 0) == []
    assert kind is Pod
