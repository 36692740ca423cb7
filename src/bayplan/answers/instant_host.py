"""A host without time, which executes the scheduler's requests at once. Clusters in notebooks run on it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.cluster.volume_controller import volume_writes
from bayplan.engine.actions import Action, Bind, Evict, Update
from bayplan.engine.queued_pod import key_of
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

Change = tuple[KubernetesObject | None, KubernetesObject | None]
"""An object before and after: an addition has no before, a deletion no after."""


class InstantHost:
    """Hands changes to a scheduler and executes its requests: binds at once, deletes victims at once.

    Args:
        scheduler: its own; no other code may hand it changes.
        now_ns: the constant time.
    """

    def __init__(self, scheduler: Scheduler, now_ns: int = 0) -> None:
        self.scheduler = scheduler
        self.now_ns = now_ns

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Make one change, and execute the scheduler's resulting requests."""
        self.carry_out(self.scheduler.handle(old, new, self.now_ns))

    def carry_out(self, actions: Iterable[Action]) -> None:
        """Execute the scheduler's requests."""
        scheduler = self.scheduler
        for action in actions:
            if isinstance(action, Bind):
                pod = scheduler.pods[key_of(action.pod)]
                self.handle(pod, replace(pod, spec=replace(pod.spec, node_name=action.node_name)))
            elif isinstance(action, Update):
                self._write(action)
            elif isinstance(action, Evict):
                victim: Pod | None = scheduler.pods.get(key_of(action.pod))
                if victim is not None:
                    self.handle(victim, None)

    def _write(self, action: Update) -> None:
        """Write a volume or claim, and its consequences."""
        state = self.scheduler.state
        row = state.nodes.row_of.get(action.node_name)
        node = None if row is None else state.nodes.nodes[row]
        for item in volume_writes(action.item, state.catalog, node):
            self.handle(state.catalog.get(type(item), item.key), item)
