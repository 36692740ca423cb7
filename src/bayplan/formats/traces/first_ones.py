"""The first ones of many that come in any order, each perhaps several times: at most twice as many in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

Key = TypeVar("Key")


class FirstOnes(Generic[Key]):
    """The keys with the earliest times; the time of a key is its earliest one.

    Args:
        limit: the maximum number; None: all.
        slack: the number that is stored in addition to twice the limit before later ones are dropped.

    Attributes:
        horizon: later times can't be among the first; None: any may.
    """

    def __init__(self, limit: int | None, *, slack: int = 1000) -> None:
        self._limit = limit
        self._slack = slack
        self._times: dict[Key, int] = {}
        self.horizon: int | None = None

    def add(self, key: Key, time: int) -> None:
        """Add a time of a key. One that can't be among the first any more is not stored, unless a later call makes it earlier."""
        if self.horizon is not None and time > self.horizon:
            return
        known = self._times.get(key)
        if known is None or time < known:
            self._times[key] = time
        if self._limit is not None and len(self._times) > 2 * self._limit + self._slack:
            self._prune(self._limit)

    def keys(self) -> Collection[Key]:
        """Return the first ones, in the order in which they were added; of equal times those that came first."""
        if self._limit is not None and len(self._times) > self._limit:
            self._prune(self._limit)
        return self._times.keys()

    def _prune(self, limit: int) -> None:
        # Sorting is stable: of equal times those that were added first are kept.
        kept = set(sorted(self._times, key=self._times.__getitem__)[:limit])
        self._times = {key: time for key, time in self._times.items() if key in kept}
        self.horizon = max(self._times.values(), default=-1)
