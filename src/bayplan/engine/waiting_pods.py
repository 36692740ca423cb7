"""Pods that a Permit plugin makes wait between the choice of their node and its binding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Code, Status
from bayplan.objects.pod import Pod


@dataclass(eq=False)
class WaitingPod:
    """A pod that is assumed on its node and waits for permission. Plugins see it as `bayplan.framework.waiting_pods.WaitingPod`.

    Attributes:
        deadlines: per plugin that has not permitted it yet, when its patience ends.
        timeouts: per plugin for how long it lets the pod wait, in nanoseconds.
        refusal: why it may not go on; None while nobody refused.
        decided: where it notes that its wait is over.
    """

    queued: QueuedPod
    pod: Pod
    node_name: str
    cycle_state: CycleState
    deadlines: dict[str, int] = field(default_factory=dict)
    timeouts: dict[str, int] = field(default_factory=dict)
    refusal: Status | None = None
    decided: list[str] = field(default_factory=list)

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed it yet."""
        return (*self.deadlines,)

    @property
    def is_decided(self) -> bool:
        """Return whether its wait is over: all have allowed it, or somebody refused."""
        return self.refusal is not None or not self.deadlines

    @property
    def deadline_ns(self) -> int:
        """Return when the first plugin's patience ends; 0, which is at once, where the wait is over."""
        return 0 if self.is_decided else min(self.deadlines.values())

    def allow(self, plugin: str) -> None:
        """Let it go on, as far as one plugin is concerned."""
        if self.refusal is None and self.deadlines.pop(plugin, None) is not None and not self.deadlines:
            self.decided.append(self.queued.key)

    def reject(self, plugin: str, message: str) -> None:
        """Send it back to the queue, unschedulable for a plugin that says why."""
        self.refuse(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def refuse(self, status: Status) -> None:
        """End its wait with a status, unless it is over already."""
        if not self.is_decided:
            self.refusal = status
            self.decided.append(self.queued.key)


class WaitingPods:
    """The waiting pods by key, in the order in which they came.

    Attributes:
        decided: keys of pods whose wait is over, in the order in which it ended; the engine acts on them and takes them out.
    """

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self.decided: list[str] = []

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def add(self, waiting: WaitingPod) -> None:
        """Take in a pod."""
        waiting.decided = self.decided
        self._pods[waiting.queued.key] = waiting

    def get(self, key: str) -> WaitingPod | None:
        """Return a waiting pod, or None."""
        return self._pods.get(key)

    def remove(self, key: str) -> WaitingPod | None:
        """Let a pod go."""
        return self._pods.pop(key, None)

    def take_decided(self) -> WaitingPod | None:
        """Take out the first pod whose wait is over, or return None."""
        while self.decided:
            waiting = self.remove(self.decided.pop(0))
            if waiting is not None:
                return waiting
        return None

    def next_deadline_ns(self) -> int | None:
        """Return when the next pod's time is over, or None."""
        return min((waiting.deadline_ns for waiting in self._pods.values()), default=None)

    def expired(self, now_ns: int) -> list[tuple[str, WaitingPod, str]]:
        """Return the pods whose time is over, each with the plugin whose patience ended."""
        found = []
        for key, waiting in self._pods.items():
            if waiting.is_decided:
                continue
            plugin = min(waiting.deadlines, key=waiting.deadlines.__getitem__)
            if waiting.deadlines[plugin] <= now_ns:
                found.append((key, waiting, plugin))
        return found
