"""The calls of the engine's thread to its scheduler, which subclasses measure or intercept, and when it makes none."""

from __future__ import annotations

from bayplan.engine.actions import Action, CycleReport
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject

MAX_PENDING_BINDINGS = 2000
"""Maximum number of unconfirmed bindings. At this number no cycle starts, which keeps the queue of requests short."""


def has_backlog(scheduler: Scheduler) -> bool:
    """Return whether too many bindings are pending to start another cycle.

    Pods with volumes or devices don't count: they may wait ten minutes for a provisioner, and others must not wait for them.
    """
    pending = scheduler.bindings.pending
    if len(pending) < MAX_PENDING_BINDINGS:
        return False
    return sum(not binding.pre_bind for binding in pending.values()) >= MAX_PENDING_BINDINGS


class EngineCalls:
    """Calls the scheduler directly."""

    def schedule(self, scheduler: Scheduler, now_ns: int) -> CycleReport | None:
        """Schedule the next pod; see `Scheduler.schedule_one`."""
        return scheduler.schedule_one(now_ns)

    def handle(
        self, scheduler: Scheduler, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int
    ) -> list[Action]:
        """Process a change; see `Scheduler.handle`."""
        return scheduler.handle(old, new, now_ns)


class LastCalls(EngineCalls):
    """The calls when the process ends: changes are processed, so that bindings end with their events, but no cycle starts."""

    def schedule(self, scheduler: Scheduler, now_ns: int) -> CycleReport | None:
        """Return None, as if no pod was ready."""
        return None
