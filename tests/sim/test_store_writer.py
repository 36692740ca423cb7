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
from tests.cluster.cluster_fixture import ClusterFixture, Json, job, node, pod, template, workload


def fixture_with_deployment() -> ClusterFixture:
    fixture = ClusterFixture(nodes=2)
    fixture.apply(workload("Deployment", "d", replicas=3))
    fixture.settle()
    return fixture


def fixture_with_two_owners() -> ClusterFixture:
    """Return a cluster with a pod that two ReplicaSets, `one` and `two`, own."""
    fixture = ClusterFixture()
    for name in ("one", "two"):
        fixture.apply(workload("ReplicaSet", name, replicas=0))
    owners = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": item.metadata.name, "uid": item.metadata.uid}
        for item in fixture.store.all(ReplicaSet)
    ]
    document = pod("p")
    document["metadata"]["ownerReferences"] = owners
    fixture.apply(document)
    return fixture


def counts(fixture: ClusterFixture) -> tuple[int, int, int]:
    return len(fixture.store.all(Deployment)), len(fixture.store.all(ReplicaSet)), len(fixture.store.pods)


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
    fixture = fixture_with_deployment()
    fixture.delete(Deployment, "default/d", propagation=propagation)
    fixture.settle()
    assert counts(fixture) == want
    fixture.store.check_invariants()


def kinds_deleted(fixture: ClusterFixture) -> list[str]:
    return [event.kind.__name__ for event in fixture.events if event.type == "DELETED"]


@pytest.mark.parametrize(
    ("propagation", "want"),
    [
        pytest.param(Propagation.BACKGROUND, ["Deployment", "ReplicaSet", "Pod"], id="background: owners first"),
        pytest.param(Propagation.FOREGROUND, ["Pod", "ReplicaSet", "Deployment"], id="foreground: dependents first"),
    ],
)
def test_propagation_policy_determines_the_deletion_order(propagation: Propagation, want: list[str]) -> None:
    fixture = fixture_with_deployment()
    fixture.delete(Deployment, "default/d", propagation=propagation)
    fixture.settle()
    assert list(dict.fromkeys(kinds_deleted(fixture))) == want


def test_orphaned_dependents_lose_their_owner_reference() -> None:
    fixture = fixture_with_deployment()
    fixture.delete(Deployment, "default/d", propagation=Propagation.ORPHAN)
    fixture.settle()
    [left] = fixture.store.all(ReplicaSet)
    assert left.metadata.owner_references == ()
    assert all(item.metadata.owner_references for item in fixture.pods())


def test_foreground_deletion_waits_for_terminating_pods() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    fixture.apply(workload("ReplicaSet", "rs", replicas=2))
    fixture.settle()
    fixture.delete(ReplicaSet, "default/rs", propagation=Propagation.FOREGROUND)
    fixture.settle()
    [waiting] = fixture.store.all(ReplicaSet)
    assert waiting.metadata.finalizers == ("foregroundDeletion",)
    assert fixture.phases() == {"Terminating": 2}
    fixture.run_until(30)
    assert (len(fixture.store.all(ReplicaSet)), fixture.names()) == (0, [])


def test_an_object_with_a_finalizer_is_marked_as_terminating_once() -> None:
    fixture = ClusterFixture()
    document = node("n")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    fixture.apply(document)
    fixture.delete(Node, "n")
    held = fixture.store.nodes["n"]
    assert held.metadata.deletion_timestamp == "1970-01-01T00:00:00Z"
    before = len(fixture.events)
    fixture.delete(Node, "n")
    assert len(fixture.events) == before


def test_volume_protection_finalizers_do_not_delay_deletion() -> None:
    fixture = ClusterFixture()
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
    }
    fixture.apply(claim)
    fixture.delete(PersistentVolumeClaim, "default/c")
    assert len(fixture.store.all(PersistentVolumeClaim)) == 0


def test_an_object_with_two_owners_is_deleted_with_the_last_owner() -> None:
    fixture = fixture_with_two_owners()
    fixture.delete(ReplicaSet, "default/one")
    fixture.settle()
    assert [owner.name for owner in fixture.pods()[0].metadata.owner_references] == ["two"]
    fixture.delete(ReplicaSet, "default/two")
    fixture.settle()
    assert fixture.names() == []


def test_an_object_is_deleted_if_both_owners_are_deleted_together() -> None:
    fixture = fixture_with_two_owners()
    for name in ("one", "two"):
        fixture.delete(ReplicaSet, f"default/{name}")
    fixture.settle()
    assert fixture.names() == []


def test_a_pod_with_an_unknown_owner_is_not_deleted() -> None:
    fixture = ClusterFixture(nodes=1)
    document = pod("p", uid="u")
    document["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "x", "controller": True}
    ]
    fixture.apply(document)
    fixture.settle()
    assert fixture.phases() == {"Running": 1}


def test_deleting_a_cron_job_deletes_its_jobs_and_pods() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("CronJob", "tick", schedule="* * * * *", jobTemplate={"spec": {"template": template()}}))
    fixture.run_until(60)
    assert (len(fixture.store.all(Job)), len(fixture.names("tick-"))) == (1, 1)
    fixture.delete(CronJob, "default/tick")
    fixture.settle()
    assert (len(fixture.store.all(Job)), fixture.names()) == (0, [])


def test_pods_of_a_deleted_job_are_deleted_despite_their_finalizer() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(job("calc", parallelism=2))
    fixture.settle()
    assert fixture.phases() == {"Running": 2}
    fixture.delete(Job, "default/calc")
    fixture.settle()
    assert fixture.names() == []


def test_orphaned_pods_of_a_job_lose_their_finalizer() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(job("calc", parallelism=2))
    fixture.settle()
    fixture.delete(Job, "default/calc", propagation=Propagation.ORPHAN)
    fixture.settle()
    assert fixture.phases() == {"Running": 2}
    assert {item.metadata.finalizers for item in fixture.pods()} == {()}
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    assert len(fixture.names()) == 1


def test_deleting_a_missing_object_does_nothing() -> None:
    fixture = ClusterFixture()
    kind: type[KubernetesObject] = type(decode(pod("p")))
    assert fixture.cluster.delete(kind, "default/p", 0) == []
    assert kind is Pod
