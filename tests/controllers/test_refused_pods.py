"""Pods that admission refuses: controllers create them later, and write their status in the meantime."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.objects.node import Node
from bayplan.objects.policy import ResourceQuota
from bayplan.objects.workloads import (
    DaemonSet,
    DaemonSetStatus,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from tests.apiserver.bridge.bridge_fixture import API, APPS, BridgeFixture
from tests.apiserver.bridge.bridge_fixture import workload as document
from tests.cluster.cluster_fixture import ClusterFixture, job, node, template, workload

PRIORITY_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


def quota(pods: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": str(pods)}},
    }


def daemon_status(fixture: ClusterFixture) -> DaemonSetStatus:
    found = fixture.store.get(DaemonSet, "default/agent")
    assert found is not None
    return found.status


def test_a_daemon_set_creates_refused_pods_once_the_quota_allows_them() -> None:
    fixture = ClusterFixture(nodes=5)
    fixture.apply(quota(1), workload("DaemonSet", "agent"))
    fixture.settle()
    seen = [(len(fixture.pods()), daemon_status(fixture).desired_number_scheduled)]
    fixture.apply(quota(3))
    fixture.settle()
    seen.append((len(fixture.pods()), daemon_status(fixture).desired_number_scheduled))
    fixture.delete(Node, "node-4")
    fixture.settle()
    seen.append((len(fixture.pods()), daemon_status(fixture).desired_number_scheduled))
    fixture.delete(ResourceQuota, "default/q")
    fixture.settle()
    seen.append((len(fixture.pods()), daemon_status(fixture).desired_number_scheduled))
    assert seen == [(1, 5), (3, 5), (3, 4), (4, 4)]
    assert daemon_status(fixture).number_available == 4
    assert fixture.cluster.failures() == {}


def test_a_daemon_set_deletes_pods_and_updates_counts_while_others_are_refused() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(quota(2), workload("DaemonSet", "agent", minReadySeconds=10))
    fixture.apply(*(node(f"more-{number}") for number in range(4)))
    fixture.settle()
    assert len(fixture.pods()) == 2
    assert list(fixture.cluster.failures()) == ["DaemonSet default/agent"]
    fixture.run_until(30)
    assert (daemon_status(fixture).number_ready, daemon_status(fixture).number_available) == (2, 2)
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    fixture.apply(node("node-0", taints=[taint]))
    fixture.run_until(60)
    places = sorted(each.spec.node_name for each in fixture.pods())
    assert (len(places), "node-0" in places) == (2, False)
    assert (daemon_status(fixture).desired_number_scheduled, daemon_status(fixture).number_available) == (4, 2)


def test_a_daemon_set_creates_pods_once_their_priority_class_exists() -> None:
    fixture = ClusterFixture(nodes=3)
    fixture.apply(workload("DaemonSet", "agent", template=template(priorityClassName="high")))
    fixture.settle()
    assert (len(fixture.pods()), daemon_status(fixture).desired_number_scheduled) == (0, 3)
    fixture.apply(PRIORITY_CLASS)
    fixture.settle()
    assert [each.spec.priority for each in fixture.pods()] == [1000, 1000, 1000]


@pytest.mark.parametrize("kind", [ReplicaSet, ReplicationController, StatefulSet, Deployment])
def test_the_status_of_a_workload_is_current_while_pods_are_refused(
    kind: type[ReplicaSet | ReplicationController | StatefulSet | Deployment],
) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(quota(1), workload(kind.__name__, "w", minReadySeconds=10, replicas=3))
    seen = []
    for seconds in (5, 60):
        fixture.run_until(seconds)
        found = fixture.store.get(kind, "default/w")
        assert found is not None
        seen.append((found.status.observed_generation, found.status.ready_replicas, found.status.available_replicas))
    assert seen == [(1, 1, 0), (1, 1, 1)]
    assert len(fixture.cluster.failures()) == 1


@pytest.mark.parametrize("kind", [ReplicaSet, ReplicationController, Deployment])
def test_a_condition_states_why_pods_are_refused(kind: type[ReplicaSet | ReplicationController | Deployment]) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(quota(1), workload(kind.__name__, "w", replicas=3))
    seen = []
    for limit in (1, 2, 3):
        fixture.apply(quota(limit))
        fixture.run_until(10 * limit)
        found = fixture.store.get(kind, "default/w")
        assert found is not None
        seen.append([each for each in found.status.conditions if each.type == "ReplicaFailure"])
    [condition] = seen[0]
    assert (condition.status, condition.reason) == ("True", "FailedCreate")
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in condition.message
    assert seen[1:] == [[condition], []]


def test_the_condition_of_a_server_has_the_message_of_the_api() -> None:
    fixture = BridgeFixture(nodes=1)
    quotas, deployments = f"{API}/namespaces/default/resourcequotas", f"{APPS}/deployments"
    fixture.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    fixture.run()
    fixture.post(deployments, document("Deployment", "web", {"replicas": 2}))
    fixture.run(10)
    conditions = fixture.get(f"{deployments}/web").at("status.conditions")
    assert isinstance(conditions, list)
    [found] = [each for each in conditions if each["type"] == "ReplicaFailure"]
    assert found["message"].startswith('pods "web-')
    assert found["message"].endswith(
        "is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    )
    fixture.delete(f"{quotas}/q")
    fixture.run(30)
    assert "ReplicaFailure" not in str(fixture.get(f"{deployments}/web").at("status.conditions"))


def test_a_job_counts_ended_pods_once_while_others_are_refused() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(job("calc", run_time="10s", exit_code=1, parallelism=3, completions=3, backoffLimit=9), quota(2))
    seen = []
    for seconds in (5, 15, 25, 200):
        fixture.run_until(seconds)
        found = fixture.store.get(Job, "default/calc")
        assert found is not None
        seen.append((found.status.active, found.status.failed))
    assert seen == [(2, 0), (0, 2), (0, 2), (0, 6)]


def test_a_large_daemon_set_of_a_server_counts_all_nodes_and_creates_pods_when_the_quota_is_gone() -> None:
    fixture = BridgeFixture(nodes=40)
    quotas, sets = f"{API}/namespaces/default/resourcequotas", f"{APPS}/daemonsets"
    fixture.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})
    fixture.run()
    fixture.post(sets, document("DaemonSet", "agent", {"minReadySeconds": 5}))
    fixture.run(10)
    assert len(fixture.names("pods")) == 2
    assert fixture.get(f"{sets}/agent").at("status.desiredNumberScheduled") == 40
    assert fixture.get(f"{sets}/agent").at("status.numberAvailable") == 2
    fixture.delete(f"{quotas}/q")
    fixture.run(30)
    assert len(fixture.names("pods")) == 40
    assert fixture.get(f"{sets}/agent").at("status.numberAvailable") == 40
    assert fixture.bridge.failures() == {}
