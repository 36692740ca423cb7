"""A scheduling queue for threads: one lock, the time of a clock, and a `pop` that blocks until a pod is ready.

`bayplan.engine` has no lock, thread or clock. This module adds them for programs whose threads share a queue
(docs/queue.md). It works with `SchedulingQueue` and with `ClassicQueue`. It starts no thread: a thread that waits in
`pop` also runs the timers that end backoffs and retry pods that have been unschedulable for too long. `bayplan
schedule` and `bayplan up` don't use it: their whole scheduler, queue included, runs on one thread
(`bayplan.live.scheduler_thread`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Condition
from time import monotonic
from types import TracebackType

from bayplan.base.clock import Clock
from bayplan.engine.queue import PreCheck, SchedulingQueue
from bayplan.engine.queue_options import FLUSH_UNSCHEDULABLE_PERIOD_NS
from bayplan.engine.queued_pod import NO_PLUGINS, QueuedPod
from bayplan.framework.events import ClusterEvent
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


class BlockingQueue:
    """A `SchedulingQueue` that any thread may use. Leaving a ``with`` block closes it.

    Args:
        queue: the queue, afterwards used only through this object. Its `QueueOptions.start_ns` should be the time at
            which it was created: its timers count from that time.
        clock: the clock of all calls; the machine's time if not given.

    Attributes:
        clock: the clock of all calls.
    """

    def __init__(self, queue: SchedulingQueue, clock: Clock | None = None) -> None:
        self.clock = Clock() if clock is None else clock
        self._queue = queue
        # Reentrant: a thread may use the queue inside `open`.
        self._changed = Condition()
        self._open_depth = 0
        # The next due time of a timer, computed after each use: `next_flush_ns` skips instants before its argument.
        self._used_ns = self.clock.now_ns()
        self._due_ns = queue.next_flush_ns(self._used_ns)
        self.clock.on_change(self._wake_all)

    def __enter__(self) -> BlockingQueue:
        """Return this object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close the queue."""
        self.close()

    def __len__(self) -> int:
        """Return the number of pods in the queue, excluding those in flight."""
        with self.open() as queue:
            return len(queue)

    # Any use of the queue.

    @contextmanager
    def open(self) -> Iterator[SchedulingQueue]:
        """Lock the queue and return it, for operations that this class does not have.

        Waiting threads are woken if necessary.

        Timers that are due run first. The lock can guard more than the queue, for example the `Scheduler` that the
        queue belongs to. A thread that has opened the queue may open it again, but not wait for a pod.
        """
        with self._changed:
            opened_ns = self._run_timers()
            self._open_depth += 1
            try:
                yield self._queue
            finally:
                self._open_depth -= 1
                self._used_ns, due_ns = self.clock.now_ns(), self._due_ns
                self._due_ns = self._queue.next_flush_ns(opened_ns)
                # Wake threads that sleep until a later time.
                if self._queue.has_next or self._due_ns != due_ns:
                    self._changed.notify_all()

    def add(self, pod: Pod) -> None:
        """Add a new pod; see `SchedulingQueue.add`."""
        with self.open() as queue:
            queue.add(pod, self.clock.now_ns())

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod that has no node by a newer version; see `SchedulingQueue.update`."""
        with self.open() as queue:
            queue.update(old, new, self.clock.now_ns())

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound elsewhere; see `SchedulingQueue.delete`."""
        with self.open() as queue:
            queue.delete(pod)

    def move_all(
        self,
        event: ClusterEvent,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        pre_check: PreCheck | None = None,
    ) -> int:
        """Move the unschedulable pods that an event may help; return their number. See `SchedulingQueue.move_all`."""
        with self.open() as queue:
            return queue.move_all(event, old, new, self.clock.now_ns(), pre_check)

    def activate(self, pods: Iterable[Pod]) -> int:
        """Move pods to the active queue at once; return their number. See `SchedulingQueue.activate`."""
        with self.open() as queue:
            return queue.activate(pods, self.clock.now_ns())

    # Start and end of attempts.

    def pop(self, timeout_s: float | None = None) -> QueuedPod | None:
        """Return the next pod and put it in flight; block until a pod is ready.

        Return None if the queue is closed and no pod is ready, or after `timeout_s` seconds of real time.

        Raises:
            RuntimeError: this thread has the queue open.
        """
        deadline = None if timeout_s is None else monotonic() + timeout_s
        with self._changed:
            while self._wait(deadline):
                with self.open() as queue:
                    queued = queue.pop()
                # None means that the pod is already in flight under another record, which `pop` discards.
                if queued is not None:
                    return queued
            return None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until a pod is ready and return True; return False if the queue is closed, or after the timeout.

        Another thread may take that pod first: `open` the queue and check.

        Raises:
            RuntimeError: this thread has the queue open.
        """
        with self._changed:
            return self._wait(None if timeout_s is None else monotonic() + timeout_s)

    def done(self, uid: str) -> None:
        """End an attempt; see `SchedulingQueue.done`."""
        with self.open() as queue:
            queue.done(uid)

    def fail(
        self,
        queued: QueuedPod,
        *,
        unschedulable_plugins: frozenset[str] = NO_PLUGINS,
        pending_plugins: frozenset[str] = NO_PLUGINS,
    ) -> str | None:
        """Return a popped pod whose attempt failed to the queue; see `SchedulingQueue.fail`."""
        with self.open() as queue:
            return queue.fail(
                queued,
                self.clock.now_ns(),
                unschedulable_plugins=unschedulable_plugins,
                pending_plugins=pending_plugins,
            )

    def close(self) -> None:
        """Wake all waiting threads and stop the timers. Ready pods can still be popped."""
        with self._changed:
            self._queue.close()
            self._changed.notify_all()

    # Waiting and timers.

    def _wait(self, deadline: float | None) -> bool:
        """Block until a pod is ready; return False if the queue is closed or `deadline` (by `monotonic`) has passed."""
        if self._open_depth:
            raise RuntimeError(
                "a thread can't wait for a pod while it has the queue open; leave the `with` block of open() first"
            )
        while True:
            self._run_timers()
            if self._queue.has_next or self._queue.closed:
                return self._queue.has_next
            left_s = None if deadline is None else deadline - monotonic()
            if left_s is not None and left_s <= 0:
                return False
            due_s = None if self._due_ns is None else self.clock.real_seconds_until(self._due_ns)
            self._changed.wait(min((each for each in (left_s, due_s) if each is not None), default=None))

    def _run_timers(self) -> int:
        """Run the timers for each instant at which they were due; return the current time (ns)."""
        now_ns = self.clock.now_ns()
        while self._due_ns is not None and self._due_ns <= now_ns and not self._queue.closed:
            due_ns = self._due_ns
            # The queue's time never goes backwards: a timer that was due while the queue was open runs after that.
            at_ns = max(due_ns, self._used_ns)
            moved = self._queue.flush_backoff(at_ns)
            if (due_ns - self._queue.options.start_ns) % FLUSH_UNSCHEDULABLE_PERIOD_NS == 0:
                moved += self._queue.flush_unschedulable(at_ns)
            # If many instants were missed (the machine slept, or the clock was set), running the last ones has the same
            # effect.
            self._due_ns = self._queue.next_flush_ns(max(due_ns + 1, now_ns - FLUSH_UNSCHEDULABLE_PERIOD_NS + 1))
            if moved:
                self._changed.notify_all()
        return now_ns

    def _wake_all(self) -> None:
        with self._changed:
            self._changed.notify_all()
