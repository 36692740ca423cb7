"""The work queue of the controller manager: order, duplicates, alarms and delays."""

from __future__ import annotations

from typing import cast

import pytest

from bayplan.base.durations import SECOND_NS
from bayplan.controllers.controller import Controller
from bayplan.controllers.job import JobController
from bayplan.controllers.node_lifecycle import NodeLifecycleController
from bayplan.controllers.persistent_volumes import PersistentVolumeController
from bayplan.controllers.pod_gc import PodGarbageCollector
from bayplan.controllers.work_queue import Work, WorkQueue


def work(key: str) -> Work:
    return cast("Controller", Controller), key


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


@pytest.mark.parametrize(
    ("controller", "want"),
    [
        (Controller, [0.005 * 2**power for power in range(18)] + [1000, 1000, 0.005, 0.01]),
        (JobController, [1, 2, 4, 8, 16, 32, *[60] * 14, 1, 2]),
        (PersistentVolumeController, [15] * 4),
        (PodGarbageCollector, [20] * 4),
        (NodeLifecycleController, [5] * 4),
    ],
)
def test_delays_of_failed_work_double_up_to_a_limit_until_it_succeeds(
    controller: type[Controller], want: list[float]
) -> None:
    queue = WorkQueue()
    failed = cast("Controller", controller), "a"
    waits, now_ns = [], 0
    for number in range(len(want)):
        if number == len(want) - 2:
            queue.reset_delay(failed)
        queue.retry(failed, now_ns)
        wakeup_ns = queue.next_wakeup()
        assert wakeup_ns is not None
        waits.append((wakeup_ns - now_ns) / SECOND_NS)
        now_ns = wakeup_ns
        assert woken(queue, now_ns) == ["a"]
    assert waits == want
