"""Objects whose owner changes: both owners are reconciled."""

from __future__ import annotations

import pytest

from bayplan.controllers.job_indexes import completion_index
from bayplan.objects.workloads import ReplicaSet
from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, workload
from tests.apiserver.client import Document

PODS = f"{API}/namespaces/default/pods"
RELEASE: Document = {"metadata": {"labels": {"app": "debug"}, "ownerReferences": None}}
OTHER = {"app": "y"}
SETS = {
    "ReplicaSet": ("replicasets", workload("ReplicaSet", "web", {"replicas": 2}), "status.replicas"),
    "DaemonSet": ("daemonsets", workload("DaemonSet", "web"), "status.numberReady"),
}


def owned(fixture: BridgeFixture) -> list[str]:
    """Return the names of the pods that have an owner."""
    return [each.metadata.name for each in fixture.bridge.store.pods.values() if each.metadata.owner_references]


@pytest.mark.parametrize("kind", ["ReplicaSet", "DaemonSet"])
def test_a_pod_that_loses_its_owner_is_replaced(kind: str) -> None:
    fixture = BridgeFixture(nodes=2)
    table, document, count = SETS[kind]
    fixture.post(f"{APPS}/{table}", document)
    fixture.run()
    first = fixture.names("pods")[0]
    fixture.patch(f"{PODS}/{first}", RELEASE)
    fixture.run()
    assert first in fixture.names("pods")
    assert (first in owned(fixture), len(owned(fixture))) == (False, 2)
    assert fixture.get(f"{APPS}/{table}/web").at(count) == 2


def test_a_set_no_longer_counts_a_pod_that_lost_its_owner() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", {"replicas": 2}))
    fixture.run()
    fixture.patch(f"{PODS}/db-1", RELEASE)
    fixture.run()
    status = fixture.get(f"{APPS}/statefulsets/db")
    assert [status.at(f"status.{field}") for field in ("replicas", "updatedReplicas")] == [1, 1]
    fixture.delete(f"{PODS}/db-1")
    fixture.run(60)
    status = fixture.get(f"{APPS}/statefulsets/db")
    assert [status.at(f"status.{field}") for field in ("replicas", "updatedReplicas")] == [2, 2]


def test_a_job_replaces_a_pod_whose_labels_change_and_removes_its_finalizer() -> None:
    fixture = BridgeFixture(nodes=2)
    spec: Document = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
    fixture.post(f"{BATCH}/jobs", job("calc", "100s", spec))
    fixture.run(10)
    first = fixture.names("pods")[0]
    wanted = completion_index(fixture.bridge.store.pods[f"default/{first}"])
    fixture.patch(f"{PODS}/{first}", {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": None}}})
    fixture.run(10)
    assert fixture.get(f"{PODS}/{first}").at("metadata.finalizers") is None
    [replacement] = [name for name in owned(fixture) if name.startswith(f"calc-{wanted}-")]
    assert replacement != first
    fixture.run(200)
    assert fixture.get(f"{BATCH}/jobs/calc").at("status.completedIndexes") == "0,1"
    fixture.delete(f"{PODS}/{first}")
    fixture.run(60)
    assert first not in fixture.names("pods")


def test_a_pod_that_moves_to_another_set_is_counted_there() -> None:
    fixture = BridgeFixture(nodes=1)
    for name in ("one", "two"):
        labels = {"app": name}
        spec: Document = {"selector": {"matchLabels": labels}, "updateStrategy": {"type": "OnDelete"}}
        fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", name, spec, labels=labels))
    fixture.run()
    first, second = fixture.names("pods")
    owners = fixture.get(f"{PODS}/{second}").at("metadata.ownerReferences")
    fixture.patch(f"{PODS}/{first}", {"metadata": {"ownerReferences": owners}})
    fixture.run(60)
    # The second set has a surplus pod and deletes one of the two; the first set replaces its pod.
    assert len(owned(fixture)) == 2
    for name in ("one", "two"):
        assert fixture.get(f"{APPS}/daemonsets/{name}").at("status.numberReady") == 1


def test_a_pod_that_still_matches_is_adopted_again_without_a_replacement() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    fixture.run()
    pods = fixture.names("pods")
    fixture.patch(f"{PODS}/{pods[0]}", {"metadata": {"ownerReferences": None}})
    fixture.run()
    assert sorted(owned(fixture)) == fixture.names("pods") == pods
    assert [text for text in fixture.reported("ReplicaSet") if text.startswith("SuccessfulDelete")] == []


def owners_of_sets(fixture: BridgeFixture) -> dict[str, str]:
    """Return the name of the owner of each ReplicaSet, or an empty string."""
    sets = fixture.bridge.store.all(ReplicaSet)
    owners = ((each, each.metadata.controller()) for each in sets)
    return {each.metadata.name: owner.name if owner is not None else "" for each, owner in owners}


def test_a_deployment_adopts_a_replica_set_that_appears_later_and_scales_it_down() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    fixture.run()
    late = workload("ReplicaSet", "late", {"replicas": 3}, image="app:0")
    fixture.post(f"{APPS}/replicasets", {**late, "metadata": {"name": "late", "labels": {"app": "x"}}})
    fixture.post(
        f"{APPS}/replicasets",
        workload("ReplicaSet", "other", {"replicas": 1, "selector": {"matchLabels": OTHER}}, labels=OTHER),
    )
    fixture.run(60)
    owners = owners_of_sets(fixture)
    assert (owners["late"], owners["other"]) == ("web", "")
    assert fixture.get(f"{APPS}/replicasets/late").at("spec.replicas") == 0
    assert len(fixture.names("pods")) == 3


def test_a_deployment_adopts_its_replica_set_again_and_creates_no_other() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    fixture.run()
    [name], pods = owners_of_sets(fixture), fixture.names("pods")
    fixture.patch(f"{APPS}/replicasets/{name}", {"metadata": {"ownerReferences": None}})
    fixture.run()
    assert (owners_of_sets(fixture), fixture.names("pods")) == ({name: "web"}, pods)


def test_a_deployment_releases_a_relabelled_replica_set_and_adopts_it_when_relabelled_back() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    fixture.run()
    [name] = owners_of_sets(fixture)
    fixture.patch(f"{APPS}/replicasets/{name}", {"metadata": {"labels": {"app": "debug"}}})
    fixture.run()
    assert sorted(owners_of_sets(fixture).values()) == ["", "web"]
    assert owners_of_sets(fixture)[name] == ""
    assert len(fixture.names("pods")) == 4
    fixture.patch(f"{APPS}/replicasets/{name}", {"metadata": {"labels": {"app": "x"}}})
    fixture.run(60)
    assert list(owners_of_sets(fixture).values()) == ["web", "web"]
    assert len(fixture.names("pods")) == 2


def references(*uids: str) -> list[Document]:
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid} for uid in uids]


def config_map(name: str, *uids: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": references(*uids)}}


def test_a_dependent_that_is_created_after_the_deletion_of_its_owner_is_deleted() -> None:
    """A controller may create dependents again before its informers report that the owner is deleted."""
    fixture = BridgeFixture(nodes=1)
    maps = f"{API}/namespaces/default/configmaps"
    deleted, living = (str(fixture.post(maps, config_map(name)).at("metadata.uid")) for name in ("owner", "living"))
    fixture.post(maps, config_map("early", deleted))
    fixture.delete(f"{maps}/owner")
    fixture.run()
    assert "early" not in fixture.names("configmaps")
    fixture.post(maps, config_map("late", deleted))
    fixture.post(maps, config_map("shared", deleted, living))
    fixture.post(maps, config_map("imported", "an-owner-that-never-existed"))
    fixture.run()
    assert {"late", "shared", "imported"} & set(fixture.names("configmaps")) == {"shared", "imported"}
    assert fixture.get(f"{maps}/shared").at("metadata.ownerReferences") == references(living)
