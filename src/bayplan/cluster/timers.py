"""Timers in virtual time: future work of kubelet and controllers, by time, and in insertion order for equal times."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Timers(Generic[T]):
    """A heap of (time, sequence number, item). Items with equal times are returned in insertion order, without comparing items.

    Items are never removed early. The caller recognizes and drops obsolete items when it pops them, which is cheaper
    than searching the heap.

    Attributes:
        next_time: the time of the earliest item, or None. An attribute and not a method, because it is read after every
            write.
    """

    __slots__ = ("_heap", "_sequence", "next_time")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._sequence = 0
        self.next_time: int | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, time_ns: int, item: T) -> None:
        """Add an item for a time."""
        self._sequence += 1
        heappush(self._heap, (time_ns, self._sequence, item))
        self.next_time = self._heap[0][0]

    def pop_due(self, now_ns: int) -> tuple[int, T] | None:
        """Remove and return the earliest item that is due, with its time. Return None if none is due."""
        if not self._heap or self._heap[0][0] > now_ns:
            return None
        time_ns, _, item = heappop(self._heap)
        self.next_time = self._heap[0][0] if self._heap else None
        return time_ns, item
