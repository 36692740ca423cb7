"""What an engine remembers of its own failures, and how long it rests before it is made anew."""

from __future__ import annotations

import time
import traceback
from collections import deque

from bayplan.live.engine_status import EngineFailure

KEPT_FAILURES = 20
CALM_SECONDS = 60.0
SHORTEST_REST_SECONDS = 0.1
LONGEST_REST_SECONDS = 30.0


class EngineRecovery:
    """Counts failures: the first is followed by a new engine at once, others soon after it by a rest first.

    Attributes:
        failures: the latest. is_resting: whether the engine must not be used, as it is to be made anew.
        is_broken: whether it never will be, as nobody knows how.
    """

    def __init__(self) -> None:
        self.failures: deque[EngineFailure] = deque(maxlen=KEPT_FAILURES)
        self.is_resting = False
        self.is_broken = False
        self._until = 0.0
        self._rests = 0

    @property
    def in_order(self) -> bool:
        """Return whether the engine can be used."""
        return not self.is_resting and not self.is_broken

    def note(self, doing: str, problem: Exception, now_ns: int) -> str:
        """Note an exception; return it as one line."""
        text = f"{type(problem).__name__}: {problem}"
        whole = "".join(traceback.format_exception(problem))
        self.failures.append(EngineFailure(doing, text, whole, now_ns))
        return text

    def begin(self, *, for_ever: bool) -> None:
        """Let the engine rest until it is made anew."""
        now = time.monotonic()
        self._rests = self._rests + 1 if now < self._until + CALM_SECONDS and self._rests else 1
        seconds = 0.0 if self._rests == 1 else min(SHORTEST_REST_SECONDS * 2 ** (self._rests - 2), LONGEST_REST_SECONDS)
        self._until = now + seconds
        self.is_resting, self.is_broken = not for_ever, for_ever

    def end(self) -> None:
        """Note that there is another engine."""
        self.is_resting = self.is_broken = False

    def seconds_left(self) -> float:
        """Return how long it still rests."""
        return max(self._until - time.monotonic(), 0.0)
