"""The scheduling queue, operation by operation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.engine.queue import QueueOptions, SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod, uid_of
from bayplan.framework.events import (
    NODE_ADD,
    UNSCHEDULABLE_POD_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    ObjectChange,
)
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import (
    P_WAITS_FOR_NODES,
    PROFILE,
    SECOND,
    P,
    gate,
    gated,
    names,
    places,
    pod,
    popped,
    queue_of,
    rejected,
)

TO_N1 = "n1"


# Pop.


def test_pods_are_popped_by_priority_then_age_then_arrival() -> None:
    queue, _ = queue_of()
    for at, name, priority in ((5, "a", 1), (3, "b", None), (4, "c", 7), (3, "d", 0), (3, "e", -1)):
        queue.add(pod(name, priority=priority), at)
    assert names([popped(queue) for _ in range(5)]) == "cabde"
    assert queue.pop() is None
    assert queue.scheduling_cycle == 5


def test_a_pod_in_backoff_is_popped_when_the_active_queue_is_empty() -> None:
    queue = rejected(P_WAITS_FOR_NODES)
    queue.move_all(NODE_ADD, None, None, 200)
    assert places(queue) == {"backoff": "a"}
    queue.add(pod("b"), 300)
    assert names([popped(queue), popped(queue)]) == "ba"
    assert queue.incoming["active"] == {"UnschedulablePodAdd": 2, "PopFromBackoffQ": 1}


@pytest.mark.parametrize(
    ("plugins", "windows"),
    [
        pytest.param(P, False, id="the gate is off"),
        pytest.param(frozenset[str](), True, id="an error requeued it"),
    ],
)
def test_a_pod_in_backoff_is_not_popped_after_an_error_or_without_the_gate(
    plugins: frozenset[str], windows: bool
) -> None:
    queue = rejected(P_WAITS_FOR_NODES, plugins=plugins, pop_from_backoff=windows)
    queue.move_all(NODE_ADD, None, None, 200)
    assert places(queue) == {"backoff": "a"}
    assert queue.pop() is None


def test_a_duplicate_of_a_pod_in_flight_is_discarded() -> None:
    queue, _ = queue_of()
    queue.add(pod("a"), 0)
    queue.add(pod("b"), 9)
    popped(queue)
    queue.add(pod("a", version="2"), 1)
    assert popped(queue).key == "default/b"
    assert queue.scheduling_cycle == 2


def test_pop_specific_pops_a_pod_out_of_order() -> None:
    queue = rejected()
    queue.add(pod("b", priority=9), 200)
    queued = queue.pop_specific(pod("a"), 300)
    assert queued is not None
    assert (queued.key, queued.attempts, places(queue)) == ("default/a", 2, {"active": "b", "in flight": "a"})
    assert queue.pop_specific(pod("nobody"), 300) is None
    assert gated().pop_specific(pod("a"), 300) is None


def test_a_custom_sort_key_defines_the_order() -> None:
    queue = SchedulingQueue({}, {}, dict[str, Pod]().get, sort_key=lambda queued: (-ord(queued.pod.metadata.name), 0))
    for at, name in enumerate("bca"):
        queue.add(pod(name, priority=at), at)
    assert names([popped(queue) for _ in range(3)]) == "cba"


# Failures.

FAILURES: list[tuple[str, Pod | None, str | None, dict[str, str]]] = [
    ("the pod is as it was", pod("a"), "", {"unschedulable": "a"}),
    ("the pod is gone", None, None, {}),
    ("the pod has a node by now", pod("a", node="n1"), None, {}),
    ("another pod has its name", pod("a", uid="other"), None, {}),
]


@pytest.mark.parametrize(("known", "want", "where"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_a_failed_pod_is_requeued_only_if_it_still_needs_a_node(
    known: Pod | None, want: str | None, where: dict[str, str]
) -> None:
    queue = SchedulingQueue({PROFILE: []}, {}, {"default/a": known}.get)
    queue.add(pod("a"), 0)
    assert queue.fail(popped(queue), 1, unschedulable_plugins=P) == want
    assert places(queue) == where


def test_a_failed_pod_is_requeued_as_its_newest_version() -> None:
    queue, known = queue_of()
    queue.add(pod("a"), 0)
    queued = popped(queue)
    known["default/a"] = pod("a", version="2")
    queue.fail(queued, 1, unschedulable_plugins=P)
    assert [each.pod.metadata.resource_version for each in queue.unschedulable()] == ["2"]


def test_attempts_rejections_and_errors_are_counted() -> None:
    queue, known = queue_of(max_backoff_ns=0)
    known["default/a"] = pod("a")
    queue.add(pod("a"), 0)
    counts = []
    for plugins in ("", "", "P", "Q", ""):
        queued = popped(queue)
        queue.fail(queued, 1, unschedulable_plugins=frozenset(plugins))
        queue.activate([pod("a")], 2)
        counts.append((queued.attempts, queued.unschedulable_count, queued.error_count))
    assert counts == [(1, 0, 1), (2, 0, 2), (3, 1, 0), (4, 2, 0), (5, 2, 1)]


DUPLICATES: list[tuple[str, Callable[[SchedulingQueue], object], str]] = [
    ("active", lambda queue: queue.add(pod("a"), 0), "the active queue"),
    ("unschedulable", lambda queue: None, "unschedulable queue"),
    ("backing off", lambda queue: queue.move_all(NODE_ADD, None, None, 200), "the backoff queue"),
]


@pytest.mark.parametrize(("put", "want"), [row[1:] for row in DUPLICATES], ids=[row[0] for row in DUPLICATES])
def test_requeueing_an_already_queued_pod_is_refused(put: Callable[[SchedulingQueue], object], want: str) -> None:
    queue = rejected(P_WAITS_FOR_NODES)
    put(queue)
    other = QueuedPod(pod("a"), "default/a", "uid-a", 9, 0)
    assert queue.add_unschedulable_if_not_present(other, 300) == f"Pod default/a is already present in {want}"


# Updates and deletions, wherever the pod waits.


def test_updating_an_active_pod_reorders_the_queue() -> None:
    queue, _ = queue_of()
    queue.add(pod("a", priority=1), 0)
    queue.add(pod("b", priority=2), 0)
    queue.update(pod("a", priority=1), pod("a", priority=3), 5)
    assert names(queue.active()) == "ab"
    assert queue.active()[0].timestamp_ns == 0


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    queue, _ = queue_of()
    queue.update(pod("a"), pod("a", version="2"), 5)
    assert places(queue) == {"active": "a"}


UPDATES: list[tuple[str, Pod, int, str]] = [
    ("no pod waits for the event", pod("a", tolerations=1), 200, "unschedulable"),
    ("its plugin waits for that, and it backs off", pod("a", x="1"), 200, "backoff"),
    ("its plugin waits for that", pod("a", x="1"), 5 * SECOND, "active"),
]


@pytest.mark.parametrize(("new", "now_ns", "want"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_an_update_of_an_unschedulable_pod_calls_the_hints(new: Pod, now_ns: int, want: str) -> None:
    label = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
    queue = rejected((label, "P", None))
    queue.update(pod("a"), new, now_ns)
    assert places(queue) == {want: "a"}


def pod_in_both_places(gates: set[str]) -> SchedulingQueue:
    """Return a queue that lists pod a as backing off and as unschedulable, as upstream does without the gate."""
    label = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
    queue = SchedulingQueue(
        {PROFILE: [(label, "P", None), (NODE_ADD, "P", None)]},
        {PROFILE: [("G", gate(lambda pod: pod.metadata.name not in gates))]},
        {"default/a": pod("a")}.get,
        options=QueueOptions(pop_from_backoff=False),
    )
    queue.add(pod("a"), 0)
    queue.fail(popped(queue), 100, unschedulable_plugins=P)
    queue.update(pod("a"), pod("a", x="1", tolerations=1), 200)
    assert places(queue) == {"backoff": "a", "unschedulable": "a"}
    return queue


def test_activating_a_pod_removes_it_from_both_backoff_and_unschedulable() -> None:
    queue = pod_in_both_places(set())
    queue.move_all(NODE_ADD, None, None, 9 * SECOND)
    assert places(queue) == {"active": "a"}


def test_deleting_a_pod_in_both_tiers_removes_it_only_from_backoff() -> None:
    queue = pod_in_both_places(set())
    queue.delete(pod("a"))
    assert places(queue) == {"unschedulable": "a"}


def test_a_pod_in_both_tiers_stays_in_both_when_it_becomes_gated() -> None:
    """Found by comparing with the real queue: the pod was left in the group of pods without gate."""
    gates = set[str]()
    queue = pod_in_both_places(gates)
    gates.add("a")
    queue.activate([pod("a")], 300)
    assert places(queue) == {"backoff": "a", "unschedulable": "a"}
    assert queue.pending_counts() == {"active": 0, "backoff": 1, "unschedulable": 0, "gated": 1}


DELETIONS: list[tuple[str, Callable[[], SchedulingQueue]]] = [
    ("active", lambda: _with_active()),
    ("unschedulable", rejected),
    ("gated", gated),
    ("unknown", lambda: queue_of()[0]),
]


def _with_active() -> SchedulingQueue:
    queue, _ = queue_of()
    queue.add(pod("a"), 0)
    return queue


@pytest.mark.parametrize("make", [row[1] for row in DELETIONS], ids=[row[0] for row in DELETIONS])
def test_a_deleted_pod_is_removed_from_every_tier(make: Callable[[], SchedulingQueue]) -> None:
    queue = make()
    queue.delete(pod("a"))
    assert (places(queue), len(queue), queue.get("default/a")) == ({}, 0, None)
    assert queue.next_flush_ns(0) is None


def test_a_deleted_pod_stays_in_flight_until_done() -> None:
    queue, _ = queue_of()
    queue.add(pod("a"), 0)
    queued = popped(queue)
    queue.delete(pod("a"))
    assert places(queue) == {"in flight": "a"}
    queue.done(queued.uid)
    assert places(queue) == {}


# Time.


def test_next_flush_is_early_enough_for_every_queue_move() -> None:
    queue, known = queue_of(max_in_unschedulable_ns=40 * SECOND)
    failures = (("a", P), ("b", frozenset[str]()), ("c", P))
    for name, plugins in failures:
        known[f"default/{name}"] = pod(name)
        queue.add(pod(name), 0)
        queue.fail(popped(queue), 0, unschedulable_plugins=plugins)
    woken: list[tuple[float, str]] = []
    now_ns = 0
    while (tick_ns := queue.next_flush_ns(now_ns)) is not None:
        now_ns = tick_ns
        queue.flush_backoff(now_ns)
        queue.flush_unschedulable(now_ns)
        woken.append((now_ns / SECOND, names(queue.active())))
        while queue.pop():
            pass
    assert woken == [(2, "b"), (60, "ac")]


@pytest.mark.parametrize(
    ("longest_s", "want_s"),
    [
        pytest.param(29, 30, id="younger than the tick"),
        pytest.param(30, 60, id="exactly as old as allowed at the tick: the next one"),
        pytest.param(300, 330, id="the default"),
    ],
)
def test_a_pod_unschedulable_for_too_long_is_moved_at_the_next_tick(longest_s: int, want_s: int) -> None:
    queue, known = queue_of(max_in_unschedulable_ns=longest_s * SECOND)
    known["default/a"] = pod("a")
    queue.add(pod("a"), 0)
    queue.fail(popped(queue), 0, unschedulable_plugins=P)
    assert queue.next_flush_ns(0) == want_s * SECOND
    assert queue.flush_unschedulable((want_s - 30) * SECOND) == 0
    assert queue.flush_unschedulable(want_s * SECOND) == 1


def test_an_overdue_gated_pod_schedules_one_flush_unless_pods_are_in_flight() -> None:
    queue = gated(max_in_unschedulable_ns=SECOND)
    assert queue.next_flush_ns(0) == 30 * SECOND
    assert queue.flush_unschedulable(30 * SECOND) == 0
    assert queue.get("default/a") is not None
    assert queue.unschedulable()[0].flushed
    assert queue.next_flush_ns(30 * SECOND) is None
    queue.add(pod("b"), 31 * SECOND)
    popped(queue)
    assert queue.next_flush_ns(30 * SECOND) == 60 * SECOND
    queue.flush_unschedulable(60 * SECOND)
    events = [each.event.label for each in queue.in_flight() if isinstance(each, ObjectChange)]
    assert events == ["UnschedulableTimeout"]


def test_a_closed_queue_can_still_be_drained() -> None:
    queue, _ = queue_of()
    queue.add(pod("a"), 0)
    queue.add(pod("b"), 0)
    popped(queue)
    queue.close()
    assert (queue.closed, places(queue)) == (True, {"active": "b"})
    assert popped(queue).key == "default/b"
    assert queue.pop() is None


# Nominations.


def test_a_nomination_in_the_status_applies_from_the_start_and_survives_the_pop() -> None:
    queue, known = queue_of()
    known["default/a"] = pod("a", nominated="n1")
    queue.add(known["default/a"], 0)
    queued = popped(queue)
    assert [*queue.nominator.on_node("n1").values()] == ["default/a"]
    queue.fail(queued, 1, unschedulable_plugins=P)
    assert len(queue.nominator.on_node("n1")) == 1


def test_a_failure_without_a_nomination_clears_the_schedulers_earlier_one() -> None:
    queue, known = queue_of(max_backoff_ns=0)
    known["default/a"] = pod("a")
    queue.add(pod("a"), 0)
    queue.fail(popped(queue), 1, nominated_node_name=TO_N1)
    assert queue.nominator.node_by_uid == {"uid-a": "n1"}
    queue.fail(popped(queue), 2)
    assert queue.nominator.node_by_uid == {}


def test_deleting_a_pod_removes_its_nomination() -> None:
    queue, known = queue_of()
    known["default/a"] = pod("a")
    queue.nominator.add(pod("a"), TO_N1)
    queue.nominator.update(pod("a"), pod("a", version="2"))
    assert queue.nominator.node_by_uid == {"uid-a": "n1"}
    queue.delete(pod("a"))
    assert queue.nominator.node_by_uid == {}
    queue.nominator.add(pod("a"), TO_N1)
    queue.nominator.remove(uid_of(pod("a")))
    assert queue.nominator.node_by_uid == {}


def test_a_pod_moved_by_an_added_pod_loses_its_unpublished_nomination() -> None:
    queue = rejected((UNSCHEDULABLE_POD_ADD, "P", None))
    queue.nominator.add(pod("a"), TO_N1)
    queue.move_all(UNSCHEDULABLE_POD_ADD, None, pod("b"), 5 * SECOND)
    assert (places(queue), queue.nominator.node_by_uid) == ({"active": "a"}, {})
