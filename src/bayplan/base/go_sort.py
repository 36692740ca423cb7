"""Go's `sort.Slice`: leaves equal items in the same order as Go, which matters where upstream's comparison has ties.

Pattern-defeating quicksort (https://arxiv.org/abs/2106.05123) as in Go since 1.19: insertion sort for up to 12 items,
pivots that are medians of three or nine items, three fixed swaps after an unbalanced partition, and heap sort after
many of those. It is not stable, but gives the same order on every machine. `sort.Sort` and `slices.SortFunc` give this
order, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

MAX_INSERTION_SORTED = 12
"""Up to this number of items Go uses insertion sort, which keeps the order of equal items."""

_MAX_INSERTION_SORTED = MAX_INSERTION_SORTED


def sort_slice(items: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Return the items in ascending order of a key; items with equal keys have the order of Go's `sort.Slice`."""
    if len(items) <= MAX_INSERTION_SORTED:
        return sorted(items, key=key)
    keys = [key(item) for item in items]
    distinct = sorted(set(keys))
    rank_of = {value: rank for rank, value in enumerate(distinct)}
    places = Sorter(np.array([rank_of[value] for value in keys], dtype=np.int64)).sort()
    return [items[place] for place in places]


class Sorter:
    """Sorts the positions of items by the items' ranks.

    Args:
        ranks: the int64 rank of each item; this array is sorted, too.
    """

    def __init__(self, ranks: npt.NDArray[np.int64]) -> None:
        self._ranks: Any = ranks
        self._places: Any = np.arange(len(ranks), dtype=np.int64)
        self._swapped = 0
        self._was_partitioned = True

    def sort(self) -> list[int]:
        """Return the original positions of the items, in sorted order."""
        length: int = len(self._ranks)
        self._sort(0, length, length.bit_length())
        return [int(place) for place in self._places]

    def _sort(self, start: int, end: int, unbalanced_allowed: int) -> None:
        """Sort a range of items, by heap sort after `unbalanced_allowed` further unbalanced partitions."""
        is_balanced = self._was_partitioned = True
        while end - start > _MAX_INSERTION_SORTED:
            length = end - start
            if unbalanced_allowed == 0:
                self._heap_sort(start, end)
                return
            if not is_balanced:
                self._break_patterns(start, end)
                unbalanced_allowed -= 1
            pivot = self._choose_pivot(start, end)
            is_ascending = self._swapped == 0
            if self._swapped == 12:
                # Every comparison of the choice of the pivot found a descending pair, so the range is probably in
                # descending order.
                self._reverse(start, end)
                pivot = end - 1 - (pivot - start)
                is_ascending = True
            if is_balanced and self._was_partitioned and is_ascending and self._sort_nearly_sorted(start, end):
                return
            if start > 0 and self._ranks[start - 1] >= self._ranks[pivot]:
                start = self._partition_equal(start, end, pivot)
                continue
            middle = self._partition(start, end, pivot)
            was_partitioned = self._was_partitioned
            if middle - start < end - middle:
                is_balanced = middle - start >= length // 8
                self._sort(start, middle, unbalanced_allowed)
                start = middle + 1
            else:
                is_balanced = end - middle >= length // 8
                self._sort(middle + 1, end, unbalanced_allowed)
                end = middle
            self._was_partitioned = was_partitioned
        self._insertion_sort(start, end)

    def _swap(self, left: int, right: int) -> None:
        ranks, places = self._ranks, self._places
        rank, place = ranks[left], places[left]
        ranks[left], places[left] = ranks[right], places[right]
        ranks[right], places[right] = rank, place

    def _insertion_sort(self, start: int, end: int) -> None:
        for number in range(start + 1, end):
            self._sink(number, start)

    def _sink(self, number: int, least: int) -> None:
        """Move an item towards the front, past all greater items, but at most to index `least`."""
        while number > least and self._ranks[number] < self._ranks[number - 1]:
            self._swap(number, number - 1)
            number -= 1

    def _heap_sort(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, length: int, start: int) -> None:
        ranks = self._ranks
        child = 2 * root + 1
        while child < length:
            if child + 1 < length and ranks[start + child] < ranks[start + child + 1]:
                child += 1
            if ranks[start + root] >= ranks[start + child]:
                return
            self._swap(start + root, start + child)
            root = child
            child = 2 * root + 1

    def _break_patterns(self, start: int, end: int) -> None:
        """Swap three items around the middle with random items; the random numbers depend only on the length."""
        length = end - start
        random, size = length, 1
        while size <= length:
            size *= 2
        around = start + length // 4 * 2
        for number in range(3):
            random = (random ^ (random << 13)) & 0xFFFFFFFFFFFFFFFF
            random ^= random >> 7
            random = (random ^ (random << 17)) & 0xFFFFFFFFFFFFFFFF
            other = random & (size - 1)
            if other >= length:
                other -= length
            self._swap(around - 1 + number, start + other)

    def _choose_pivot(self, start: int, end: int) -> int:
        """Return the position of the pivot, and count the descending pairs among the compared items in `_swapped`."""
        quarter = (end - start) // 4
        low, middle, high = start + quarter, start + 2 * quarter, start + 3 * quarter
        self._swapped = 0
        if end - start >= 50:
            low = self._median(low - 1, low, low + 1)
            middle = self._median(middle - 1, middle, middle + 1)
            high = self._median(high - 1, high, high + 1)
        return self._median(low, middle, high)

    def _median(self, low: int, middle: int, high: int) -> int:
        ranks = self._ranks
        if ranks[middle] < ranks[low]:
            low, middle = middle, low
            self._swapped += 1
        if ranks[high] < ranks[middle]:
            middle, high = high, middle
            self._swapped += 1
        if ranks[middle] < ranks[low]:
            low, middle = middle, low
            self._swapped += 1
        return middle

    def _reverse(self, start: int, end: int) -> None:
        while start < end - 1:
            end -= 1
            self._swap(start, end)
            start += 1

    def _sort_nearly_sorted(self, start: int, end: int) -> bool:
        """Try to sort a range with at most five swaps and their insertions; return whether it is sorted."""
        ranks = self._ranks
        number = start + 1
        for step in range(5):  # noqa: B007
            while number < end and ranks[number] >= ranks[number - 1]:
                number += 1
            if number == end:
                return True
            if end - start < 50:
                return False
            self._swap(number, number - 1)
            if number - start >= 2:
                # Go also continues before `start`; the items there are not greater.
                self._sink(number - 1, 0)
            later = number + 1
            while later < end and ranks[later] < ranks[later - 1]:
                self._swap(later, later - 1)
                later += 1
        return False

    def _partition(self, start: int, end: int, pivot: int) -> int:
        """Move smaller items before the pivot and all others after it; return the pivot's new position.

        Sets `_was_partitioned`.
        """
        ranks = self._ranks
        self._swap(start, pivot)
        left, right = start + 1, end - 1
        swaps = 0
        while True:
            while left <= right and ranks[left] < ranks[start]:
                left += 1
            while left <= right and ranks[right] >= ranks[start]:
                right -= 1
            if left > right:
                break
            self._swap(left, right)
            swaps += 1
            left += 1
            right -= 1
        self._swap(right, start)
        self._was_partitioned = swaps == 0
        return right

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Move the items equal to the pivot before greater ones (none is less).

        Return the position of the first greater item.
        """
        ranks = self._ranks
        self._swap(start, pivot)
        left, right = start + 1, end - 1
        while True:
            while left <= right and ranks[start] >= ranks[left]:
                left += 1
            while left <= right and ranks[start] < ranks[right]:
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left += 1
            right -= 1
