"""A thread with an inbox: it sleeps while nothing is to be done, and no notification is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from bayplan.live.job_thread import JobThread


class Worker:
    """A thread whose slices run all jobs, and then `afterwards`."""

    def __init__(self, afterwards: Callable[[], None] = lambda: None, rest: float | None = None) -> None:
        self.slices = 0
        self._afterwards = afterwards
        self.thread = JobThread(self._slice, lambda: rest)

    def _slice(self) -> bool:
        for job in self.thread.take_jobs():
            job()
        self.slices += 1
        self._afterwards()
        return False


def test_jobs_run_in_order_on_the_thread() -> None:
    worker, done, ran = Worker(), threading.Event(), list[object]()
    ran.append(worker.thread.is_caller)
    worker.thread.start("worker")
    ran.append(worker.thread.is_caller)
    for number in range(3):
        worker.thread.put(partial(lambda number: ran.append((number, worker.thread.is_caller)), number))
    worker.thread.put(done.set)
    assert done.wait(30)
    assert ran == [True, False, (0, True), (1, True), (2, True)]
    worker.thread.stop(30)


def test_a_job_that_a_job_adds_waits_for_the_next_slice() -> None:
    worker, seen = Worker(), list[int]()
    worker.thread.put(lambda: worker.thread.put(lambda: seen.append(worker.slices)))
    worker._slice()
    assert worker.thread.has_jobs
    assert seen == []
    worker._slice()
    assert seen == [1]


def test_a_notification_during_a_slice_requires_another_slice() -> None:
    second = threading.Event()

    def afterwards() -> None:
        # The slice has seen everything, and the thread does not sleep yet.
        if worker.slices == 1:
            worker.thread.notify()
        else:
            second.set()

    worker = Worker(afterwards)
    worker.thread.start("worker")
    assert second.wait(30)
    worker.thread.stop(30)


def test_a_thread_wakes_after_its_rest() -> None:
    third = threading.Event()
    worker = Worker(lambda: third.set() if worker.slices == 3 else None, rest=0.001)
    worker.thread.start("worker")
    assert third.wait(30)
    worker.thread.stop(30)


def test_a_slice_that_takes_too_long_is_abandoned() -> None:
    begun, go_on = threading.Event(), threading.Event()
    worker = Worker()
    worker.thread.start("worker")
    worker.thread.put(lambda: (begun.set(), go_on.wait(30)))  # type: ignore[arg-type, func-returns-value]
    assert begun.wait(30)
    worker.thread.stop(0.01)
    go_on.set()
    worker.thread.stop(30)
    assert not any(thread.name == "worker" for thread in threading.enumerate())
