"""The work queue of the controller manager: order, duplicates, alarms and delays."""

from __future__ import annotations

from typing import cast

from bayplan.base.durations import SECOND_NS
from bayplan.controllers.controller import Controller
from bayplan.controllers.work_queue import Work, WorkQueue


def work(key: str) -> Work:
    return cast("Controller", None), key


def woken(queue: WorkQueue, now_ns: int) -> list[str]:
    """Return the keys that are waiting at a time, in order, and remove them."""
    queue.wake(now_ns)
    queue.due_ns = None
    return [queue.pop()[1] for _ in range(len(queue))]


def test_work_waits_once_and_in_the_order_in_which_it_was_added() -> None:
    queue = WorkQueue()
    for key in "bacab":
        queue.add(work(key))
    assert queue.next_wakeup() is None
    queue.schedule(5)
    queue.schedule(7)
    assert queue.next_wakeup() == 5
    assert woken(queue, 0) == ["b", "a", "c"]
    queue.add(work("a"))
    assert woken(queue, 0) == ["a"]


def test_the_earliest_alarm_of_work_counts() -> None:
    queue = WorkQueue()
    for time_ns in (20, 10, 30):
        queue.add_at(work("a"), time_ns)
    queue.add_at(work("b"), 15)
    assert queue.next_wakeup() == 10
    assert (woken(queue, 9), woken(queue, 10)) == ([], ["a"])
    queue.add_at(work("a"), 40)
    assert (woken(queue, 30), woken(queue, 40)) == (["b"], ["a"])


def test_delays_of_failed_work_double_up_to_16_seconds_until_it_succeeds() -> None:
    queue = WorkQueue()
    waits, now_ns = [], 0
    for number in range(10):
        if number == 8:
            queue.reset_delay(work("a"))
        queue.retry(work("a"), now_ns)
        wakeup_ns = queue.next_wakeup()
        assert wakeup_ns is not None
        waits.append((wakeup_ns - now_ns) / SECOND_NS)
        now_ns = wakeup_ns
        assert woken(queue, now_ns) == ["a"]
    assert waits == [0.25, 0.5, 1, 2, 4, 8, 16, 16, 0.25, 0.5]
