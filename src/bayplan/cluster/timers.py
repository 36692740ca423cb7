"""Timers in virtual time: future work of kubelet and controllers, by time, and in insertion order for equal times."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

_PERIOD_BITS = 36
"""Length of a period as a power of two: 2**36 ns are 69 s."""


class Timers(Generic[T]):
    """Items by time. Items with equal times are returned in insertion order, without comparing items.

    Only the items of the current period are in a heap; those of later periods are in unsorted lists. In one heap of all
    items, every step of a search would be a cache miss.

    Items are never removed early. The caller recognizes and drops obsolete items when it pops them, which is cheaper
    than searching for them.

    Attributes:
        next_time: the time of the earliest item, or None. An attribute and not a method, because it is read after every
            write.
    """

    __slots__ = ("_current", "_later", "_period", "_periods", "_sequence", "next_time")

    def __init__(self) -> None:
        # The heap of the items up to the current period, and the items of each later period.
        self._current: list[tuple[int, int, T]] = []
        self._later: dict[int, list[tuple[int, int, T]]] = {}
        self._period = -1
        self._periods: list[int] = []
        self._sequence = 0
        self.next_time: int | None = None

    def __len__(self) -> int:
        return len(self._current) + sum(len(items) for items in self._later.values())

    def set(self, time_ns: int, item: T) -> None:
        """Add an item for a time."""
        self._sequence += 1
        entry, period = (time_ns, self._sequence, item), time_ns >> _PERIOD_BITS
        if period <= self._period:
            heappush(self._current, entry)
        elif period in self._later:
            self._later[period].append(entry)
        else:
            self._later[period] = [entry]
            heappush(self._periods, period)
        if self.next_time is None or time_ns < self.next_time:
            self.next_time = time_ns

    def pop_due(self, now_ns: int) -> tuple[int, T] | None:
        """Remove and return the earliest item that is due, with its time, or None if there is none."""
        if self.next_time is None or self.next_time > now_ns:
            return None
        self._begin_period()
        time_ns, _, item = heappop(self._current)
        self._begin_period()
        self.next_time = self._current[0][0] if self._current else None
        return time_ns, item

    def _begin_period(self) -> None:
        """Begin the next period that has items if the current one has none left."""
        if not self._current and self._periods:
            self._period = heappop(self._periods)
            self._current = self._later.pop(self._period)
            heapify(self._current)
