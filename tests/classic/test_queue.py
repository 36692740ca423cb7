"""The classic queue: activeQ, podBackoffQ, unschedulableQ, cycle by cycle and second by second."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.classic.pod_backoff import PodBackoffMap
from bayplan.classic.queue import IN_ACTIVE, IN_BACKOFF, IN_UNSCHEDULABLE, ClassicQueue, is_pod_updated
from bayplan.engine.queued_pod import QueuedPod
from bayplan.objects.pod import Pod
from bayplan.testing.builders import make_pod
from tests.engine.queue_pods import SECOND, pod

AFFINE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def _queue(*pods: Pod) -> tuple[ClassicQueue, dict[str, Pod]]:
    known = {item.key: item for item in pods}
    queue = ClassicQueue({}, {}, known.get)
    for item in pods:
        queue.add(item, 0)
    return queue, known


def _popped(queue: ClassicQueue) -> QueuedPod:
    queued = queue.pop()
    assert queued is not None
    return queued


def _where(queue: ClassicQueue) -> dict[str, str]:
    lists = {"active": queue.active(), "backoff": queue.backing_off(), "unschedulable": queue.unschedulable()}
    return {queued.pod.metadata.name: name for name, queues in lists.items() for queued in queues}


# Backoff.


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (100, 10)], ids=str
)
def test_backoff_doubles_from_one_second_to_ten(attempts: int, seconds: int) -> None:
    backoff = PodBackoffMap()
    for _ in range(attempts):
        backoff.backoff_pod("default/p", 5 * SECOND)
    assert backoff.backoff_time_ns("default/p") == (5 + seconds) * SECOND


def test_unknown_and_cleared_pods_have_no_backoff() -> None:
    backoff = PodBackoffMap()
    assert backoff.backoff_time_ns("default/p") is None
    backoff.backoff_pod("default/p", 0)
    backoff.clear("default/p")
    assert backoff.backoff_time_ns("default/p") is None


@pytest.mark.parametrize(("now", "known"), [(20 * SECOND, True), (20 * SECOND + 1, False)])
def test_backoff_entries_expire_after_twice_the_maximum_backoff(now: int, known: bool) -> None:
    backoff = PodBackoffMap()
    backoff.backoff_pod("default/p", 0)
    backoff.clean_up(now)
    assert ("default/p" in backoff.attempts) is known


def test_a_failure_during_the_backoff_is_not_counted() -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), 0)
    queue.move_all_to_active_queue(2 * SECOND)
    queue.fail(_popped(queue), 2 * SECOND)
    assert queue.pod_backoff.attempts == {"default/p": 2}
    queue.move_all_to_active_queue(3 * SECOND)
    assert _where(queue) == {"p": "backoff"}
    queue.update(queue.backing_off()[0].pod, pod("p", version="2"), 3 * SECOND)
    queue.fail(_popped(queue), 3 * SECOND)
    assert queue.pod_backoff.attempts == {"default/p": 2}


# Which part of the queue a failed pod enters.


def test_a_failed_pod_becomes_unschedulable() -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), 0)
    assert (queue.scheduling_cycle, queue.move_request_cycle) == (1, -1)
    assert _where(queue) == {"p": "unschedulable"}


@pytest.mark.parametrize(("cycle", "where"), [(None, "unschedulable"), (1, "backoff"), (2, "unschedulable")], ids=str)
def test_a_failed_pod_backs_off_if_a_move_was_requested_since_its_cycle(cycle: int | None, where: str) -> None:
    queue, _ = _queue(pod("p"), pod("q"))
    first = _popped(queue)
    queue.move_all_to_active_queue(0)
    assert queue.move_request_cycle == 1
    _popped(queue)
    queue.add_unschedulable_if_not_present(first, 0, scheduling_cycle=cycle)
    assert _where(queue) == {"p": where}


def test_a_deleted_or_bound_pod_is_not_requeued() -> None:
    queue, known = _queue(pod("p"), pod("q"))
    first, second = _popped(queue), _popped(queue)
    del known["default/p"]
    known["default/q"] = pod("q", node="n1")
    assert queue.fail(first, 0) is None
    assert queue.fail(second, 0) is None
    assert len(queue) == 0


def test_a_queued_pod_is_not_requeued() -> None:
    queue, known = _queue(pod("p"))
    queued = _popped(queue)
    assert queue.add_unschedulable_if_not_present(queued, 0) == ""
    assert queue.add_unschedulable_if_not_present(queued, 0) == IN_UNSCHEDULABLE
    queue.move_all_to_active_queue(0)
    assert queue.add_unschedulable_if_not_present(queued, 0) == IN_BACKOFF
    queue.flush_backoff(SECOND)
    assert queue.add_unschedulable_if_not_present(queued, 0) == IN_ACTIVE
    assert list(known) == ["default/p"]


# Order.


def test_pods_are_popped_by_priority_then_age() -> None:
    queue, _ = _queue()
    for time, (name, priority) in enumerate((("late", 0), ("high", 5), ("later", 0))):
        queue.add(pod(name, priority=priority), time)
    assert [_popped(queue).pod.metadata.name for _ in range(3)] == ["high", "late", "later"]
    assert queue.pop() is None


def test_a_failure_renews_the_timestamp_used_for_sorting() -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), SECOND)
    queue.add(pod("q"), SECOND // 2)
    queue.move_all_to_active_queue(9 * SECOND)
    assert [_popped(queue).pod.metadata.name for _ in range(2)] == ["q", "p"]


# Events and flushes.


@pytest.mark.parametrize(("now", "where"), [(SECOND - 1, "backoff"), (SECOND, "active")])
def test_a_moved_pod_waits_for_the_end_of_its_backoff(now: int, where: str) -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), 0)
    assert queue.move_all_to_active_queue(now) == 1
    assert _where(queue) == {"p": where}


def test_pods_leave_backoff_in_the_order_of_their_expiry() -> None:
    queue, _ = _queue(pod("p"), pod("q"))
    first, second = _popped(queue), _popped(queue)
    queue.fail(first, 0)
    queue.fail(second, SECOND // 2)
    queue.move_all_to_active_queue(SECOND // 2)
    assert queue.next_flush_ns(SECOND // 2) == SECOND
    assert queue.flush_backoff(SECOND - 1) == 0
    assert queue.flush_backoff(SECOND) == 1
    assert _where(queue) == {"p": "active", "q": "backoff"}
    assert queue.next_flush_ns(SECOND) == 2 * SECOND
    assert queue.flush_backoff(2 * SECOND) == 1


@pytest.mark.parametrize(("now", "moved"), [(60 * SECOND, 0), (60 * SECOND + 1, 1)])
def test_unschedulable_pods_are_retried_after_a_minute(now: int, moved: int) -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), 0)
    assert queue.flush_unschedulable(now) == moved
    # The timer runs every 30 s.
    if not moved:
        assert queue.next_flush_ns(now) == 90 * SECOND


def test_an_empty_flush_does_not_count_as_a_move_request() -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), 0)
    queue.flush_unschedulable(SECOND)
    assert queue.move_request_cycle == -1


@pytest.mark.parametrize(("app", "where"), [("a", "active"), ("b", "unschedulable")])
def test_an_assigned_pod_moves_pods_with_matching_affinity(app: str, where: str) -> None:
    waiting = make_pod("p").spec(affinity=AFFINE).obj()
    queue, _ = _queue(waiting, pod("q"))
    queue.fail(_popped(queue), 0)
    queue.fail(_popped(queue), 0)
    queue.assigned_pod_added(make_pod("r").label(app=app).node("n1").obj(), 9 * SECOND)
    assert _where(queue) == {"p": where, "q": "unschedulable"}
    # The cycle of the move request is recorded for pods that fail later, even if no pod moved.
    assert queue.move_request_cycle == 2


# Updates and deletions.


@pytest.mark.parametrize(
    ("new", "updated"),
    [
        pytest.param(pod("p", version="2"), False, id="resource version"),
        pytest.param(pod("p", version="2", nominated="n1"), False, id="status"),
        pytest.param(pod("p", version="2", app="a"), True, id="labels"),
        pytest.param(pod("p", version="2", tolerations=1), True, id="specification"),
    ],
)
def test_changes_of_only_status_and_version_are_not_updates(new: Pod, updated: bool) -> None:
    old = pod("p")
    assert is_pod_updated(old, new) is updated
    queue, _ = _queue(old)
    queue.fail(_popped(queue), 0)
    queue.update(old, new, 0)
    assert _where(queue) == {"p": "active" if updated else "unschedulable"}
    assert queue.pod_backoff.attempts == ({} if updated else {"default/p": 1})


def test_an_update_ends_the_backoff() -> None:
    old = pod("p")
    queue, _ = _queue(old)
    queue.fail(_popped(queue), 0)
    queue.move_all_to_active_queue(0)
    queue.update(old, pod("p", version="2"), 0)
    assert _where(queue) == {"p": "active"}


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    queue, _ = _queue()
    queue.update(pod("p"), pod("p", version="2"), 0)
    assert _where(queue) == {"p": "active"}


@pytest.mark.parametrize(("fails", "remembered"), [(True, False), (False, True)])
def test_deleting_a_pod_clears_its_backoff_unless_it_was_active(fails: bool, remembered: bool) -> None:
    queue, _ = _queue(pod("p"))
    queued = _popped(queue)
    queue.fail(queued, 0)
    if not fails:
        queue.move_all_to_active_queue(SECOND)
    queue.delete(pod("p"))
    assert len(queue) == 0
    assert bool(queue.pod_backoff.attempts) is remembered


def test_adding_a_queued_pod_moves_it_to_the_active_queue() -> None:
    queue, _ = _queue(pod("p"))
    queue.fail(_popped(queue), 0)
    queue.add(pod("p", version="2"), 0)
    assert _where(queue) == {"p": "active"}
    queue.add_if_not_present(pod("p", version="3"), 0)
    assert queue.active()[0].pod.metadata.resource_version == "2"


# Nominations.


def test_nominations_follow_updates_and_deletions() -> None:
    nominated = pod("p", nominated="n1")
    queue, known = _queue(nominated)
    assert [*queue.nominator.on_node("n1").values()] == ["default/p"]
    queue.update(nominated, pod("p", version="2", nominated="n2"), 0)
    assert [*queue.nominator.on_node("n2").values()] == ["default/p"]
    queue.delete(known["default/p"])
    assert not list(queue.nominator.on_node("n2"))


def test_a_failed_pod_is_requeued_as_its_newest_version() -> None:
    queue, known = _queue(pod("p"))
    queued = _popped(queue)
    known["default/p"] = replace(known["default/p"], spec=replace(known["default/p"].spec, priority=7))
    queue.fail(queued, 0)
    assert queue.unschedulable()[0].pod.spec.priority == 7
