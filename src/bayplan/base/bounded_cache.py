"""Caches with a maximum number of entries, and a record of recent keys, for caching only what is used twice."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_DROPPED_SHARE = 256
"""A full cache drops one entry in this many, all at once.

Freeing a thousand specs takes as long as creating fifty pods.
"""


class BoundedCache(dict[K, V]):
    """A dictionary that drops its oldest entries when it is full.

    Args:
        max_entries: the maximum number of entries.
    """

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def put(self, key: K, value: V) -> V:
        """Store a value and return it. Storing a key again does not make it newer."""
        if len(self) >= self._max_entries and key not in self:
            for oldest in list(islice(self, max(self._max_entries // _DROPPED_SHARE, 1))):
                del self[oldest]
        self[key] = value
        return value


class SeenKeys:
    """Remembers the hashes of the most recent keys, so that callers can cache only what is used a second time.

    Args:
        max_keys: the maximum number of hashes.
    """

    def __init__(self, max_keys: int) -> None:
        self._hashes: BoundedCache[int, None] = BoundedCache(max_keys)

    def is_new(self, key: Hashable) -> bool:
        """Record a key; return whether it is new.

        A new key counts as seen if its hash equals that of a recent key. The caller then caches it on its first use,
        which wastes an entry but is not wrong.
        """
        number = hash(key)
        if number in self._hashes:
            return False
        self._hashes.put(number, None)
        return True
