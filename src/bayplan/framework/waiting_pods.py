"""Pods that wait for a permit: the interface for plugins.

Upstream's names are IterateOverWaitingPods, GetWaitingPod, Allow and Reject. A call takes effect at the end of the engine's
current step: a pod that all plugins have allowed is bound, one that was rejected releases its node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bayplan.objects.pod import Pod


class WaitingPod(Protocol):
    """A pod that has a node and waits until the Permit plugins that delayed it allow it."""

    @property
    def pod(self) -> Pod:
        """The pod, without a node in its spec."""

    @property
    def node_name(self) -> str:
        """The node to bind it to."""

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of one plugin."""

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod on behalf of one plugin, with its message; the pod returns to the queue as unschedulable."""


class WaitingPods(Protocol):
    """All pods that wait for a permit."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Yield the pods in the order in which they were added."""

    def get(self, key: str) -> WaitingPod | None:
        """Return the pod ``namespace/name``, or None if it does not wait."""
