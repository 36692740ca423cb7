"""A binary heap with upstream's layout, because the layout determines which of several equal pods comes next.

The operations are those of Go's container/heap, wrapped as in the scheduler's own heap: items have keys, and adding an
existing item replaces it in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bayplan.engine.queued_pod import QueuedPod

Less = Callable[[QueuedPod, QueuedPod], bool]


class GoHeap:
    """A heap of pods. The results of `less` may change for pods in the heap, which does not change the layout.

    Args:
        less: the function that returns whether one pod comes before another.
    """

    def __init__(self, less: Less) -> None:
        self._less = less
        self._items: list[QueuedPod] = []
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in the order of the layout."""
        return iter(self._items)

    def get(self, key: str) -> QueuedPod | None:
        """Return the pod with a key, or None."""
        place = self._places.get(key)
        return None if place is None else self._items[place]

    def add(self, queued: QueuedPod) -> None:
        """Add a pod, or replace the pod with the same key."""
        place = self._places.get(queued.key)
        if place is not None:
            self._items[place] = queued
            self._fix(place)
            return
        self._places[queued.key] = len(self._items)
        self._items.append(queued)
        self._up(len(self._items) - 1)

    def delete(self, key: str) -> bool:
        """Remove the pod with a key; return whether it existed."""
        place = self._places.get(key)
        if place is None:
            return False
        last = len(self._items) - 1
        if last != place:
            self._swap(place, last)
            if not self._down(place, last):
                self._up(place)
        self._drop_last()
        return True

    def peek(self) -> QueuedPod | None:
        """Return the pod at the top, or None."""
        return self._items[0] if self._items else None

    def pop(self) -> QueuedPod | None:
        """Remove and return the pod at the top, or None."""
        if not self._items:
            return None
        last = len(self._items) - 1
        self._swap(0, last)
        self._down(0, last)
        return self._drop_last()

    # Changes of the layout.

    def _drop_last(self) -> QueuedPod:
        queued = self._items.pop()
        del self._places[queued.key]
        return queued

    def _fix(self, place: int) -> None:
        if not self._down(place, len(self._items)):
            self._up(place)

    def _swap(self, left: int, right: int) -> None:
        items = self._items
        items[left], items[right] = items[right], items[left]
        self._places[items[left].key] = left
        self._places[items[right].key] = right

    def _up(self, place: int) -> None:
        while place > 0:
            parent = (place - 1) // 2
            if not self._less(self._items[place], self._items[parent]):
                break
            self._swap(parent, place)
            place = parent

    def _down(self, start: int, count: int) -> bool:
        place = start
        while (child := 2 * place + 1) < count:
            if child + 1 < count and self._less(self._items[child + 1], self._items[child]):
                child += 1
            if not self._less(self._items[child], self._items[place]):
                break
            self._swap(place, child)
            place = child
        return place > start
