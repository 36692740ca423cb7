"""A host without time: what the scheduler asks for is done at once. Clusters in notebooks run on it."""

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
    """Hands changes to a scheduler and does what it asks for: binds at once, deletes victims at once.

    Args:
        scheduler: its own; nobody else may hand it changes.
        now_ns: the only time there is.
    """

    def __init__(self, scheduler: Scheduler, now_ns: int = 0) -> None:
        self.scheduler = scheduler
        self.now_ns = now_ns

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Make one change, and do what the scheduler asks for because of it."""
        self.carry_out(self.scheduler.handle(old, new, self.now_ns))

    def carry_out(self, actions: Iterable[Action]) -> None:
        """Do what the scheduler asks for."""
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
        """Write a volume or claim, and what follows from that."""
        state = self.scheduler.state
        row = state.nodes.row_of.get(action.node_name)
        node = None if row is None else state.nodes.nodes[row]
        for item in volume_writes(action.item, state.catalog, node):
            self.handle(state.catalog.get(type(item), item.key), item)
