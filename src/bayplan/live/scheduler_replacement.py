"""Replacement of a running scheduler: any thread requests it, and the engine's thread makes it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from bayplan.base.errors import EngineBusy
from bayplan.engine.scheduler import Scheduler

DRAIN_SECONDS = 2.0
"""The time that a replaced scheduler waits for the outcomes of its last bindings."""


class Successor(NamedTuple):
    """A scheduler that replaces the current one.

    Attributes:
        scheduler: the new scheduler, for an empty cluster.
        make: creates it again after a failure.
        deadline: the monotonic time at which it starts even if bindings are pending.
        done: completed when it runs.
    """

    scheduler: Scheduler
    make: Callable[[], Scheduler]
    deadline: float
    done: Future[None]


class SchedulerReplacement:
    """The requested replacement, and the futures of its callers. Used by the engine's thread.

    Args:
        make: creates a scheduler equivalent to the first one; None if that is impossible. Also an attribute, which is
            replaced along with the scheduler.
    """

    def __init__(self, make: Callable[[], Scheduler] | None) -> None:
        self.make = make
        self._successor: Successor | None = None
        self._waiting: list[Future[None]] = []

    @property
    def is_requested(self) -> bool:
        """Whether a scheduler waits to replace the current one."""
        return self._successor is not None

    def request(self, scheduler: Scheduler, make: Callable[[], Scheduler], done: Future[None]) -> None:
        """Request that a scheduler, which `make` creates again, replace the current one; the last request wins."""
        if self._successor is not None:
            self._successor.done.set_result(None)
        self._successor = Successor(scheduler, make, time.monotonic() + DRAIN_SECONDS, done)

    def take(self, *, draining: bool) -> Scheduler | None:
        """Return the new scheduler if there is one, and remove the request; while `draining`, only after the deadline.

        `answer` then completes the request.
        """
        successor = self._successor
        if successor is None or (draining and time.monotonic() < successor.deadline):
            return None
        self._successor = None
        self.make = successor.make
        self._waiting.append(successor.done)
        return successor.scheduler

    def answer(self, problem: EngineBusy | None = None) -> None:
        """Complete the requests whose scheduler was taken: with an exception, or because the scheduler runs."""
        while self._waiting:
            future = self._waiting.pop()
            future.set_result(None) if problem is None else future.set_exception(problem)
