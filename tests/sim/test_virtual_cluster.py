"""The simulated cluster as its host uses it: events that calls return, wake-ups, and the actions of the scheduler."""

from __future__ import annotations

import pytest

from bayplan.base.random_streams import RandomStreams
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Deployment, ReplicaSet
from bayplan.sim.virtual_cluster import VirtualCluster
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, Json, as_pod, node, pod, workload


def test_apply_returns_its_own_write_and_advance_returns_controller_writes() -> None:
    cluster = VirtualCluster(RandomStreams(1))
    assert cluster.next_wakeup() is None
    events = cluster.apply(decode(workload("Deployment", "d", replicas=2)), 5)
    assert [(event.type, event.kind) for event in events] == [("ADDED", Deployment)]
    assert cluster.next_wakeup() == 5
    assert [event.type for event in cluster.advance(4)] == []
    events = cluster.advance(5)
    assert [event.kind for event in events if event.type == "ADDED"] == [ReplicaSet, Pod, Pod]
    assert cluster.next_wakeup() is None


def test_a_plain_pod_schedules_no_wake_up() -> None:
    cluster = VirtualCluster(RandomStreams(1))
    cluster.apply(decode(pod("p")), 0)
    assert cluster.next_wakeup() is None


def test_resource_versions_of_events_are_consecutive() -> None:
    fixture = ClusterFixture(nodes=2)
    fixture.apply(workload("Deployment", "d", replicas=3), workload("StatefulSet", "s", replicas=2))
    fixture.settle()
    assert [event.resource_version for event in fixture.events] == list(range(1, len(fixture.events) + 1))
    assert all(
        event.new is None or event.new.metadata.resource_version == str(event.resource_version)
        for event in fixture.events
    )


def test_the_old_object_of_an_event_is_the_new_one_of_the_previous_event() -> None:
    fixture = ClusterFixture(nodes=2)
    fixture.apply(workload("Deployment", "d", replicas=3))
    fixture.settle()
    fixture.apply(workload("Deployment", "d", replicas=1, image="app:2"))
    fixture.settle()
    last: dict[tuple[str, str], object] = {}
    for event in fixture.events:
        key = (event.kind.__name__, event.object.key)
        assert event.old is last.get(key), key
        last[key] = event.new


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param("nothing", ["MODIFIED"], id="a waiting pod"),
        pytest.param("bound", [], id="a pod that is on a node already"),
        pytest.param("finished", [], id="a finished pod"),
        pytest.param("gone", [], id="a pod that is gone"),
        pytest.param("deleting", [], id="a pod that is being deleted"),
    ],
)
def test_only_a_pending_pod_can_be_bound(before: str, want: list[str]) -> None:
    fixture = ClusterFixture(nodes=2, binds=False)
    fields: dict[str, Json] = {
        "finished": {"status": {"phase": "Failed"}},
        "deleting": {"finalizers": ["example.com/hold"]},
    }
    fixture.apply(pod("p", **fields.get(before, {})))
    if before == "bound":
        fixture.cluster.bind("default/p", "node-1", 0)
    if before in ("gone", "deleting"):
        fixture.delete(Pod, "default/p")
    assert [event.type for event in fixture.cluster.bind("default/p", "node-0", 0)] == want


def test_binding_clears_the_nomination_and_preserves_spec_and_labels() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod("p"))
    [before] = fixture.pods()
    [event] = fixture.cluster.set_nominated("default/p", "node-0", 0)
    assert as_pod(event.new).status.nominated_node_name == "node-0"
    assert fixture.cluster.set_nominated("default/p", "node-0", 0) == []
    [event] = fixture.cluster.bind("default/p", "node-0", 0)
    bound = as_pod(event.new)
    assert bound.status.nominated_node_name == ""
    assert bound.spec.containers is before.spec.containers
    assert bound.metadata.labels is before.metadata.labels


def test_pods_on_missing_nodes_are_garbage_collected() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod("p"))
    fixture.events += fixture.cluster.bind("default/p", "nowhere", 0)
    assert fixture.phases() == {"Pending": 1}
    fixture.settle()
    assert fixture.names() == []


def test_set_unschedulable_writes_only_changed_conditions() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(pod("p"))
    set_ = fixture.cluster.set_unschedulable
    [event] = set_("default/p", "Unschedulable", "0/0 nodes", 3 * SECOND)
    [condition] = as_pod(event.new).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert set_("default/p", "Unschedulable", "0/0 nodes", 4 * SECOND) == []
    [event] = set_("default/p", "Unschedulable", "0/1 nodes", 5 * SECOND)
    assert as_pod(event.new).status.conditions[0].last_transition_time == "1970-01-01T00:00:03Z"
    assert set_("default/gone", "Unschedulable", "", 5 * SECOND) == []


@pytest.mark.parametrize(
    ("termination_s", "want"),
    [
        pytest.param(0, ["MODIFIED", "DELETED"], id="at once"),
        pytest.param(1, ["MODIFIED", "MODIFIED"], id="with a termination time"),
    ],
)
def test_a_preemption_victim_gets_a_disruption_target_condition(termination_s: int, want: list[str]) -> None:
    fixture = ClusterFixture(nodes=1, termination_s=termination_s)
    fixture.apply(pod("victim"))
    fixture.settle()
    preemptor = decode(pod("strong", schedulerName="default-scheduler"))
    events = fixture.cluster.evict("default/victim", 0, preemptor=as_pod(preemptor))
    assert [event.type for event in events] == want
    condition = next(item for item in as_pod(events[0].new).status.conditions if item.type == "DisruptionTarget")
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
    assert fixture.cluster.evict("default/gone", 0) == []


def test_eviction_without_a_preemptor_deletes_the_pod() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p"))
    fixture.settle()
    assert [event.type for event in fixture.cluster.evict("default/p", 0)] == ["DELETED"]


def test_cordon_adds_a_taint_and_uncordon_removes_it() -> None:
    fixture = ClusterFixture(nodes=1)
    assert [event.type for event in fixture.cluster.cordon("node-0", 0)] == ["MODIFIED"]
    fixture.settle()
    cordoned = fixture.store.nodes["node-0"]
    assert cordoned.spec.unschedulable
    assert [(taint.key, taint.effect) for taint in cordoned.spec.taints] == [
        ("node.kubernetes.io/unschedulable", "NoSchedule")
    ]
    assert fixture.cluster.cordon("node-0", 0) == []
    fixture.cluster.cordon("node-0", 0, unschedulable=False)
    fixture.settle()
    assert fixture.store.nodes["node-0"].spec.taints == ()
    assert fixture.cluster.cordon("nowhere", 0) == []


def test_controllers_sync_after_the_configured_delay() -> None:
    fixture = ClusterFixture(sync_delay_ns=3 * SECOND)
    fixture.apply(workload("ReplicaSet", "rs", replicas=2))
    assert fixture.cluster.next_wakeup() == 3 * SECOND
    fixture.run_until(2.9)
    assert fixture.names() == []
    fixture.run_until(3)
    assert len(fixture.names()) == 2


def test_a_late_advance_executes_each_action_at_its_due_time() -> None:
    fixture = ClusterFixture(nodes=1)
    for name, seconds in (("a", 10), ("b", 20)):
        fixture.apply(pod(name, annotations={"bayplan.io/run-time": f"{seconds}s"}))
    fixture.settle()
    events = fixture.cluster.advance(100 * SECOND)
    times = {
        as_pod(event.new).metadata.name: condition.last_transition_time
        for event in events
        for condition in as_pod(event.new).status.conditions
        if condition.type == "Ready"
    }
    assert times == {"a": "1970-01-01T00:00:10Z", "b": "1970-01-01T00:00:20Z"}


def test_a_workload_with_refused_pods_is_reported_and_retried() -> None:
    fixture = ClusterFixture(nodes=1)
    template = workload("ReplicaSet", "rs")["spec"]["template"]
    template["spec"]["priorityClassName"] = "high"
    fixture.apply(workload("ReplicaSet", "rs", replicas=2, template=template))
    fixture.settle()
    assert fixture.names() == []
    assert list(fixture.cluster.failures()) == ["ReplicaSet default/rs"]
    fixture.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    )
    fixture.settle()
    assert [item.spec.priority for item in fixture.pods()] == [9, 9]
    assert fixture.cluster.failures() == {}


def test_pods_of_a_deleted_node_are_deleted_and_recreated() -> None:
    fixture = ClusterFixture(nodes=2)
    fixture.apply(workload("ReplicaSet", "rs", replicas=4), pod("plain", nodeName="node-0"))
    fixture.settle()
    before = set(fixture.names("rs-"))
    fixture.delete(type(fixture.store.nodes["node-0"]), "node-0")
    fixture.settle()
    assert {item.spec.node_name for item in fixture.pods()} == {"node-1"}
    assert len(fixture.names("rs-")) == 4
    assert len(before & set(fixture.names("rs-"))) == 2
    assert fixture.names("plain") == []


def test_pods_survive_if_their_node_is_recreated_before_garbage_collection() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", nodeName="node-0"))
    fixture.delete(type(fixture.store.nodes["node-0"]), "node-0")
    fixture.apply(node("node-0"))
    fixture.settle()
    # The node was added again before the pod garbage collector ran, so the pod survived.
    assert fixture.phases() == {"Running": 1}
