"""A scheduling queue that records for each pod the event that made it ready, and the plugin that gates it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from bayplan.engine.nominated_pods import PodLister
from bayplan.engine.queue import PreEnqueue, SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS, QueueOptions
from bayplan.engine.queued_pod import KeyFunction, QueuedPod, key_of, priority_sort
from bayplan.framework.events import BACKOFF_COMPLETE, POP_FROM_BACKOFF_QUEUE, HintTable
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod

_TIMERS = (BACKOFF_COMPLETE, POP_FROM_BACKOFF_QUEUE)


class Origin(NamedTuple):
    """The origin of an attempt.

    Attributes:
        woken_by: upstream's label of the event that moved the pod to the active queue, or before that to backoff.
        tier: the queue that it was popped from: ``active``, or ``backoff`` if no other pod was ready.
    """

    woken_by: str
    tier: str


class GateStatus(NamedTuple):
    """The PreEnqueue plugin that gates a pod, and its message."""

    plugin: str
    message: str


class InstrumentedQueue(SchedulingQueue):
    """A `SchedulingQueue` that records origins and gates of pods; arguments as for `SchedulingQueue`."""

    def __init__(
        self,
        hints: HintTable,
        pre_enqueue: Mapping[str, Sequence[tuple[str, PreEnqueue]]],
        pod_lister: PodLister,
        *,
        sort_key: KeyFunction = priority_sort,
        options: QueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        noted = {
            profile: [(name, partial(self._note_gate, name, ask)) for name, ask in plugins]
            for profile, plugins in pre_enqueue.items()
        }
        super().__init__(hints, noted, pod_lister, sort_key=sort_key, options=options)
        self._gates: dict[str, GateStatus] = {}
        self._labels: dict[str, str] = {}
        self._origins: dict[str, Origin] = {}

    def origin_of(self, key: str) -> Origin | None:
        """Return the origin of a pod's latest attempt; None if it had none, or was deleted or bound."""
        return self._origins.get(key)

    def gate_of(self, key: str) -> GateStatus | None:
        """Return the plugin that gates a pod, and its message, or None."""
        return self._gates.get(key)

    def _note_gate(self, plugin: str, pre_enqueue: PreEnqueue, pod: Pod) -> Status | None:
        status = pre_enqueue(pod)
        if status is not None and not status.ok:
            self._gates[key_of(pod)] = GateStatus(plugin, status.message)
        return status

    def pop(self) -> QueuedPod | None:
        """Return the next pod and put it in flight; see `SchedulingQueue.pop`."""
        incoming = self.incoming["active"]
        early = incoming[POP_FROM_BACKOFF_QUEUE]
        queued = super().pop()
        if queued is not None:
            tier = "backoff" if incoming[POP_FROM_BACKOFF_QUEUE] > early else "active"
            self._origins[queued.key] = Origin(self._labels.get(queued.key, ""), tier)
        return queued

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound; see `SchedulingQueue.delete`."""
        super().delete(pod)
        key = key_of(pod)
        self._labels.pop(key, None)
        self._origins.pop(key, None)
        self._gates.pop(key, None)

    def _gate(self, queued: QueuedPod) -> None:
        super()._gate(queued)
        if self._gates and not queued.gating_plugin:
            self._gates.pop(queued.key, None)

    def _to_active(self, queued: QueuedPod, now_ns: int, label: str, from_backoff: bool = False) -> bool:
        if label not in _TIMERS:
            self._labels[queued.key] = label
        return super()._to_active(queued, now_ns, label, from_backoff)

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        self._labels[queued.key] = label
        super()._to_backoff(queued, label)
