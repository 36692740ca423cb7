"""How often a client may ask: so many requests a second in the long run, more at once for a moment.

Knows no clock and does not wait.
"""

from __future__ import annotations


class RateLimiter:
    """A token bucket, as client-go's.

    Args:
        qps: requests a second; below 0 there is no limit.
        burst: so many may come at once.
        now: seconds on a steady clock.
    """

    def __init__(self, qps: float, burst: int, now: float) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._then = now

    def reserve(self, now: float) -> float:
        """Take the place of one request in the row; return how many seconds it has to wait for its turn."""
        if self._qps < 0:
            return 0.0
        qps = self._qps or 5.0  # What client-go makes of 0.
        self._tokens = min(float(self._burst), self._tokens + (now - self._then) * qps)
        self._then = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / qps)
