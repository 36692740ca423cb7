"""Cluster events change columns, queue and waiting pods as in kube-scheduler's event handlers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.engine.actions import Emit
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    EventResource,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.status import unschedulable
from bayplan.objects import kinds
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.pod import Pod
from bayplan.objects.service import Service
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.testing import PodBuilder, make_node, make_pod
from tests.engine.recorders import SECOND, as_tuples, make_recorder, make_scheduler, on_nodes, small_node, waits


def start(*objects: KubernetesObject) -> Scheduler:
    scheduler = make_scheduler(in_tree=("NodeName", "NodeResourcesFit"))
    for item in objects:
        scheduler.handle(None, item, 0)
    return scheduler


def pod(name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu)


def newer(item: Pod, version: str = "2", **metadata: Any) -> Pod:
    return replace(item, metadata=replace(item.metadata, resource_version=version, **metadata))


def bound(item: Pod, node: str) -> Pod:
    return newer(replace(item, spec=replace(item.spec, node_name=node)))


def in_phase(item: Pod, phase: str) -> Pod:
    return replace(item, status=replace(item.status, phase=phase))


def used_cpu(scheduler: Scheduler, node: str) -> int:
    state = scheduler.state
    return int(state.usage[3, state.nodes.row_of[node]])


# Binding.


def test_a_confirmed_assumed_pod_is_counted_once() -> None:
    scheduler = start(small_node("n1"), pod("p").obj())
    scheduler.schedule_one(0)
    assert [*scheduler.assumed] == ["default/p"]
    scheduler.handle(scheduler.pods["default/p"], bound(pod("p").obj(), "n1"), 1)
    assert scheduler.assumed == {}
    assert on_nodes(scheduler) == {"p": "n1"}
    assert used_cpu(scheduler, "n1") == 1000
    scheduler.state.check_invariants()


def test_an_assumed_pod_bound_to_another_node_is_moved() -> None:
    scheduler = start(small_node("n1"), pod("p").obj())
    scheduler.schedule_one(0)
    scheduler.handle(None, small_node("n2"), 0)
    scheduler.handle(scheduler.pods["default/p"], bound(pod("p").obj(), "n2"), 1)
    assert on_nodes(scheduler) == {"p": "n2"}
    assert (used_cpu(scheduler, "n1"), used_cpu(scheduler, "n2")) == (0, 1000)
    assert scheduler.assumed == {}


def test_a_queued_pod_bound_by_another_scheduler_leaves_the_queue() -> None:
    scheduler = start(small_node("n1"), pod("p").obj())
    scheduler.handle(scheduler.pods["default/p"], bound(pod("p").obj(), "n1"), 1)
    assert on_nodes(scheduler) == {"p": "n1"}
    assert waits(scheduler) == {}
    assert scheduler.schedule_one(1) is None


def test_pods_of_other_schedulers_use_resources_but_are_not_queued() -> None:
    waiting = pod("p").scheduler("other").obj()
    scheduler = start(small_node("n1"), waiting, pod("q").scheduler("other").node("n1").obj())
    assert waits(scheduler) == {}
    assert on_nodes(scheduler) == {"q": "n1"}
    scheduler.handle(waiting, bound(waiting, "n1"), 1)
    assert used_cpu(scheduler, "n1") == 2000
    scheduler.handle(bound(waiting, "n1"), None, 2)
    assert used_cpu(scheduler, "n1") == 1000
    other = pod("r").scheduler("other").obj()
    scheduler.handle(None, other, 3)
    assert scheduler.handle(other, None, 3) == []


def test_updating_a_bound_pod_updates_its_requests_and_labels() -> None:
    old = pod("p").node("n1").obj()
    scheduler = start(small_node("n1"), old)
    new = newer(pod("p", "1500m").node("n1").label(a="b").obj())
    scheduler.handle(old, new, 1)
    assert used_cpu(scheduler, "n1") == 1500
    assert scheduler.state.pods["default/p"].pod_class.labels == {"a": "b"}
    annotated = newer(new, "3", annotations={"x": "y"})
    scheduler.handle(new, annotated, 2)
    assert scheduler.state.pods["default/p"].pod is annotated
    scheduler.state.check_invariants()


def test_an_updated_assumed_pod_is_not_queued() -> None:
    scheduler = start(small_node("n1"), pod("p").obj())
    scheduler.schedule_one(0)
    old = scheduler.pods["default/p"]
    scheduler.handle(old, newer(old, labels={"a": "b"}), 1)
    assert waits(scheduler) == {}
    assert scheduler.schedule_one(1) is None


def test_an_update_with_an_unchanged_resource_version_is_ignored() -> None:
    old = newer(pod("p", "9").obj(), "7")
    scheduler = start(small_node("n1"), old)
    scheduler.schedule_one(0)
    assert waits(scheduler) == {"p": "unschedulable"}
    scheduler.handle(old, newer(pod("p").obj(), "7"), 1)
    assert waits(scheduler) == {"p": "unschedulable"}
    scheduler.handle(old, newer(pod("p").obj(), "8"), 1)
    assert waits(scheduler) == {"p": "backoff"}


@pytest.mark.parametrize("deleted", [True, False], ids=["when it is gone", "when its deletion begins"])
def test_deleting_an_assumed_pod_frees_its_node_and_wakes_pending_pods(deleted: bool) -> None:
    scheduler = start(small_node("n1"), pod("p", "2").obj(), pod("q", "2").obj())
    scheduler.schedule_one(0)
    scheduler.schedule_one(0)
    assert waits(scheduler) == {"q": "unschedulable"}
    old = scheduler.pods["default/p"]
    scheduler.handle(old, None if deleted else newer(old, deletion_timestamp="2026-01-01T00:00:00Z"), SECOND)
    assert on_nodes(scheduler) == {}
    assert scheduler.assumed == {}
    assert waits(scheduler) == {"q": "backoff"}
    scheduler.state.check_invariants()


def test_a_pod_bound_after_its_deletion_started_is_counted_again() -> None:
    scheduler = start(small_node("n1"), pod("p").obj())
    scheduler.schedule_one(0)
    old = scheduler.pods["default/p"]
    ending = newer(old, deletion_timestamp="2026-01-01T00:00:00Z")
    scheduler.handle(old, ending, 1)
    scheduler.handle(ending, bound(ending, "n1"), 2)
    assert on_nodes(scheduler) == {"p": "n1"}


@pytest.mark.parametrize("restored", [True, False], ids=["and was added again", "for good"])
def test_a_binding_ends_although_its_node_was_deleted_meanwhile(restored: bool) -> None:
    node = small_node("n1")
    scheduler = start(node, pod("p").obj())
    scheduler.schedule_one(0)
    old = scheduler.pods["default/p"]
    scheduler.handle(node, None, 1)
    if restored:
        scheduler.handle(None, node, 2)
    [event] = scheduler.handle(old, bound(old, "n1"), 3)
    assert isinstance(event, Emit)
    assert (event.reason, event.note) == ("Scheduled", "Successfully assigned default/p to n1")
    assert scheduler.bindings.pending == {}
    assert on_nodes(scheduler) == ({"p": "n1"} if restored else {})
    scheduler.state.check_invariants()


# Deleted pods.


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param("Succeeded", id="a pod that succeeded"),
        pytest.param("Failed", id="a pod that failed"),
        pytest.param("", id="a pod that was deleted"),
    ],
)
def test_a_finished_or_deleted_pod_frees_its_node_and_wakes_pending_pods(phase: str) -> None:
    old = pod("p", "2").node("n1").obj()
    scheduler = start(small_node("n1"), old, pod("q").obj())
    scheduler.schedule_one(0)
    scheduler.handle(old, in_phase(newer(old), phase) if phase else None, SECOND)
    assert on_nodes(scheduler) == {}
    assert waits(scheduler) == {"q": "backoff"}
    scheduler.tick(3 * SECOND)
    report = scheduler.schedule_one(3 * SECOND)
    assert report is not None
    assert as_tuples(report.actions) == [("bind", "q", "n1")]


def test_finished_pods_are_ignored() -> None:
    ended = in_phase(pod("p").node("n1").obj(), "Succeeded")
    scheduler = start(small_node("n1"), ended)
    assert on_nodes(scheduler) == {}
    assert scheduler.handle(ended, newer(ended), 1) == []
    assert scheduler.handle(newer(ended), None, 2) == []
    assert scheduler.pods == {}


def test_a_terminating_pod_still_uses_resources() -> None:
    old = pod("p", "2").node("n1").obj()
    scheduler = start(small_node("n1"), old, pod("q").obj())
    scheduler.handle(old, newer(old, deletion_timestamp="2026-01-01T00:00:00Z"), 1)
    report = scheduler.schedule_one(1)
    assert report is not None
    assert report.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert scheduler.state.pods["default/p"].pod_class.terminating


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(10, "backoff", id="one of lower priority counted it"),
        pytest.param(20, "backoff", id="one of equal priority counted it"),
        pytest.param(30, "unschedulable", id="one of higher priority did not"),
    ],
)
@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "nominated to nothing"])
def test_removing_a_nomination_wakes_pods_of_equal_or_lower_priority(priority: int, want: str, deleted: bool) -> None:
    nominated = newer(pod("p", "2").priority(20).nominated("n1").obj(), "1")
    scheduler = start(small_node("n1"), pod("q", "9").priority(priority).obj())
    scheduler.schedule_one(0)
    scheduler.handle(None, nominated, 0)
    cleared = newer(replace(nominated, status=replace(nominated.status, nominated_node_name="")))
    scheduler.handle(nominated, None if deleted else cleared, SECOND)
    # The hint of NodeResourcesFit checks whether the pod's resources, which are now free, are enough.
    assert waits(scheduler)["q"] == want


# Nodes.


def test_a_pod_bound_to_a_missing_node_is_counted_when_the_node_is_added() -> None:
    scheduler = start(pod("p").node("late").obj(), pod("q").obj())
    assert on_nodes(scheduler) == {}
    scheduler.handle(None, small_node("late"), 1)
    assert on_nodes(scheduler) == {"p": "late"}
    assert used_cpu(scheduler, "late") == 1000


def test_a_recreated_node_gets_its_bound_pods_back() -> None:
    scheduler = start(small_node("n1"), pod("p").node("n1").obj(), pod("q").obj())
    scheduler.schedule_one(0)
    assert on_nodes(scheduler) == {"p": "n1", "q": "n1"}
    scheduler.handle(small_node("n1"), None, 1)
    assert on_nodes(scheduler) == {}
    assert scheduler.assumed == {}
    scheduler.handle(None, small_node("n1"), 2)
    assert on_nodes(scheduler) == {"p": "n1"}
    scheduler.handle(scheduler.pods["default/q"], bound(pod("q").obj(), "n1"), 3)
    assert on_nodes(scheduler) == {"p": "n1", "q": "n1"}
    scheduler.state.check_invariants()


def test_pod_events_for_deleted_nodes_are_ignored() -> None:
    old = pod("p").node("n1").obj()
    scheduler = start(small_node("n1"), old)
    scheduler.handle(small_node("n1"), None, 1)
    scheduler.handle(small_node("n1"), None, 1)
    new = newer(old, labels={"a": "b"})
    scheduler.handle(old, new, 2)
    scheduler.handle(new, None, 3)
    assert scheduler.pods == {}
    scheduler.state.check_invariants()


def test_updating_an_unknown_node_adds_it() -> None:
    scheduler = start()
    scheduler.handle(small_node("n1"), make_node("n1").capacity(cpu="3").obj(), 1)
    assert list(scheduler.state.nodes.row_of) == ["n1"]


# Events of the queue.

ANYTHING_OF_NODES = ClusterEvent(EventResource.NODE, ActionType.ALL)
LABELS = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
CLAIMS = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)


def change(kind: str) -> tuple[KubernetesObject | None, KubernetesObject | None]:
    """Return the objects before and after a change."""
    old = pod("other").node("n1").obj()
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="default"))
    changes: dict[str, tuple[KubernetesObject | None, KubernetesObject | None]] = {
        "node added": (None, small_node("n9")),
        "node relabelled": (small_node("n1"), make_node("n1").capacity(cpu="2", memory="4Gi").label(a="b").obj()),
        "node gone": (small_node("n1"), None),
        "pod bound": (None, old),
        "pod gone": (old, None),
        "claim added": (None, claim),
        "service added": (None, Service(metadata=ObjectMeta(name="s", namespace="default"))),
    }
    return changes[kind]


@pytest.mark.parametrize(
    ("event", "wakes"),
    [
        pytest.param(NODE_ADD, {"node added"}, id="added nodes"),
        pytest.param(LABELS, {"node relabelled"}, id="labels of nodes"),
        pytest.param(NODE_DELETE, {"node gone"}, id="deleted nodes"),
        pytest.param(ANYTHING_OF_NODES, {"node added", "node relabelled", "node gone"}, id="anything of nodes"),
        pytest.param(ASSIGNED_POD_ADD, {"pod bound"}, id="pods on nodes"),
        pytest.param(ASSIGNED_POD_DELETE, {"pod gone"}, id="pods that leave"),
        pytest.param(CLAIMS, {"claim added"}, id="claims"),
    ],
)
@pytest.mark.parametrize(
    "kind",
    ["node added", "node relabelled", "node gone", "pod bound", "pod gone", "claim added", "service added"],
)
def test_a_rejected_pod_is_woken_by_the_events_its_plugin_registered(
    kind: str, event: ClusterEvent, wakes: set[str]
) -> None:
    recorder = make_recorder("A", [], {"reserve": unschedulable("no")}, [(event, None)])
    scheduler = make_scheduler(recorder, nodes=("n1",))
    if kind == "pod gone":
        scheduler.handle(None, change(kind)[0], 0)
    scheduler.handle(None, pod("p").obj(), 0)
    scheduler.schedule_one(0)
    scheduler.handle(*change(kind), SECOND)
    assert waits(scheduler) == {"p": "backoff" if kind in wakes else "unschedulable"}


def test_a_queueing_hint_is_called_for_each_rejected_pod() -> None:
    asked = []

    def hint(waiting: Pod, old: object | None, new: object | None) -> bool:
        asked.append((waiting.metadata.name, old, new))
        return waiting.metadata.name == "q"

    recorder = make_recorder("A", [], {"reserve": unschedulable("no")}, [(NODE_ADD, hint)])
    scheduler = make_scheduler(recorder, nodes=("n1",))
    for name in "pq":
        scheduler.handle(None, pod(name).obj(), 0)
        scheduler.schedule_one(0)
    node = small_node("n2")
    scheduler.handle(None, node, SECOND)
    assert asked == [("p", None, node), ("q", None, node)]
    assert waits(scheduler) == {"p": "unschedulable", "q": "backoff"}


def test_an_unschedulable_pod_is_retried_after_five_minutes_without_an_event() -> None:
    recorder = make_recorder("A", [], {"reserve": unschedulable("no")}, [(LABELS, None)])
    scheduler = make_scheduler(recorder, nodes=("n1",))
    scheduler.handle(None, pod("p").obj(), 0)
    scheduler.schedule_one(0)
    wakeup = scheduler.next_wakeup_ns(0)
    assert wakeup == 330 * SECOND
    assert scheduler.tick(wakeup - 30 * SECOND) == []
    assert waits(scheduler) == {"p": "unschedulable"}
    scheduler.tick(wakeup)
    assert waits(scheduler) == {"p": "active"}


def test_the_catalog_stores_objects_of_other_kinds_for_plugins() -> None:
    scheduler = start()
    catalog = scheduler.state.catalog
    old = Service(metadata=ObjectMeta(name="s", namespace="default"))
    scheduler.handle(None, old, 1)
    assert catalog.get(Service, "default/s") is old
    version = catalog.version(Service)
    scheduler.handle(old, None, 2)
    assert catalog.get(Service, "default/s") is None
    assert catalog.version(Service) != version


@pytest.mark.parametrize(
    ("enabled", "want"),
    [(True, "active"), (False, "unschedulable")],
    ids=["its status counts", "its status is not read"],
)
def test_a_scale_down_in_pod_level_status_wakes_other_pods_if_the_gate_is_on(enabled: bool, want: str) -> None:
    hears = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCALE_DOWN)
    waiting = make_recorder("A", [], {"refuses": ("n1",)}, [(hears, None)])
    gates = FeatureGates.from_mapping({"InPlacePodLevelResourcesVerticalScaling": enabled})
    scheduler = make_scheduler(waiting, nodes=("n1",), feature_gates=gates)

    def running(cpu: str) -> Pod:
        wanted = {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "1"}}, "nodeName": "n1"}
        status = {"resources": {"requests": {"cpu": cpu}}}
        item = kinds.decode(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}, "spec": wanted, "status": status}
        )
        assert isinstance(item, Pod)
        return item

    scheduler.handle(None, running("3"), 0)
    scheduler.handle(None, pod("p").obj(), 0)
    scheduler.schedule_one(0)
    scheduler.handle(running("3"), running("2"), 60 * SECOND)
    assert scheduler.queue.pending_counts()[want] == 1
