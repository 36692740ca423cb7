"""What a plugin sees of the pods that wait for a permit, and what it can say about them.

Upstream's names are IterateOverWaitingPods, GetWaitingPod, Allow and Reject. What a plugin says takes effect when the engine has
come to the end of the step in which it was said: a pod that all have allowed is bound, one that was rejected gives its node back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bayplan.objects.pod import Pod


class WaitingPod(Protocol):
    """A pod that has a node and waits until the Permit plugins that asked for it let it go on."""

    @property
    def pod(self) -> Pod:
        """The pod, without a node in its spec."""

    @property
    def node_name(self) -> str:
        """The node that it is to be bound to."""

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """Let it go on, as far as one plugin is concerned."""

    def reject(self, plugin: str, message: str) -> None:
        """Send it back to the queue, unschedulable for a plugin that says why."""


class WaitingPods(Protocol):
    """All pods that wait for a permit."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Yield them in the order in which they came."""

    def get(self, key: str) -> WaitingPod | None:
        """Return the pod ``namespace/name``, None where it does not wait."""
