"""Pods that a Permit plugin makes wait between the choice of their node and its binding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.pod import Pod


@dataclass
class WaitingPod:
    """A pod that is assumed on its node and waits for permission.

    Attributes:
        deadlines: per plugin that has not permitted it yet, when its patience ends.
        timeouts: per plugin for how long it lets the pod wait, in nanoseconds.
    """

    queued: QueuedPod
    pod: Pod
    node_name: str
    cycle_state: CycleState
    deadlines: dict[str, int] = field(default_factory=dict)
    timeouts: dict[str, int] = field(default_factory=dict)

    @property
    def deadline_ns(self) -> int:
        """Return when the first plugin's patience ends."""
        return min(self.deadlines.values())


class WaitingPods:
    """The waiting pods by key, in the order in which they came."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def add(self, key: str, waiting: WaitingPod) -> None:
        """Take in a pod."""
        self._pods[key] = waiting

    def get(self, key: str) -> WaitingPod | None:
        """Return a waiting pod, or None."""
        return self._pods.get(key)

    def remove(self, key: str) -> WaitingPod | None:
        """Let a pod go."""
        return self._pods.pop(key, None)

    def next_deadline_ns(self) -> int | None:
        """Return when the next pod's time is over, or None."""
        return min((waiting.deadline_ns for waiting in self._pods.values()), default=None)

    def expired(self, now_ns: int) -> list[tuple[str, WaitingPod, str]]:
        """Return the pods whose time is over, each with the plugin whose patience ended."""
        found = []
        for key, waiting in self._pods.items():
            plugin = min(waiting.deadlines, key=waiting.deadlines.__getitem__)
            if waiting.deadlines[plugin] <= now_ns:
                found.append((key, waiting, plugin))
        return found
