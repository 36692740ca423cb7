"""The work queue of the controller manager: the reconciles that wait, and the alarms after which reconciles wait again.

Work that already waits is not added twice. Work is processed first in, first out.
"""

from __future__ import annotations

from collections import deque

from bayplan.cluster.timers import Timers
from bayplan.controllers.controller import Controller

Work = tuple[Controller, str]
"""A reconcile: the controller, and the key of the object."""


class WorkQueue:
    """The reconciles that wait, and alarms.

    Attributes:
        due_ns: the time (ns) at which the waiting work is due; None if none waits, or before the time is known.
    """

    def __init__(self) -> None:
        self.due_ns: int | None = None
        self._queue: deque[Work] = deque()
        self._queued: set[Work] = set()
        self._timers: Timers[Work] = Timers()
        self._alarms: dict[Work, int] = {}
        self._waits: dict[Work, int] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, work: Work) -> None:
        """Add work, unless it already waits."""
        if work not in self._queued:
            self._queued.add(work)
            self._queue.append(work)

    def pop(self) -> Work:
        """Remove and return the oldest work."""
        work = self._queue.popleft()
        self._queued.discard(work)
        return work

    def schedule(self, time_ns: int) -> None:
        """Set the time at which the waiting work is due, unless it is set."""
        if self._queue and self.due_ns is None:
            self.due_ns = time_ns

    # --- alarms -------------------------------------------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return the next time (ns) at which work is due or an alarm expires, or None."""
        alarm = self._timers.next_time
        if self.due_ns is None:
            return alarm
        return self.due_ns if alarm is None else min(self.due_ns, alarm)

    def wake(self, now_ns: int) -> None:
        """Add the work whose alarms have expired."""
        while (due := self._timers.pop_due(now_ns)) is not None:
            time_ns, work = due
            if self._alarms.get(work) == time_ns:
                del self._alarms[work]
                self.add(work)
                if self.due_ns is None or self.due_ns > time_ns:
                    self.due_ns = time_ns

    def add_at(self, work: Work, time_ns: int) -> None:
        """Set the alarm of work to a time (ns), unless it expires earlier."""
        known = self._alarms.get(work)
        if known is None or time_ns < known:
            self._alarms[work] = time_ns
            self._timers.set(time_ns, work)

    def retry(self, work: Work, now_ns: int) -> None:
        """Add failed work again after a delay that doubles with each failure, see `Controller.retry_delays_ns`."""
        first_ns, longest_ns = work[0].retry_delays_ns
        wait_ns = self._waits.get(work, first_ns)
        self._waits[work] = min(2 * wait_ns, longest_ns)
        self.add_at(work, now_ns + wait_ns)

    def reset_delay(self, work: Work) -> None:
        """Record that work has succeeded, so that its next failure is retried after the shortest delay."""
        self._waits.pop(work, None)
