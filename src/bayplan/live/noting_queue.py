"""A scheduling queue that remembers of each pod what made it ready to be tried, for the record of the attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayplan.engine.nominator import PodLister
from bayplan.engine.queue import PreEnqueue, SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS, QueueOptions
from bayplan.engine.queued_pod import KeyFunction, QueuedPod, key_of, priority_sort
from bayplan.framework.events import BACKOFF_COMPLETE, POP_FROM_BACKOFF_QUEUE, HintTable
from bayplan.objects.pod import Pod

_TIMERS = (BACKOFF_COMPLETE, POP_FROM_BACKOFF_QUEUE)


class Origin(NamedTuple):
    """Where an attempt came from.

    Attributes:
        woken_by: the event that brought the pod to the active queue, or into the backoff before; upstream's label.
        tier: the queue that it was taken from: ``active``, or ``backoff`` where nothing else was ready.
    """

    woken_by: str
    tier: str


class NotingQueue(SchedulingQueue):
    """A `SchedulingQueue`; arguments as there."""

    def __init__(
        self,
        hints: HintTable,
        pre_enqueue: Mapping[str, Sequence[tuple[str, PreEnqueue]]],
        pod_lister: PodLister,
        *,
        sort_key: KeyFunction = priority_sort,
        options: QueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(hints, pre_enqueue, pod_lister, sort_key=sort_key, options=options)
        self._labels: dict[str, str] = {}
        self._origins: dict[str, Origin] = {}

    def origin_of(self, key: str) -> Origin | None:
        """Return where the latest attempt of a pod came from, while the pod is there and has no node."""
        return self._origins.get(key)

    def pop(self) -> QueuedPod | None:
        """Return the next pod, which is in flight from now on; see `SchedulingQueue.pop`."""
        early = self._incoming_active[POP_FROM_BACKOFF_QUEUE]
        queued = super().pop()
        if queued is not None:
            tier = "backoff" if self._incoming_active[POP_FROM_BACKOFF_QUEUE] > early else "active"
            self._origins[queued.key] = Origin(self._labels.get(queued.key, ""), tier)
        return queued

    def delete(self, pod: Pod) -> None:
        """Forget a pod that was deleted, or bound; see `SchedulingQueue.delete`."""
        super().delete(pod)
        key = key_of(pod)
        self._labels.pop(key, None)
        self._origins.pop(key, None)

    def _to_active(self, queued: QueuedPod, now_ns: int, label: str, *, from_backoff: bool = False) -> bool:
        if label not in _TIMERS:
            self._labels[queued.key] = label
        return super()._to_active(queued, now_ns, label, from_backoff=from_backoff)

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        self._labels[queued.key] = label
        super()._to_backoff(queued, label)
