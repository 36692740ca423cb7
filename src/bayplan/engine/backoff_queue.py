"""The backoff queues: pods that wait after a failed attempt, longer after every failure, up to a maximum.

Pods that a plugin rejected may be popped before their backoff ends (`QueueOptions.pop_from_backoff`), pods whose attempt
ended with an error may not. With that option, time is divided into windows of one second (KEP-5142): pods whose backoff
ends in the same window are ordered as in the active queue, and become ready when the window ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.base.durations import SECOND_NS
from bayplan.engine.heap import PodHeap
from bayplan.engine.queue_options import QueueOptions, first_on_grid
from bayplan.engine.queued_pod import KeyFunction, QueuedPod, SortKey


class BackoffQueue:
    """The pods in backoff, by ``namespace/name``.

    Attributes:
        rejected: pods that a plugin rejected, ordered by the end of their backoff.
        failed: pods whose last attempt ended with an error, ordered by the end of their backoff.
    """

    def __init__(self, options: QueueOptions, sort_key: KeyFunction) -> None:
        self._options = options
        self._sort_key = sort_key
        self.rejected = PodHeap()
        self.failed = PodHeap()

    def __len__(self) -> int:
        return len(self.rejected) + len(self.failed)

    def __contains__(self, key: str) -> bool:
        return key in self.rejected or key in self.failed

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in queue order, rejected ones first. Sorts all of them, so use it for inspection only."""
        yield from self.rejected
        yield from self.failed

    def get(self, key: str) -> QueuedPod | None:
        """Return the pod ``namespace/name``, or None."""
        return self.rejected.get(key) or self.failed.get(key)

    def push(self, queued: QueuedPod) -> None:
        """Add a pod in backoff that is not in the queue yet."""
        if queued.failed_by_error:
            self.failed.push(queued, queued.backoff_expiry_ns or 0)
        else:
            self.rejected.push(queued, self._rejected_key(queued))

    def pop_finished(self, now_ns: int) -> list[QueuedPod]:
        """Remove and return the pods whose backoff has ended."""
        finished = []
        for heap in (self.rejected, self.failed):
            while (queued := heap.peek()) is not None and not self.is_backing_off(queued, now_ns):
                heap.pop()
                finished.append(queued)
        return finished

    def discard(self, key: str) -> bool:
        """Remove a pod; return whether it was in the queue."""
        return self.rejected.discard(key) or self.failed.discard(key)

    def reorder(self, queued: QueuedPod) -> None:
        """Move a queued pod to its new position after the pod changed."""
        # Failed pods are ordered by the end of their backoff only, which stays the same when the pod is updated.
        if queued.key in self.rejected:
            self.rejected.push(queued, self._rejected_key(queued))

    def is_backing_off(self, queued: QueuedPod, now_ns: int) -> bool:
        """Return whether a pod is still in backoff, whatever its tier. Sets `backoff_expiry_ns` if it is unknown."""
        options = self._options
        count = queued.error_count or queued.unschedulable_count
        if not count or not options.max_backoff_ns:
            return False
        expiry_ns = queued.backoff_expiry_ns
        if expiry_ns is None:
            expiry_ns = queued.timestamp_ns + self._duration_ns(count)
            if options.pop_from_backoff:
                expiry_ns -= expiry_ns % SECOND_NS
            queued.backoff_expiry_ns = expiry_ns
        if options.pop_from_backoff:
            now_ns -= now_ns % SECOND_NS
        return expiry_ns >= now_ns

    def next_flush_ns(self, now_ns: int) -> int | None:
        """Return when the backoff timer next finds a pod whose backoff has ended, not before now; None without pods."""
        firsts = [self.rejected.peek(), self.failed.peek()]
        return min([self.first_tick_ns(queued, now_ns) for queued in firsts if queued is not None], default=None)

    def first_tick_ns(self, queued: QueuedPod, earliest_ns: int) -> int:
        """Return the first tick of the backoff timer, not before `earliest_ns`, after a pod's known end of backoff."""
        expiry_ns, start_ns = queued.backoff_expiry_ns or 0, self._options.start_ns
        # Ticks are aligned to the windows if there are any, else to the scheduler's start.
        if self._options.pop_from_backoff:
            start_ns -= start_ns % SECOND_NS
            expiry_ns += SECOND_NS - 1 - expiry_ns % SECOND_NS
        return first_on_grid(max(expiry_ns + 1, earliest_ns), start_ns, SECOND_NS)

    def _rejected_key(self, queued: QueuedPod) -> SortKey:
        expiry_ns = queued.backoff_expiry_ns or 0
        return (expiry_ns, self._sort_key(queued)) if self._options.pop_from_backoff else expiry_ns

    def _duration_ns(self, count: int) -> int:
        options = self._options
        if options.initial_backoff_ns > options.max_backoff_ns >> (count - 1):
            return options.max_backoff_ns
        return options.initial_backoff_ns << (count - 1)
