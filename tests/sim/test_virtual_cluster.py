"""The simulated cluster as its host uses it: events that calls return, wake-ups, and the actions of the scheduler."""

from __future__ import annotations

import pytest

from bayplan.base.random_streams import RandomStreams
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Deployment, ReplicaSet
from bayplan.sim.virtual_cluster import VirtualCluster
from tests.cluster.world import SECOND, Json, World, as_pod, node, pod, workload


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
    world = World(nodes=2)
    world.apply(workload("Deployment", "d", replicas=3), workload("StatefulSet", "s", replicas=2))
    world.settle()
    assert [event.resource_version for event in world.events] == list(range(1, len(world.events) + 1))
    assert all(
        event.new is None or event.new.metadata.resource_version == str(event.resource_version)
        for event in world.events
    )


def test_the_old_object_of_an_event_is_the_new_one_of_the_previous_event() -> None:
    world = World(nodes=2)
    world.apply(workload("Deployment", "d", replicas=3))
    world.settle()
    world.apply(workload("Deployment", "d", replicas=1, image="app:2"))
    world.settle()
    last: dict[tuple[str, str], object] = {}
    for event in world.events:
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
    world = World(nodes=2, binds=False)
    fields: dict[str, Json] = {
        "finished": {"status": {"phase": "Failed"}},
        "deleting": {"finalizers": ["example.com/hold"]},
    }
    world.apply(pod("p", **fields.get(before, {})))
    if before == "bound":
        world.cluster.bind("default/p", "node-1", 0)
    if before in ("gone", "deleting"):
        world.delete(Pod, "default/p")
    assert [event.type for event in world.cluster.bind("default/p", "node-0", 0)] == want


def test_binding_clears_the_nomination_and_preserves_spec_and_labels() -> None:
    world = World(nodes=1, binds=False)
    world.apply(pod("p"))
    [before] = world.pods()
    [event] = world.cluster.set_nominated("default/p", "node-0", 0)
    assert as_pod(event.new).status.nominated_node_name == "node-0"
    assert world.cluster.set_nominated("default/p", "node-0", 0) == []
    [event] = world.cluster.bind("default/p", "node-0", 0)
    bound = as_pod(event.new)
    assert bound.status.nominated_node_name == ""
    assert bound.spec.containers is before.spec.containers
    assert bound.metadata.labels is before.metadata.labels


def test_pods_on_missing_nodes_are_garbage_collected() -> None:
    world = World(nodes=1, binds=False)
    world.apply(pod("p"))
    world.events += world.cluster.bind("default/p", "nowhere", 0)
    assert world.phases() == {"Pending": 1}
    world.settle()
    assert world.names() == []


def test_set_unschedulable_writes_only_changed_conditions() -> None:
    world = World(binds=False)
    world.apply(pod("p"))
    set_ = world.cluster.set_unschedulable
    [event] = set_("default/p", "Unschedulable", "0/0 nodes", 3 * SECOND)
    [condition] = as_pod(event.new).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert set_("default/p", "Unschedulable", "0/0 nodes", 4 * SECOND) == []
    [event] = set_("default/p", "Unschedulable", "0/1 nodes", 5 * SECOND)
    assert as_pod(event.new).status.conditions[0].last_transition_time == "1970-01-01T00:00:03Z"
    assert set_("default/gone", "Unschedulable", "", 5 * SECOND) == []


@pytest.mark.parametrize(
    ("scale", "want"),
    [
        pytest.param(0.0, ["MODIFIED", "DELETED"], id="at once"),
        pytest.param(1.0, ["MODIFIED", "MODIFIED"], id="with a grace period"),
    ],
)
def test_a_preemption_victim_gets_a_disruption_target_condition(scale: float, want: list[str]) -> None:
    world = World(nodes=1, termination_scale=scale)
    world.apply(pod("victim"))
    world.settle()
    preemptor = decode(pod("strong", schedulerName="default-scheduler"))
    events = world.cluster.evict("default/victim", 0, preemptor=as_pod(preemptor))
    assert [event.type for event in events] == want
    condition = next(item for item in as_pod(events[0].new).status.conditions if item.type == "DisruptionTarget")
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
    assert world.cluster.evict("default/gone", 0) == []


def test_eviction_without_a_preemptor_deletes_the_pod() -> None:
    world = World(nodes=1)
    world.apply(pod("p"))
    world.settle()
    assert [event.type for event in world.cluster.evict("default/p", 0)] == ["DELETED"]


def test_cordon_adds_a_taint_and_uncordon_removes_it() -> None:
    world = World(nodes=1)
    assert [event.type for event in world.cluster.cordon("node-0", 0)] == ["MODIFIED"]
    world.settle()
    cordoned = world.store.nodes["node-0"]
    assert cordoned.spec.unschedulable
    assert [(taint.key, taint.effect) for taint in cordoned.spec.taints] == [
        ("node.kubernetes.io/unschedulable", "NoSchedule")
    ]
    assert world.cluster.cordon("node-0", 0) == []
    world.cluster.cordon("node-0", 0, unschedulable=False)
    world.settle()
    assert world.store.nodes["node-0"].spec.taints == ()
    assert world.cluster.cordon("nowhere", 0) == []


def test_controllers_sync_after_the_configured_delay() -> None:
    world = World(sync_delay_ns=3 * SECOND)
    world.apply(workload("ReplicaSet", "rs", replicas=2))
    assert world.cluster.next_wakeup() == 3 * SECOND
    world.run_until(2.9)
    assert world.names() == []
    world.run_until(3)
    assert len(world.names()) == 2


def test_a_late_advance_executes_each_action_at_its_due_time() -> None:
    world = World(nodes=1)
    for name, seconds in (("a", 10), ("b", 20)):
        world.apply(pod(name, annotations={"bayplan.io/run-time": f"{seconds}s"}))
    world.settle()
    events = world.cluster.advance(100 * SECOND)
    times = {
        as_pod(event.new).metadata.name: condition.last_transition_time
        for event in events
        for condition in as_pod(event.new).status.conditions
        if condition.type == "Ready"
    }
    assert times == {"a": "1970-01-01T00:00:10Z", "b": "1970-01-01T00:00:20Z"}


def test_a_workload_with_refused_pods_is_reported_and_retried() -> None:
    world = World(nodes=1)
    template = workload("ReplicaSet", "rs")["spec"]["template"]
    template["spec"]["priorityClassName"] = "high"
    world.apply(workload("ReplicaSet", "rs", replicas=2, template=template))
    world.settle()
    assert world.names() == []
    assert list(world.cluster.failures()) == ["ReplicaSet default/rs"]
    world.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    )
    world.settle()
    assert [item.spec.priority for item in world.pods()] == [9, 9]
    assert world.cluster.failures() == {}


def test_pods_of_a_deleted_node_are_deleted_and_recreated() -> None:
    world = World(nodes=2)
    world.apply(workload("ReplicaSet", "rs", replicas=4), pod("plain", nodeName="node-0"))
    world.settle()
    before = set(world.names("rs-"))
    world.delete(type(world.store.nodes["node-0"]), "node-0")
    world.settle()
    assert {item.spec.node_name for item in world.pods()} == {"node-1"}
    assert len(world.names("rs-")) == 4
    assert len(before & set(world.names("rs-"))) == 2
    assert world.names("plain") == []


def test_pods_survive_if_their_node_is_recreated_before_garbage_collection() -> None:
    world = World(nodes=1)
    world.apply(pod("p", nodeName="node-0"))
    world.delete(type(world.store.nodes["node-0"]), "node-0")
    world.apply(node("node-0"))
    world.settle()
    # The node was added again before the pod garbage collector ran, so the pod survived.
    assert world.phases() == {"Running": 1}
