"""A scheduling queue that threads share: one lock around it, and a pop that waits until there is a pod.

The queue itself knows no lock, thread or clock. Whoever wants something of it opens it, and has it alone meanwhile; the lock may as
well guard the scheduler that the queue belongs to. It is for programs that build on this package, with threads of their own
(docs/queue.md): the hosts here give the scheduler one thread instead (`bayplan.live.engine_host`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from time import monotonic

from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.objects.pod import Pod


class BlockingQueue:
    """A `SchedulingQueue` for threads.

    Args:
        queue: from now on to be used through this object alone.
    """

    def __init__(self, queue: SchedulingQueue) -> None:
        self._queue = queue
        # Its lock can be taken again by the thread that has it.
        self._changed = Condition()

    @contextmanager
    def open(self) -> Iterator[SchedulingQueue]:
        """Give the queue to one thread alone; threads that wait for a pod are woken afterwards if there is one.

        A thread may open the queue again while it has it.
        """
        with self._changed:
            try:
                yield self._queue
            finally:
                if self._queue.has_next:
                    self._changed.notify_all()

    def add(self, pod: Pod, now_ns: int) -> None:
        """Take in a pod that is new in the cluster; see `SchedulingQueue.add`."""
        with self.open() as queue:
            queue.add(pod, now_ns)

    def done(self, uid: str) -> None:
        """Note that an attempt is over; see `SchedulingQueue.done`."""
        with self.open() as queue:
            queue.done(uid)

    def pop(self, timeout_s: float | None = None) -> QueuedPod | None:
        """Return the next pod, which is in flight from now on; wait for one while there is none.

        None says that the queue is closed and empty, or that the time is over.
        """
        deadline = None if timeout_s is None else monotonic() + timeout_s
        with self._changed:
            while self.wait(None if deadline is None else deadline - monotonic()):
                # None comes out where all that waited is in flight already under another record: that is thrown away.
                queued = self._queue.pop()
                if queued is not None:
                    return queued
            return None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a pod can be popped; False says that the queue is closed and empty, or that the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue.has_next or self._queue.closed, timeout_s)
            return self._queue.has_next

    def close(self) -> None:
        """End all waiting. What is in the queue can still be popped."""
        with self._changed:
            self._queue.close()
            self._changed.notify_all()
