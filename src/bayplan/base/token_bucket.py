"""A token bucket: limits the requests per second in the long run, and allows short bursts above that.

It has no clock and does not wait.
"""

from __future__ import annotations

DEFAULT_RATE = 5.0
"""Tokens per second if the rate is 0, as in client-go."""


class TokenBucket:
    """A bucket that is refilled as time passes, like client-go's.

    Args:
        rate: the tokens per second; negative for no limit.
        burst: the number of tokens in a full bucket, at least 1.
        now: the time in seconds, on a clock that never goes backwards.
    """

    __slots__ = ("_burst", "_rate", "_then", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate or DEFAULT_RATE
        self._burst = max(float(burst), 1.0)
        self._tokens = self._burst
        self._then = now

    def reserve(self, now: float) -> float:
        """Take a token, in advance if the bucket is empty; return how many seconds the request must wait."""
        if self._rate < 0:
            return 0.0
        self._fill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float) -> bool:
        """Take a token if there is one; return whether there was."""
        if self._rate < 0:
            return True
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def is_full(self, now: float) -> bool:
        """Return whether the bucket is full."""
        return self._rate < 0 or self._tokens + (now - self._then) * self._rate >= self._burst

    def _fill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._then) * self._rate)
        self._then = now
