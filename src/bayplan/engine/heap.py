"""A heap of pods with removal in constant time.

Removal leaves the entry behind; an entry counts only while it is the current one of its pod.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TypeAlias

from bayplan.engine.queued_pod import QueuedPod, SortKey

Entry: TypeAlias = tuple[SortKey, int, QueuedPod]


class PodHeap:
    """Pods by ``namespace/name``, and in the order of (sort key, sequence).

    Most pods are pushed in order: a pod that belongs after the last one in the queue is appended to it, and only the other
    pods go to the heap.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._in_order: deque[Entry] = deque()
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
        # Compiled modules support no negative indices.
        if not self._in_order or self._in_order[len(self._in_order) - 1] < entry:
            self._in_order.append(entry)
        else:
            heappush(self._heap, entry)
        self._entries[queued.key] = entry

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod; None if there is none."""
        entry = self._first()
        if entry is None:
            return None
        if self._in_order and self._in_order[0] is entry:
            self._in_order.popleft()
        else:
            heappop(self._heap)
        queued = entry[2]
        del self._entries[queued.key]
        return queued

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it; None if there is none."""
        entry = self._first()
        return None if entry is None else entry[2]

    def _first(self) -> Entry | None:
        """Drop outdated entries at the front of the queue and of the heap; return the first current one, or None."""
        while self._in_order and not self._counts(self._in_order[0]):
            self._in_order.popleft()
        while self._heap and not self._counts(self._heap[0]):
            heappop(self._heap)
        if not self._heap:
            return self._in_order[0] if self._in_order else None
        return min(self._in_order[0], self._heap[0]) if self._in_order else self._heap[0]

    def _counts(self, entry: Entry) -> bool:
        queued = entry[2]
        return self._entries.get(queued.key) is entry

    def discard(self, key: str) -> bool:
        """Remove a pod; return whether it was in the heap."""
        if self._entries.pop(key, None) is None:
            return False
        if len(self._in_order) + len(self._heap) > 2 * len(self._entries) + 64:
            self._in_order = deque(sorted(self._entries.values()))
            self._heap = []
        return True
