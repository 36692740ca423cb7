"""The scheduling queue's record of a pod: its past attempts and rejections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from bayplan.objects.pod import Pod

NO_PLUGINS: frozenset[str] = frozenset()

Rejection: TypeAlias = tuple[str, frozenset[str], frozenset[str]]
"""Scheduler name, unschedulable plugins and pending plugins of a pod."""


class SortKey(Protocol):
    """The sort key of a heap of pods: any value that is comparable with values of its type."""

    def __lt__(self, other: Any, /) -> bool: ...


class QueuedPod(Struct, eq=False, gc=False):
    """A pod in the scheduling queue, or in flight. Compares by identity.

    The cyclic garbage collector does not track these records, which makes a million of them affordable: nothing that a
    record refers to may refer back to it.

    Attributes:
        key: ``namespace/name``.
        uid: the pod's uid, or `key` if it has none.
        sequence: the number of the record; among equal sort keys, the older record comes first.
        timestamp_ns: the time of the pod's last failure; before any, the time when the record was created.
        attempts: the number of times that it was popped.
        unschedulable_count: attempts that ended with a plugin's rejection.
        error_count: consecutive attempts that ended with an error.
        initial_attempt_ns: the time when the pod first entered the active queue.
        unschedulable_plugins: plugins that rejected the last attempt, and PreEnqueue plugins that have rejected the pod
            since.
        pending_plugins: plugins that returned Pending in the last attempt; their events skip the backoff.
        gating_plugin: the PreEnqueue plugin that gates the pod, or "".
        flushed: whether the pod left the unschedulable pods because it had been there for too long.
        backoff_expiry_ns: the end of the backoff after the last failure; None until it is needed.
        popped_at: bookkeeping of `bayplan.engine.in_flight`.
    """

    pod: Pod
    key: str
    uid: str
    sequence: int
    timestamp_ns: int
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    initial_attempt_ns: int | None = None
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    gating_plugin: str = ""
    flushed: bool = False
    backoff_expiry_ns: int | None = None
    popped_at: int = 0

    @property
    def priority(self) -> int:
        """Return the pod's priority, 0 if it has none."""
        return self.pod.spec.priority or 0

    @property
    def failed_by_error(self) -> bool:
        """Return whether no plugin rejected the pod: an error sent it back, or it was never tried."""
        return not self.unschedulable_plugins and not self.pending_plugins

    @property
    def rejection(self) -> Rejection:
        """Return the data that determines which hints an event runs for the pod."""
        return self.pod.spec.scheduler_name, self.unschedulable_plugins, self.pending_plugins

    def replace_version(self, pod: Pod) -> None:
        """Replace the pod by another version."""
        if pod is not self.pod:
            self.pod = pod
            self.uid = pod.metadata.uid or self.key

    def count_failures(self, count: int, last_ns: int) -> None:
        """Count `count` skipped attempts as rejections, the last of them at `last_ns`; do nothing if `count` is 0."""
        if count:
            self.attempts += count
            self.unschedulable_count += count
            self.timestamp_ns = last_ns
            self.backoff_expiry_ns = None


KeyFunction: TypeAlias = Callable[[QueuedPod], SortKey]
"""Returns a pod's position in the active queue, smallest first. Called when the pod enters the queue."""


def priority_sort(queued: QueuedPod) -> int:
    """Return the sort key of the PrioritySort plugin, the default: higher priority first, then older.

    The key is one number, because heaps compare numbers faster than pairs: a higher priority outweighs any age.
    """
    pod = queued.pod
    priority = pod.spec.priority
    return queued.timestamp_ns - (priority << 64) if priority else queued.timestamp_ns


def key_of(pod: Pod) -> str:
    """Return ``namespace/name``, the queue's key of a pod."""
    metadata = pod.metadata
    return f"{metadata.namespace}/{metadata.name}"


def uid_of(pod: Pod) -> str:
    """Return the pod's uid, or its key if it has none, so that pods without uid stay distinct."""
    metadata = pod.metadata
    return metadata.uid or f"{metadata.namespace}/{metadata.name}"
