"""Completion indexes of Indexed Jobs: which have succeeded, which have failed permanently, and which to start next.

An index is a number below ``spec.completions``. Sets of indexes are stored and written as intervals (``0-3,7``), as in
``status.completedIndexes``, so that a Job with 100,000 completions stays small if they complete in order.

Source: KEP-2214 and KEP-3850.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from heapq import heappop, heappush

from bayplan.base.go_arithmetic import whole_number
from bayplan.objects.pod import Pod

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


def completion_index(pod: Pod) -> int:
    """Return the completion index of a pod; -1 if it has none."""
    text = pod.metadata.annotations.get(INDEX_ANNOTATION, "")
    return whole_number(text) if text.isascii() and text.isdecimal() else -1


class IndexSet:
    """A set of indexes, stored as disjoint intervals in ascending order."""

    def __init__(self, text: str = "") -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._size = 0
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            self.add(whole_number(first), whole_number(last or first))

    def __len__(self) -> int:
        return self._size

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self._firsts, index) - 1
        return position >= 0 and index <= self._lasts[position]

    def add(self, first: int, last: int | None = None) -> None:
        """Add an index, or all indexes from the first to the last; adding an index again has no effect."""
        last = first if last is None else last
        if last < first:
            return
        # Merge the new interval with the intervals that it overlaps or touches.
        begin = bisect_left(self._lasts, first - 1)
        end = bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        held = sum(b - a + 1 for a, b in zip(self._firsts[begin:end], self._lasts[begin:end], strict=True))
        self._size += last - first + 1 - held
        self._firsts[begin:end] = [first]
        self._lasts[begin:end] = [last]

    def next_free(self, index: int) -> int:
        """Return the smallest index, at least `index`, that is not in the set."""
        position = bisect_right(self._firsts, index) - 1
        return self._lasts[position] + 1 if position >= 0 and index <= self._lasts[position] else index

    def __str__(self) -> str:
        """Write the intervals as the API does: ``0,1`` for two neighbours, ``0-2`` for more."""
        parts = []
        for first, last in zip(self._firsts, self._lasts, strict=True):
            if first == last:
                parts.append(str(first))
            else:
                parts.append(f"{first},{last}" if last == first + 1 else f"{first}-{last}")
        return ",".join(parts)


class PendingIndexes:
    """Allocates the smallest indexes that have no active pod and have neither succeeded nor failed.

    Attributes:
        done: the indexes that have succeeded.
        failed: the indexes that may not be retried.
    """

    def __init__(self, done: str = "", failed: str = "") -> None:
        self.done = IndexSet(done)
        self.failed = IndexSet(failed)
        self._active: Counter[int] = Counter()
        self._returned: list[int] = []
        self._next = 0

    def start(self, index: int) -> None:
        """Record one more active pod of an index."""
        self._active[index] += 1

    def stop(self, index: int) -> None:
        """Record that an index has one active pod less; an index without active pods can be allocated again."""
        self._active[index] -= 1
        if self._active[index] <= 0:
            del self._active[index]
            if index < self._next:
                heappush(self._returned, index)

    def release(self, indexes: list[int]) -> None:
        """Release indexes that were allocated and not started."""
        for index in indexes:
            heappush(self._returned, index)

    def allocate(self, count: int, completions: int) -> list[int]:
        """Allocate up to `count` indexes below `completions`, smallest first."""
        taken: list[int] = []
        while self._returned and len(taken) < count and self._returned[0] < completions:
            index = heappop(self._returned)
            if self._is_pending(index) and (not taken or taken[-1] != index):
                taken.append(index)
        while len(taken) < count and self._next < completions:
            free = self.done.next_free(self._next)
            if free > self._next:
                self._next = free
                continue
            if self._is_pending(self._next):
                taken.append(self._next)
            self._next += 1
        return taken

    def _is_pending(self, index: int) -> bool:
        return index not in self._active and index not in self.done and index not in self.failed
