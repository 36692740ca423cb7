"""How many requests a second one client may send: a bucket for each address that fills with time and empties by requests."""

from __future__ import annotations

import time
from collections.abc import Callable

_MOST_CLIENTS = 4096
_BURST_SECONDS = 2.0


class RateLimit:
    """A limit.

    Args:
        per_second: requests of one client; a pause lets it save up those of two seconds.
        clock: returns seconds; never goes back.
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second * _BURST_SECONDS)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, client: str) -> bool:
        """Take one request from a client's bucket; say whether there was one left."""
        now = self._clock()
        left, since = self._buckets.get(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        taken = left >= 1.0
        if client not in self._buckets and len(self._buckets) >= _MOST_CLIENTS:
            self._forget_full(now)
        self._buckets[client] = (left - 1.0 if taken else left, now)
        return taken

    def _forget_full(self, now: float) -> None:
        """Forget clients whose buckets are full again; all of them, where none is."""
        kept = {
            client: (left, since)
            for client, (left, since) in self._buckets.items()
            if left + (now - since) * self._per_second < self._most
        }
        self._buckets = kept if len(kept) < _MOST_CLIENTS else {}
