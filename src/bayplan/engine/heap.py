"""A heap of pods with removal in constant time.

Removal leaves the entry in the heap; an entry counts only while it is the current one of its pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from bayplan.engine.queued_pod import QueuedPod, SortKey

Entry: TypeAlias = tuple[SortKey, int, QueuedPod]


class PodHeap:
    """Pods by ``namespace/name``, and in the order of (sort key, sequence)."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._heap: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in the order in which `pop` returns them. Sorts all pods: use it for inspection only."""
        for entry in sorted(self._entries.values()):
            yield entry[2]

    def get(self, key: str) -> QueuedPod | None:
        """Return the pod ``namespace/name``, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[2]

    def push(self, queued: QueuedPod, sort_key: SortKey) -> None:
        """Add a pod, or move a pod with the same key to a new position."""
        self.discard(queued.key)
        entry = (sort_key, queued.sequence, queued)
        self._entries[queued.key] = entry
        heappush(self._heap, entry)

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod; None if there is none."""
        queued = self.peek()
        if queued is not None:
            heappop(self._heap)
            del self._entries[queued.key]
        return queued

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it; None if there is none."""
        while self._heap:
            entry = self._heap[0]
            queued = entry[2]
            if self._entries.get(queued.key) is entry:
                return queued
            heappop(self._heap)
        return None

    def discard(self, key: str) -> bool:
        """Remove a pod; return whether it was in the heap."""
        if self._entries.pop(key, None) is None:
            return False
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [*self._entries.values()]
            heapify(self._heap)
        return True
