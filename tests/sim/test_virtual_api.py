"""Objects from the input: created with defaults, and changed without losing fields that the server owns."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Deployment, Job
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, as_pod, job, node, pod, workload


def test_a_new_pod_is_defaulted_admitted_and_pending() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    )
    [got] = fixture.pods()
    assert (got.metadata.namespace, got.metadata.generation, got.status.phase) == ("default", 1, "Pending")
    assert (got.spec.priority, got.spec.scheduler_name, got.spec.restart_policy) == (0, "default-scheduler", "Always")
    assert [item.key for item in got.spec.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert len(got.metadata.uid) == 36


def test_a_pod_with_a_uid_skips_admission() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(pod("p", uid="from-elsewhere", priority=5))
    [got] = fixture.pods()
    assert (got.metadata.uid, got.spec.tolerations, got.spec.priority) == ("from-elsewhere", (), 5)


def test_a_gated_pod_has_a_scheduling_gated_condition() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(pod("p", schedulingGates=[{"name": "wait"}]))
    assert [(item.type, item.status, item.reason) for item in fixture.pods()[0].status.conditions] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]


def test_pods_with_an_equal_spec_share_it() -> None:
    fixture = ClusterFixture(binds=False)
    one = decode(pod("a"))
    assert isinstance(one, Pod)
    fixture.apply(one, replace(one, metadata=replace(one.metadata, name="b")))
    assert len({id(item.spec) for item in fixture.pods()}) == 1


def test_generate_name_appends_a_random_suffix() -> None:
    fixture = ClusterFixture(binds=False)
    for _ in range(2):
        document = pod("")
        document["metadata"] = {"generateName": "run-", "namespace": "default"}
        fixture.apply(document)
    names = fixture.names("run-")
    assert len(names) == 2
    assert all(len(name) == 9 for name in names)


def test_a_pod_with_an_unknown_priority_class_is_refused_and_not_stored() -> None:
    fixture = ClusterFixture(binds=False)
    with pytest.raises(InputError, match="PriorityClass"):
        fixture.apply(pod("p", priorityClassName="none"))
    assert fixture.names() == []


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        pytest.param(node("n"), Node, id="a node"),
        pytest.param(pod("p"), Pod, id="a pod"),
        pytest.param(workload("Deployment", "d"), Deployment, id="a deployment"),
        pytest.param(job("j"), Job, id="a job"),
    ],
)
def test_applying_the_same_object_again_changes_nothing(document: dict[str, Any], kind: type[Any]) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(document)
    fixture.settle()
    before = len(fixture.events)
    fixture.now_ns = 5 * SECOND
    fixture.apply(document)
    fixture.settle()
    assert fixture.events[before:] == []


def test_apply_preserves_uid_creation_time_and_status() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("Deployment", "d", replicas=1))
    fixture.settle()
    before = fixture.store.get(Deployment, "default/d")
    fixture.now_ns = 5 * SECOND
    fixture.apply(workload("Deployment", "d", replicas=2))
    after = fixture.store.get(Deployment, "default/d")
    assert before is not None
    assert after is not None
    assert after.metadata.uid == before.metadata.uid
    assert after.metadata.creation_timestamp == "1970-01-01T00:00:00Z"
    assert after.metadata.generation == 2
    assert after.status is before.status
    assert after.metadata.annotations == {"deployment.kubernetes.io/revision": "1"}


def test_a_label_change_does_not_increment_the_generation() -> None:
    fixture = ClusterFixture()
    fixture.apply(workload("Deployment", "d"))
    document = workload("Deployment", "d")
    document["metadata"]["labels"] = {"new": "label"}
    before = fixture.store.get(Deployment, "default/d")
    fixture.apply(document)
    after = fixture.store.get(Deployment, "default/d")
    assert before is not None
    assert after is not None
    assert (after.metadata.generation, after.metadata.labels) == (1, {"new": "label"})
    assert after.spec is before.spec


def test_reapplying_a_running_pod_preserves_its_node_and_phase() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p"))
    fixture.settle()
    fixture.apply(pod("p", labels={"new": "label"}))
    [got] = fixture.pods()
    assert (got.spec.node_name, got.status.phase, got.metadata.labels) == ("node-0", "Running", {"new": "label"})


def test_applying_a_node_name_binds_a_pending_pod() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod("p"), pod("p", nodeName="node-0"))
    assert fixture.phases() == {"Running": 1}


def test_apply_replaces_the_node_status_only_if_one_is_given() -> None:
    fixture = ClusterFixture()
    fixture.apply(node("n"))
    document = node("n", labels={"zone": "a"})
    document["status"] = {"allocatable": {"cpu": "16"}}
    fixture.apply(document)
    assert fixture.store.nodes["n"].status.allocatable == {"cpu": "16"}
    del document["status"]
    document["metadata"]["labels"] = {"zone": "b"}
    fixture.apply(document)
    got = fixture.store.nodes["n"]
    assert (got.status.allocatable, got.metadata.labels) == ({"cpu": "16"}, {"zone": "b"})


def test_apply_preserves_owner_references_that_are_not_given() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("ReplicaSet", "rs", replicas=1))
    fixture.settle()
    [owned] = fixture.pods()
    plain = replace(owned, metadata=replace(owned.metadata, uid="", owner_references=(), labels={"app": "y"}))
    fixture.apply(plain)
    assert as_pod(fixture.pods()[0]).metadata.owner_references == owned.metadata.owner_references


def test_a_version_with_the_uid_of_the_object_is_complete() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", finalizers=["example.com/hold"]))
    fixture.settle()
    fixture.delete(Pod, "default/p", grace_seconds=0)
    [terminating] = fixture.pods()
    fixture.apply(replace(terminating, metadata=replace(terminating.metadata, labels={"app": "y"})))
    assert fixture.phases() == {"Terminating": 1}
    fixture.apply(replace(terminating, metadata=replace(terminating.metadata, finalizers=())))
    assert fixture.pods() == []


def test_job_selector_and_labels_are_generated_once_from_the_uid() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(job("calc"))
    fixture.apply(job("calc", parallelism=2))
    stored = fixture.store.get(Job, "default/calc")
    assert stored is not None
    uid = stored.metadata.uid
    assert stored.spec.selector is not None
    assert stored.spec.selector.match_labels == {"batch.kubernetes.io/controller-uid": uid}
    assert stored.spec.template.metadata.labels == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "calc",
        "controller-uid": uid,
        "job-name": "calc",
    }
    assert stored.spec.parallelism == 2


def test_a_job_with_a_manual_selector_gets_no_generated_labels() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(job("calc", manualSelector=True, selector={"matchLabels": {"app": "x"}}))
    stored = fixture.store.get(Job, "default/calc")
    assert stored is not None
    assert stored.spec.template.metadata.labels == {"app": "x"}


def put(fixture: ClusterFixture, item: Any) -> list[str]:
    return [event.type for event in fixture.cluster.put(item, fixture.now_ns)]


def test_put_stores_a_version_without_defaulting() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    plain = as_pod(decode(pod("p")))
    assert put(fixture, plain) == ["ADDED"]
    [stored] = fixture.pods()
    assert (stored.spec.priority, stored.spec.tolerations, stored.status.phase) == (None, (), "")
    assert put(fixture, plain) == []
    [stored] = fixture.pods()
    assert put(fixture, stored) == []
    bound = replace(stored, spec=replace(stored.spec, node_name="node-0"))
    assert put(fixture, bound) == ["MODIFIED"]
    assert fixture.phases() == {"Running": 1}


def test_removing_the_last_finalizer_deletes_a_terminating_object() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", finalizers=["example.com/hold"]))
    fixture.settle()
    fixture.delete(Pod, "default/p")
    [held] = fixture.pods()
    assert put(fixture, replace(held, metadata=replace(held.metadata, finalizers=()))) == ["DELETED"]


def test_put_runs_a_new_pod_once_its_node_exists() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    assert put(fixture, decode(pod("p", nodeName="node-0"))) == ["ADDED"]
    assert fixture.phases() == {"Running": 1}
    assert put(fixture, decode(pod("q", nodeName="late"))) == ["ADDED"]
    assert put(fixture, decode(node("late"))) == ["ADDED", "MODIFIED"]
    assert fixture.phases() == {"Running": 2}
