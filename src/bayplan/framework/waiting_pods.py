"""Pods that wait at Permit: a Permit plugin delays them between the choice of their node and the binding.

Calls of plugins take effect at the end of the engine's current step: a pod that all plugins have allowed is bound, and a
rejected pod releases its node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bayplan.framework.status import Code, Status
from bayplan.objects.pod import Pod


@dataclass(eq=False)
class WaitingPod:
    """A pod that is assumed on its node and waits for Permit plugins to allow it.

    Attributes:
        key: ``namespace/name``.
        pod: the pod, without a node in its spec.
        deadlines: the deadline of each plugin that has not allowed the pod yet, in nanoseconds of the scheduler's clock.
        timeouts: the maximum time that each plugin lets the pod wait, in nanoseconds.
        rejection: the status with which the pod was rejected; None if it was not.
        decided: the list to which the pod's key is appended when the wait is over.
    """

    key: str
    pod: Pod
    node_name: str
    deadlines: dict[str, int]
    timeouts: dict[str, int]
    rejection: Status | None = None
    decided: list[str] = field(default_factory=list)

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed the pod yet."""
        return (*self.deadlines,)

    @property
    def is_decided(self) -> bool:
        """Return whether the wait is over: all plugins have allowed the pod, or one rejected it."""
        return self.rejection is not None or not self.deadlines

    @property
    def deadline_ns(self) -> int:
        """Return the earliest deadline in nanoseconds; 0, which means immediately, if the wait is over."""
        return 0 if self.is_decided else min(self.deadlines.values())

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of one plugin."""
        if self.rejection is None and self.deadlines.pop(plugin, None) is not None and not self.deadlines:
            self.decided.append(self.key)

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod on behalf of one plugin; the pod returns to the queue as unschedulable."""
        self.reject_with(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def reject_with(self, status: Status) -> None:
        """Reject the pod with a status, unless its wait is already over."""
        if not self.is_decided:
            self.rejection = status
            self.decided.append(self.key)


class WaitingPods:
    """The waiting pods by key, in order of arrival.

    Attributes:
        decided: the keys of pods whose wait is over, in order; the engine processes and removes them.
    """

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self.decided: list[str] = []

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        """Yield the pods in the order in which they were added."""
        return iter(list(self._pods.values()))

    def add(self, waiting: WaitingPod) -> None:
        """Add a pod that waits at Permit."""
        waiting.decided = self.decided
        self._pods[waiting.key] = waiting

    def get(self, key: str) -> WaitingPod | None:
        """Return the pod ``namespace/name``, or None if it does not wait."""
        return self._pods.get(key)

    def take_decided(self) -> WaitingPod | None:
        """Remove and return the first pod whose wait is over; None if there is none."""
        while self.decided:
            waiting = self._pods.pop(self.decided.pop(0), None)
            if waiting is not None:
                return waiting
        return None

    def next_deadline_ns(self) -> int | None:
        """Return the earliest deadline of all pods in nanoseconds, or None if no pod waits."""
        return min((waiting.deadline_ns for waiting in self._pods.values()), default=None)

    def expired(self, now_ns: int) -> list[tuple[WaitingPod, str]]:
        """Return the pods past a deadline, each with the plugin whose deadline it is."""
        late = [each for each in self._pods.values() if not each.is_decided and each.deadline_ns <= now_ns]
        return [(each, min(each.deadlines, key=each.deadlines.__getitem__)) for each in late]
