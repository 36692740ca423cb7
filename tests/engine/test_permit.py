"""Waiting for a permit, between the choice of a node and the binding, until all Permit plugins allow the pod, or one rejects it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.engine.binding_cycle import MAX_PERMIT_TIMEOUT_NS
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.diagnosis import PostFilterResult
from bayplan.framework.events import ASSIGNED_POD_DELETE, NODE_ADD
from bayplan.framework.status import SUCCESS, Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod
from tests.engine.recorders import (
    SECOND,
    Log,
    allow,
    as_tuples,
    confirm,
    make_recorder,
    make_scheduler,
    on_nodes,
    small_node,
    waits,
)

WAIT = Status(Code.WAIT)
P = "default/p"


def start(*answers: tuple[Status, int], **options: Any) -> tuple[Scheduler, Log]:
    """Return a scheduler with a Permit plugin (A, B, C) per answer, in which pod p was scheduled at 1 s."""
    log: Log = []
    plugins = [
        make_recorder(name, log, {"permit": answer}, [(NODE_ADD, None)])
        for name, answer in zip("ABC", answers, strict=False)
    ]
    scheduler = make_scheduler(*plugins, nodes=("n1",), **options)
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(SECOND)
    assert report is not None
    assert report.node_name == "n1"
    assert as_tuples(report.actions) == [("nominate", "p", "n1")]
    return scheduler, log


def deleting(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="2"))


def kinds(log: Log) -> list[str]:
    return [f"{entry[0]}.{entry[1]}" for entry in log]


def test_a_waiting_pod_occupies_its_node_and_is_not_bound() -> None:
    scheduler, log = start((WAIT, 10 * SECOND))
    assert on_nodes(scheduler) == {"p": "n1"}
    assert len(scheduler.waiting_pods) == 1
    assert [waiting.node_name for waiting in scheduler.waiting_pods] == ["n1"]
    assert kinds(log)[-1] == "A.permit"
    assert scheduler.next_wakeup_ns(SECOND) == 11 * SECOND
    assert scheduler.schedule_one(2 * SECOND) is None


def test_a_pod_allowed_by_all_plugins_is_bound_with_its_reserve_state() -> None:
    scheduler, log = start((WAIT, 10 * SECOND), (SUCCESS, 0), (WAIT, 20 * SECOND))
    assert allow(scheduler, P, "C", 2 * SECOND) == []
    assert allow(scheduler, P, "B", 2 * SECOND) == []
    actions = allow(scheduler, P, "A", 3 * SECOND)
    assert as_tuples(actions) == [("bind", "p", "n1")]
    assert ("A", "pre_bind", "p", "n1", "n1") in log
    assert kinds(log)[-1] == "C.bind"
    confirm(scheduler, "p", "n1", 3 * SECOND)
    assert kinds(log)[-1] == "C.post_bind"
    assert len(scheduler.waiting_pods) == 0
    assert scheduler.next_wakeup_ns(3 * SECOND) is None
    assert scheduler.queue.in_flight() == []
    # The pod no longer waits, so there is nothing to allow.
    assert allow(scheduler, P, "A", 4 * SECOND) == []
    assert scheduler.reject_waiting_pod(P, unschedulable("no"), 4 * SECOND) == []


def test_a_permit_rejection_overrides_a_wait() -> None:
    log: Log = []
    plugins = [
        make_recorder("A", log, {"permit": (WAIT, SECOND)}),
        make_recorder("B", log, {"permit": (unschedulable("no"), 0)}),
    ]
    scheduler = make_scheduler(*plugins, nodes=("n1",))
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.message == "0/1 nodes are available: 1 no."
    assert len(scheduler.waiting_pods) == 0


def test_a_timeout_is_reported_for_the_waiting_plugin_with_the_shortest_one() -> None:
    scheduler, log = start((WAIT, 90 * SECOND), (WAIT, 5 * SECOND))
    assert scheduler.tick(6 * SECOND - 1) == []
    allow(scheduler, P, "B", 6 * SECOND - 1)
    assert scheduler.next_wakeup_ns(6 * SECOND) == 91 * SECOND
    message = "0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin A."
    assert as_tuples(scheduler.tick(91 * SECOND)) == [
        ("event", "p", "Warning FailedScheduling Scheduling", message),
        ("condition", "p", "Unschedulable", message),
    ]
    assert kinds(log)[-2:] == ["B.unreserve", "A.unreserve"]
    assert on_nodes(scheduler) == {}
    assert waits(scheduler) == {"p": "unschedulable"}
    queued = scheduler.queue.get(P)
    assert queued is not None
    assert queued.unschedulable_plugins == {"A"}


def test_permit_timeouts_are_capped_at_fifteen_minutes() -> None:
    scheduler, _ = start((WAIT, 3600 * SECOND))
    assert scheduler.next_wakeup_ns(SECOND) == SECOND + MAX_PERMIT_TIMEOUT_NS
    actions = as_tuples(scheduler.tick(SECOND + MAX_PERMIT_TIMEOUT_NS))
    assert "after waiting 15m0s at plugin A" in actions[0][3]


@pytest.mark.parametrize(
    ("status", "message", "place"),
    [
        pytest.param(
            Status(Code.UNSCHEDULABLE, ("no",), "A"), "0/1 nodes are available: 1 no.", "unschedulable", id="refused"
        ),
        pytest.param(error("boom"), "boom", "backoff", id="an error is tried again"),
    ],
)
def test_a_waiting_pod_can_be_rejected(status: Status, message: str, place: str) -> None:
    scheduler, _ = start((WAIT, 10 * SECOND))
    actions = as_tuples(scheduler.reject_waiting_pod(P, status, 2 * SECOND))
    assert actions[0] == ("event", "p", "Warning FailedScheduling Scheduling", message)
    assert on_nodes(scheduler) == {}
    assert waits(scheduler) == {"p": place}
    assert scheduler.queue.in_flight() == []


def test_a_rejected_waiting_pod_is_woken_by_events_of_the_rejecting_plugin() -> None:
    scheduler, _ = start((WAIT, 10 * SECOND))
    scheduler.reject_waiting_pod(P, Status(Code.UNSCHEDULABLE, ("no",), "A"), 2 * SECOND)
    scheduler.handle(None, small_node("n2"), 3 * SECOND)
    assert waits(scheduler) == {"p": "backoff"}


def test_an_event_during_the_wait_requeues_a_rejected_pod_immediately() -> None:
    scheduler, _ = start((WAIT, 10 * SECOND))
    scheduler.handle(None, small_node("n2"), 2 * SECOND)
    scheduler.reject_waiting_pod(P, Status(Code.UNSCHEDULABLE, ("no",), "A"), 3 * SECOND)
    assert waits(scheduler) == {"p": "backoff"}


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(
            unschedulable("no"), {"p": "unschedulable", "q": "backoff"}, id="refused, it helps the others only"
        ),
        pytest.param(error("boom"), {"p": "backoff", "q": "backoff"}, id="an error helps the others"),
    ],
)
def test_rejecting_a_waiting_pod_wakes_other_pods(status: Status, want: dict[str, str]) -> None:
    log: Log = []
    waiting = make_recorder("A", log, {"permit": (WAIT, 10 * SECOND)}, [(ASSIGNED_POD_DELETE, None)])
    scheduler = make_scheduler(waiting, in_tree=("NodeResourcesFit",), nodes=("n1",))
    for name in "pq":
        scheduler.handle(None, make_pod(name).req(cpu="2").obj(), 0)
        scheduler.schedule_one(0)
    assert waits(scheduler) == {"q": "unschedulable"}
    scheduler.reject_waiting_pod(P, status.by("A"), SECOND)
    assert waits(scheduler) == want


def test_a_permit_rejection_without_waiting_wakes_no_other_pod() -> None:
    log: Log = []
    says: dict[str, Any] = {}
    recorder = make_recorder("A", log, says, [(ASSIGNED_POD_DELETE, None)])
    scheduler = make_scheduler(recorder, in_tree=("NodeResourcesFit",), nodes=("n1",))
    scheduler.handle(None, make_pod("big").req(cpu="9").obj(), 0)
    scheduler.schedule_one(0)
    recorder.says["permit"] = (unschedulable("no"), 0)
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    assert waits(scheduler) == {"big": "unschedulable", "p": "unschedulable"}


def test_deleting_a_waiting_pod_frees_its_node() -> None:
    scheduler, log = start((WAIT, 10 * SECOND))
    actions = as_tuples(scheduler.handle(scheduler.pods[P], None, 2 * SECOND))
    assert actions[0][3] == "0/1 nodes are available: 1 removed."
    assert kinds(log)[-1] == "A.unreserve"
    assert on_nodes(scheduler) == {}
    assert waits(scheduler) == {}
    assert len(scheduler.waiting_pods) == 0
    assert scheduler.queue.in_flight() == []


def test_a_terminating_waiting_pod_is_rejected_once() -> None:
    scheduler, _ = start((WAIT, 10 * SECOND))
    pod = scheduler.pods[P]
    scheduler.handle(pod, deleting(pod), 2 * SECOND)
    assert on_nodes(scheduler) == {}
    assert len(scheduler.waiting_pods) == 0
    assert waits(scheduler) == {"p": "unschedulable"}
    # Further updates of a terminating pod have no effect.
    assert scheduler.handle(deleting(pod), replace(deleting(pod), status=pod.status), 3 * SECOND) == []


def test_a_rejection_of_a_recreated_waiting_pod_is_ignored() -> None:
    scheduler, _ = start((WAIT, 10 * SECOND))
    scheduler.pods[P] = make_pod("p").uid("another").obj()
    assert scheduler.reject_waiting_pod(P, unschedulable("no"), 2 * SECOND) == []
    assert waits(scheduler) == {}


def test_a_waiting_pod_on_a_deleted_node_can_still_be_deleted() -> None:
    scheduler, _ = start((WAIT, 10 * SECOND))
    scheduler.handle(make_node("n1").obj(), None, 2 * SECOND)
    assert on_nodes(scheduler) == {}
    scheduler.state.check_invariants()
    scheduler.handle(scheduler.pods[P], None, 3 * SECOND)
    assert len(scheduler.waiting_pods) == 0
    assert scheduler.tick(60 * SECOND) == []


def test_a_waiting_victim_is_rejected_instead_of_evicted() -> None:
    log: Log = []
    recorder = make_recorder("A", log, {"permit": (WAIT, 10 * SECOND)})
    scheduler = make_scheduler(recorder, nodes=("n1",), post_filter=True)
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    recorder.says.update(refuses=("n1",), post_filter=(PostFilterResult("n1", (P,)), SUCCESS))
    scheduler.handle(None, make_pod("q").obj(), SECOND)
    report = scheduler.schedule_one(SECOND)
    assert report is not None
    assert as_tuples(report.actions)[2:] == [
        ("nominate", "q", "n1"),
        ("event", "p", "Warning FailedScheduling Scheduling", "waiting on permit for pod: preempted"),
        ("condition", "p", "SchedulerError", "waiting on permit for pod: preempted"),
        (
            "event",
            "p",
            "Normal Preempted Preempting",
            "Preempted by pod default-q on node n1 (in kube-scheduler memory).",
        ),
    ]
    assert on_nodes(scheduler) == {}
    assert waits(scheduler)["p"] == "backoff"
