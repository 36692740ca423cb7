"""Find the earliest keys of a stream, in which keys may repeat and be in any order, with bounded memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

Key = TypeVar("Key")


class EarliestKeys(Generic[Key]):
    """The keys with the earliest times. If a key is added with several times, the earliest counts.

    Args:
        limit: the maximum number of keys; None for all.
        slack: when more than this number and twice the limit are stored, the latest keys are dropped.

    Attributes:
        horizon: keys with later times can't be among the earliest; None if any time can.
    """

    def __init__(self, limit: int | None, *, slack: int = 1000) -> None:
        self._limit = limit
        self._slack = slack
        self._times: dict[Key, int] = {}
        self.horizon: int | None = None

    def add(self, key: Key, time: int) -> None:
        """Add a key with a time. Keys that can't be among the earliest are ignored; a later call may add an earlier time."""
        if self.horizon is not None and time > self.horizon:
            return
        known = self._times.get(key)
        if known is None or time < known:
            self._times[key] = time
        if self._limit is not None and len(self._times) > 2 * self._limit + self._slack:
            self._prune(self._limit)

    def keys(self) -> Collection[Key]:
        """Return the earliest keys, in the order in which they were added. Of keys with equal times, those added first are kept."""
        if self._limit is not None and len(self._times) > self._limit:
            self._prune(self._limit)
        return self._times.keys()

    def _prune(self, limit: int) -> None:
        # Sorting is stable, so of keys with equal times those added first are kept.
        kept = set(sorted(self._times, key=self._times.__getitem__)[:limit])
        self._times = {key: time for key, time in self._times.items() if key in kept}
        self.horizon = max(self._times.values(), default=-1)
