"""Caches with a maximum number of entries, and the recognition of keys that come again."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_DROPPED_SHARE = 256
"""A full cache drops one in so many entries at once: to free a thousand specs takes as long as fifty creates."""


class BoundedCache(dict[K, V]):
    """A dictionary that drops its oldest entries when it is full.

    Args:
        max_entries: the maximum number of entries.
    """

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def keep(self, key: K, value: V) -> V:
        """Store a value and return it. A key that is stored already keeps its age."""
        if len(self) >= self._max_entries and key not in self:
            for oldest in list(islice(self, max(self._max_entries // _DROPPED_SHARE, 1))):
                del self[oldest]
        self[key] = value
        return value


class SeenKeys:
    """The hashes of the most recent keys, so that only keys that come again are cached.

    Args:
        max_keys: the maximum number of hashes.
    """

    def __init__(self, max_keys: int) -> None:
        self._hashes: BoundedCache[int, None] = BoundedCache(max_keys)

    def is_new(self, key: Hashable) -> bool:
        """Record a key; return whether it comes for the first time. Equal hashes only cause an early caching."""
        number = hash(key)
        if number in self._hashes:
            return False
        self._hashes.keep(number, None)
        return True
