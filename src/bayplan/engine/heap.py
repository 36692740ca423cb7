"""A heap of pods with removal in constant time, for the active queue and the backoff queues.

Removal leaves the entry in place; an entry counts only while its pod is in the queue with the same key object.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from bayplan.engine.queued_pod import QueuedPod, SortKey

Entry: TypeAlias = tuple[SortKey, int, QueuedPod]


class PodHeap:
    """A heap of pods, ordered by (key, sequence). It contains a pod at most once.

    Args:
        tier: the bit of `QueuedPod.tier` that marks pods in this heap.
    """

    def __init__(self, tier: int) -> None:
        self._tier = tier
        self._live = 0
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in the order in which `pop` returns them. Sorts all pods: use it for inspection only."""
        for entry in sorted(self._live_entries()):
            yield entry[2]

    def push(self, queued: QueuedPod, key: SortKey) -> None:
        """Add a pod that is not in the heap."""
        queued.heap_key = key
        queued.tier |= self._tier
        self._live += 1
        heappush(self._entries, (key, queued.sequence, queued))

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod; None if there is none."""
        queued = self.peek()
        if queued is not None:
            heappop(self._entries)
            queued.heap_key = None
            queued.tier &= ~self._tier
            self._live -= 1
        return queued

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it; None if there is none."""
        if not self._live:
            return None
        while True:
            key, _, queued = self._entries[0]
            if queued.heap_key is key and queued.tier & self._tier:
                return queued
            heappop(self._entries)

    def discard(self, queued: QueuedPod) -> None:
        """Remove a pod that is in the heap."""
        queued.heap_key = None
        queued.tier &= ~self._tier
        self._live -= 1
        if len(self._entries) > 2 * self._live + 64:
            self._entries = self._live_entries()
            heapify(self._entries)

    def reorder(self, queued: QueuedPod, key: SortKey) -> None:
        """Change the key of a pod that is in the heap."""
        if key == queued.heap_key:
            return
        self.discard(queued)
        self.push(queued, key)

    def _live_entries(self) -> list[Entry]:
        # If a pod leaves and returns with the same key object, its old entry becomes valid again: count the pod once.
        found = {id(e[2]): e for e in self._entries if e[2].heap_key is e[0] and e[2].tier & self._tier}
        return [*found.values()]
