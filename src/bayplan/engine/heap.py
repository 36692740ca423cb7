"""Pods in the order of a key, with removal in constant time: the active queue and the backoff queues.

Entries arrive mostly in order, since time only goes forward. If many wait, a new entry is appended to a sorted run that it
fits; only entries that fit none go into a binary heap. Popping the first of a million pods that came in order, with few
priorities, takes one or two comparisons instead of twenty. Removal leaves the entry in place; an entry counts only while
its pod is in the queue under that very key.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import TypeAlias

from bayplan.engine.queued_pod import QueuedPod, SortKey

Entry: TypeAlias = tuple[SortKey, int, QueuedPod]
Run: TypeAlias = deque[Entry]

MAX_RUNS = 32
"""More runs than most clusters have priorities, and few enough for a fast search."""

SMALL = 64
"""Up to this size a binary heap alone is fastest."""


class PodHeap:
    """Pods ordered by (key, sequence). A pod is in it at most once.

    Args:
        tier: the bit of `QueuedPod.tier` that marks pods in this heap.
    """

    def __init__(self, tier: int) -> None:
        self._tier = tier
        self._live = 0
        self._dead = 0
        # Runs by their last entry, ascending; the same runs as a heap by their first entry.
        self._runs: list[Run] = []
        self._tails: list[Entry] = []
        self._heads: list[tuple[Entry, Run]] = []
        self._rest: list[Entry] = []

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in the order in which they would be popped. Sorts: for inspection only."""
        for entry in sorted(self._live_entries()):
            yield entry[2]

    def push(self, queued: QueuedPod, key: SortKey) -> None:
        """Add a pod that is not in the heap."""
        queued.heap_key = key
        queued.tier |= self._tier
        self._live += 1
        entry = (key, queued.sequence, queued)
        tails = self._tails
        if tails:
            at = bisect_right(tails, entry) - 1
            if at >= 0:
                self._runs[at].append(entry)
                tails[at] = entry
                return
        elif len(self._rest) < SMALL:
            heappush(self._rest, entry)
            return
        if len(tails) < MAX_RUNS:
            run = deque((entry,))
            self._runs.insert(0, run)
            tails.insert(0, entry)
            heappush(self._heads, (entry, run))
        else:
            heappush(self._rest, entry)

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod; None if there is none."""
        if not self._live:
            return None
        tier = self._tier
        while True:
            key, _, queued = self._take_first() if self._heads else heappop(self._rest)
            if queued.heap_key is key and queued.tier & tier:
                queued.heap_key = None
                queued.tier ^= tier
                self._live -= 1
                return queued
            self._dead -= 1

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it."""
        if not self._live:
            return None
        while True:
            key, _, queued = self._first()
            if queued.heap_key is key and queued.tier & self._tier:
                return queued
            if self._heads:
                self._take_first()
            else:
                heappop(self._rest)
            self._dead -= 1

    def discard(self, queued: QueuedPod) -> None:
        """Remove a pod that is in the heap."""
        queued.heap_key = None
        queued.tier &= ~self._tier
        self._live -= 1
        self._dead += 1
        if self._dead > self._live + 64:
            self._compact()

    def reorder(self, queued: QueuedPod, key: SortKey) -> None:
        """Change the key of a pod that is in the heap."""
        if key == queued.heap_key:
            return
        self.discard(queued)
        self.push(queued, key)

    def _first(self) -> Entry:
        heads, rest = self._heads, self._rest
        if not heads:
            return rest[0]
        if not rest:
            return heads[0][0]
        return min(rest[0], heads[0][0])

    def _take_first(self) -> Entry:
        """Remove the first entry; there must be runs."""
        heads, rest = self._heads, self._rest
        entry, run = heads[0]
        if rest and rest[0] < entry:
            return heappop(rest)
        run.popleft()
        if run:
            heapreplace(heads, (run[0], run))
        else:
            heappop(heads)
            at = next(number for number, each in enumerate(self._runs) if each is run)
            del self._runs[at], self._tails[at]
        return entry

    def _live_entries(self) -> list[Entry]:
        entries = [*self._rest]
        for run in self._runs:
            entries += run
        # If a pod leaves and returns with the same key object, its old entry becomes valid again: count the pod once.
        return [*{id(e[2]): e for e in entries if e[2].heap_key is e[0] and e[2].tier & self._tier}.values()]

    def _compact(self) -> None:
        entries = self._live_entries()
        entries.sort()
        self._dead = 0
        self._rest, entries = (entries, []) if len(entries) < SMALL else ([], entries)
        self._runs = [deque(entries)] if entries else []
        self._tails = entries[-1:]
        self._heads = [(run[0], run) for run in self._runs]
