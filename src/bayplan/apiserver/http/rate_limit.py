"""Rate limit of requests: a token bucket for each client address."""

from __future__ import annotations

import time
from collections.abc import Callable

from bayplan.base.token_bucket import TokenBucket

_MAX_CLIENTS = 4096
_BURST_SECONDS = 2.0


class RateLimit:
    """A limit.

    Args:
        per_second: requests of one client; a pause lets it save up those of two seconds.
        clock: returns seconds; never goes back.
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, client: str) -> bool:
        """Take one token from a client's bucket; return whether there was one left."""
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            if len(self._buckets) >= _MAX_CLIENTS:
                self._forget_full(now)
            bucket = self._buckets[client] = TokenBucket(self._per_second, self._per_second * _BURST_SECONDS, now)
        return bucket.take(now)

    def _forget_full(self, now: float) -> None:
        """Forget clients whose buckets are full again; all of them, where none is."""
        kept = {client: bucket for client, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._buckets = kept if len(kept) < _MAX_CLIENTS else {}
