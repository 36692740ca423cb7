"""What an engine remembers of its own failures, how long it rests before it is made anew, and with what it begins then."""

from __future__ import annotations

import time
import traceback
from collections import deque

from bayplan.engine.actions import Action
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.records import Outcome, Record
from bayplan.engine.scheduler import Scheduler
from bayplan.live.decision_store import DecisionStore
from bayplan.live.engine_status import EngineFailure
from bayplan.live.object_mirror import ObjectMirror
from bayplan.live.quarantine import Quarantine

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


def prepare(scheduler: Scheduler) -> None:
    """Make a scheduler ready for a host: plugins that fail don't end it, and its records know where attempts come from."""
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
    """Tell a scheduler of all objects, and of the attempts that pods have behind them.

    Args:
        scheduler: for an empty cluster. before: the one that ran until now.
        mirror: the objects. quarantine: those that must not be told; one that breaks the scheduler joins them.
        now_ns: the time.
        actions: takes what the scheduler wants done.
    """
    for item in mirror:
        if not quarantine.holds(item):
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


def hold_back_broken_cycle(scheduler: Scheduler, quarantine: Quarantine, text: str, now_ns: int) -> None:
    """Keep the pod from the engine whose cycle has not ended: the one that was popped last. Its record says why.

    Args:
        scheduler: the one that broke.
        quarantine: takes the pod.
        text: what happened.
        now_ns: when.
    """
    flying = [item for item in scheduler.queue.in_flight() if isinstance(item, QueuedPod)]
    if not flying or flying[-1].key in scheduler.assumed:
        return
    queued = flying[-1]
    quarantine.put_pod(queued.key, now_ns)
    told = f"internal error: {text}"
    scheduler.records.add(Record(now_ns, queued.key, queued.attempts, Outcome.ERROR, "", message=told), None, None)
