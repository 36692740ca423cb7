"""How the engine's thread calls its scheduler: who measures that, or stands between, is made of this."""

from __future__ import annotations

from bayplan.engine.actions import Action, CycleReport
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject


class EngineCalls:
    """Passes calls on, and measures nothing."""

    def schedule(self, scheduler: Scheduler, now_ns: int) -> CycleReport | None:
        """Schedule the next pod; see `Scheduler.schedule_one`."""
        return scheduler.schedule_one(now_ns)

    def handle(
        self, scheduler: Scheduler, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int
    ) -> list[Action]:
        """Let it take in a change; see `Scheduler.handle`."""
        return scheduler.handle(old, new, now_ns)
