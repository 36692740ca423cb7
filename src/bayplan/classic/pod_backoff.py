"""PodBackoffMap: the backoff of each pod after failed attempts, stored outside of the queues."""

from __future__ import annotations

from bayplan.base.durations import SECOND_NS

INITIAL_DURATION_NS = SECOND_NS
MAX_DURATION_NS = 10 * SECOND_NS


class PodBackoffMap:
    """Failed attempts, and times of the last failures, by pod (``namespace/name``).

    Attributes:
        attempts: the number of failed attempts that were counted.
        last_update_ns: the time of the last failure.
    """

    def __init__(self) -> None:
        self.attempts: dict[str, int] = {}
        self.last_update_ns: dict[str, int] = {}

    def backoff_time_ns(self, key: str) -> int | None:
        """Return when a pod's backoff ends, or None if no failure is recorded."""
        if key not in self.attempts:
            return None
        return self.last_update_ns[key] + self._duration_ns(self.attempts[key])

    @staticmethod
    def _duration_ns(attempts: int) -> int:
        duration_ns = INITIAL_DURATION_NS
        for _ in range(1, attempts):
            duration_ns *= 2
            if duration_ns > MAX_DURATION_NS:
                return MAX_DURATION_NS
        return duration_ns

    def backoff_pod(self, key: str, now_ns: int) -> None:
        """Record one more failed attempt."""
        self.last_update_ns[key] = now_ns
        self.attempts[key] = self.attempts.get(key, 0) + 1

    def clear(self, key: str) -> None:
        """Forget a pod's failures."""
        self.attempts.pop(key, None)
        self.last_update_ns.pop(key, None)

    def clean_up(self, now_ns: int) -> None:
        """Forget pods whose last failure is more than twice the maximum duration ago."""
        old = [key for key, last_ns in self.last_update_ns.items() if last_ns + 2 * MAX_DURATION_NS < now_ns]
        for key in old:
            self.clear(key)
