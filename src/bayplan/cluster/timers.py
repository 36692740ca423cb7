"""Timers in virtual time: future work of kubelet and controllers, by time, and in insertion order for equal times."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

_SEQUENCE_BITS = 48


class Timers(Generic[T]):
    """A heap of items by time. Items with equal times are returned in insertion order, without comparing items.

    Items are never removed early. The caller recognizes and drops obsolete items when it pops them, which is cheaper
    than searching the heap.

    Attributes:
        next_time: the time of the earliest item, or None. An attribute and not a method, because it is read after every
            write.
    """

    __slots__ = ("_heap", "_items", "_sequence", "next_time")

    def __init__(self) -> None:
        # A time and a sequence number in one number: heaps compare numbers several times as fast as tuples.
        self._heap: list[int] = []
        self._items: dict[int, T] = {}
        self._sequence = 0
        self.next_time: int | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, time_ns: int, item: T) -> None:
        """Add an item for a time."""
        self._sequence += 1
        key = time_ns << _SEQUENCE_BITS | self._sequence
        self._items[key] = item
        heappush(self._heap, key)
        self.next_time = self._heap[0] >> _SEQUENCE_BITS

    def pop_due(self, now_ns: int) -> tuple[int, T] | None:
        """Remove and return the earliest item that is due, with its time, or None if there is none."""
        time_ns = self.next_time
        if time_ns is None or time_ns > now_ns:
            return None
        key = heappop(self._heap)
        self.next_time = self._heap[0] >> _SEQUENCE_BITS if self._heap else None
        return time_ns, self._items.pop(key)
