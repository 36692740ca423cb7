"""Recovery from failures of the engine: recording them, pausing before a rebuild, and filling the new scheduler."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable

from bayplan.base.clock import Clock
from bayplan.engine.actions import Action
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.records import Outcome, Record
from bayplan.engine.scheduler import Scheduler
from bayplan.live.decision_store import DecisionStore
from bayplan.live.engine_status import EngineFailure
from bayplan.live.object_mirror import ObjectMirror
from bayplan.live.quarantine import Quarantine

MAX_FAILURES = 20
CALM_SECONDS = 60.0
MIN_REST_SECONDS = 0.1
MAX_REST_SECONDS = 30.0


class EngineRecovery:
    """Counts failures: after the first one the engine is rebuilt immediately, after repeated ones with a growing pause.

    Args:
        clock: dates the failures.

    Attributes:
        failures: the latest failures, oldest first; at most `MAX_FAILURES`.
        is_resting: whether the engine waits to be rebuilt and must not be used.
        is_broken: whether the engine can't be rebuilt.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.failures: deque[EngineFailure] = deque(maxlen=MAX_FAILURES)
        self.is_resting = False
        self.is_broken = False
        self._until = 0.0
        self._rests = 0

    @property
    def in_order(self) -> bool:
        """Whether the engine can be used."""
        return not self.is_resting and not self.is_broken

    def attempt(self, doing: str, work: Callable[[], None]) -> bool:
        """Call `work`, and record an exception; return whether there was none."""
        try:
            work()
        except Exception as problem:
            self.note(doing, problem)
            return False
        return True

    def note(self, doing: str, problem: Exception) -> str:
        """Record an exception; return its type and message."""
        text = f"{type(problem).__name__}: {problem}"
        whole = "".join(traceback.format_exception(problem))
        self.failures.append(EngineFailure(doing, text, whole, self._clock.now_ns()))
        return text

    def rest(self) -> None:
        """Start the pause before a rebuild."""
        now = time.monotonic()
        self._rests = self._rests + 1 if now < self._until + CALM_SECONDS and self._rests else 1
        seconds = 0.0 if self._rests == 1 else min(MIN_REST_SECONDS * 2 ** (self._rests - 2), MAX_REST_SECONDS)
        self._until = now + seconds
        self.is_resting = True

    def give_up(self) -> None:
        """Mark the engine as broken, because nothing can rebuild it."""
        self.is_broken = True

    def end(self) -> None:
        """End the pause and clear `is_broken`. Called before the engine is rebuilt or replaced."""
        self.is_resting = self.is_broken = False

    def seconds_left(self) -> float:
        """Return the rest of the pause in seconds."""
        return max(self._until - time.monotonic(), 0.0)


def prepare(scheduler: Scheduler) -> None:
    """Prepare a scheduler for a host: it survives failing plugins, and its records get the origins of attempts."""
    scheduler.survives_plugins = True
    if isinstance(scheduler.records, DecisionStore):
        scheduler.records.follow(scheduler.queue)


def refill(
    scheduler: Scheduler,
    before: Scheduler,
    mirror: ObjectMirror,
    quarantine: Quarantine,
    now_ns: int,
    actions: list[Action],
) -> None:
    """Pass all objects to a scheduler, and copy the attempt numbers of the pods in the previous scheduler's queue.

    Args:
        scheduler: the scheduler for an empty cluster.
        before: the previous scheduler.
        mirror: the objects.
        quarantine: objects to skip; an object that breaks the scheduler is added.
        now_ns: the current time.
        actions: the list to which the scheduler's actions are appended.
    """
    for item in mirror:
        if not quarantine.contains(item):
            try:
                actions += scheduler.handle(None, item, now_ns)
            except Exception:
                quarantine.put_object(item)
                raise
    old = before.queue
    for queued in (*old.active(), *old.backing_off(), *old.unschedulable()):
        fresh = scheduler.queue.get(queued.key)
        if fresh is not None and fresh.uid == queued.uid:
            fresh.attempts, fresh.initial_attempt_ns = queued.attempts, queued.initial_attempt_ns


def quarantine_unfinished_cycle(scheduler: Scheduler, quarantine: Quarantine, text: str, now_ns: int) -> None:
    """Put the pod of the unfinished cycle, which was popped last, into quarantine, and record the error.

    Args:
        scheduler: the scheduler that failed.
        quarantine: the quarantine that the pod is added to.
        text: the exception.
        now_ns: the current time.
    """
    flying = [item for item in scheduler.queue.in_flight() if isinstance(item, QueuedPod)]
    if not flying or flying[-1].key in scheduler.assumed:
        return
    queued = flying[-1]
    quarantine.put_pod(queued.key, now_ns)
    message = f"internal error: {text}"
    scheduler.records.add(Record(now_ns, queued.key, queued.attempts, Outcome.ERROR, "", message=message), None, None)
