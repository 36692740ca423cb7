"""The calls of the engine's thread to its scheduler; subclasses measure or intercept them."""

from __future__ import annotations

from bayplan.engine.actions import Action, CycleReport
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject


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
