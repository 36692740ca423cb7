"""The tiers of the scheduling queue, and how pods move between them. `SchedulingQueue` decides which pods move when.

Every move to the active queue, and with popping from the backoff queue every move to a backoff queue, runs the
PreEnqueue plugins, the gates; if one of them rejects a pod, the pod joins the unschedulable pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from bayplan.engine.backoff_queue import BackoffQueue
from bayplan.engine.heap import PodHeap
from bayplan.engine.hint_index import AFTER_BACKOFF, SKIP, Strategy
from bayplan.engine.in_flight import InFlight, InFlightEvent
from bayplan.engine.nominator import Nominator, PodLister
from bayplan.engine.queue_options import QueueOptions
from bayplan.engine.queued_pod import (
    ACTIVE,
    BACKOFF,
    ERROR_BACKOFF,
    NOWHERE,
    UNSCHEDULABLE,
    KeyFunction,
    QueuedPod,
    key_of,
    uid_of,
)
from bayplan.engine.unschedulable_pods import UnschedulablePods
from bayplan.framework.events import UNSCHEDULABLE_POD_ADD, UNSCHEDULABLE_POD_UPDATE
from bayplan.framework.status import SUCCESS, Status
from bayplan.objects.pod import Pod

WAITS_FOR_BACKOFF = BACKOFF | ERROR_BACKOFF
LABEL_ADD = UNSCHEDULABLE_POD_ADD.label
LABEL_UPDATE = UNSCHEDULABLE_POD_UPDATE.label
_NOMINATING_LABELS = (LABEL_ADD, LABEL_UPDATE)

PreEnqueue: TypeAlias = Callable[[Pod], Status | None]
"""A PreEnqueue plugin: returns None or an ok status to let the pod into the active queue; any other status gates it."""


class QueueTiers:
    """The base of `SchedulingQueue`, which documents the arguments: the tiers, and the moves between them.

    Attributes:
        options: settings.
        nominator: nominations; change them only through the queue.
        incoming: how many times pods entered ``active``, ``backoff`` and ``unschedulable``, by the label of the event.
    """

    def __init__(
        self,
        pre_enqueue: Mapping[str, Sequence[tuple[str, PreEnqueue]]],
        pod_lister: PodLister,
        sort_key: KeyFunction,
        options: QueueOptions,
    ) -> None:
        self.options = options
        self.nominator = Nominator(pod_lister)
        self._incoming_active: defaultdict[str, int] = defaultdict(int)
        self._incoming_backoff: defaultdict[str, int] = defaultdict(int)
        self._incoming_unschedulable: defaultdict[str, int] = defaultdict(int)
        self.incoming: Mapping[str, Mapping[str, int]] = {
            "active": self._incoming_active,
            "backoff": self._incoming_backoff,
            "unschedulable": self._incoming_unschedulable,
        }
        self._pre_enqueue = {profile: tuple(plugins) for profile, plugins in pre_enqueue.items() if plugins}
        self._sort_key = sort_key
        self._pop_from_backoff = options.pop_from_backoff
        self._sequence = 0
        # Every record that is not in flight, in any tier.
        self._records: dict[str, QueuedPod] = {}
        self._active = PodHeap(ACTIVE)
        self._backoff = BackoffQueue(options, sort_key)
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight()

    def new_record(self, pod: Pod, now_ns: int) -> QueuedPod:
        """Create a record of a pod without adding it to the queue; `add` creates its own record."""
        self._sequence += 1
        metadata = pod.metadata
        key = f"{metadata.namespace}/{metadata.name}"
        return QueuedPod(pod, key, metadata.uid or key, self._sequence, now_ns)

    def _gate(self, queued: QueuedPod) -> None:
        pod = queued.pod
        plugins = self._pre_enqueue.get(pod.spec.scheduler_name, ())
        gating_plugin = queued.gating_plugin
        if gating_plugin:
            # The plugin that gated the pod runs first: most likely, it still does.
            held_by = [plugin for plugin in plugins if plugin[0] == gating_plugin]
            plugins = (*held_by, *[plugin for plugin in plugins if plugin[0] != gating_plugin])
        for name, pre_enqueue in plugins:
            status = pre_enqueue(pod)
            if status is SUCCESS or status is None or status.ok:
                continue
            queued.unschedulable_plugins |= {name}
            queued.gating_plugin = name
            return
        queued.gating_plugin = ""

    def _to_active(self, queued: QueuedPod, now_ns: int, label: str, from_backoff: bool = False) -> bool:
        # With popping from the backoff queue, pods passed the gates when they entered it.
        if self._pre_enqueue and not (from_backoff and self._pop_from_backoff):
            self._gate(queued)
        present = self._records.get(queued.key)
        if queued.gating_plugin:
            # A pod that is both unschedulable and in a backoff queue stays in both, but moves to the group of its
            # current gate.
            elsewhere = present is not None and present.tier & (ACTIVE | WAITS_FOR_BACKOFF)
            if queued.tier & UNSCHEDULABLE or not elsewhere:
                self._to_unschedulable(queued, label)
            return False
        if present is not None:
            self._leave(present, present.tier)
        if queued.initial_attempt_ns is None:
            queued.initial_attempt_ns = now_ns
        self._records[queued.key] = queued
        self._active.push(queued, self._sort_key(queued))
        self._incoming_active[label] += 1
        if label in _NOMINATING_LABELS and (
            queued.pod.status.nominated_node_name or queued.uid in self.nominator.node_by_uid
        ):
            self.nominator.add(queued.pod)
        return True

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        if self._pop_from_backoff:
            self._gate(queued)
            if queued.gating_plugin:
                self._to_unschedulable(queued, label)
                return
        if queued.tier & UNSCHEDULABLE:
            self._unschedulable.remove(queued)
        if queued.tier & WAITS_FOR_BACKOFF:
            return
        self._records[queued.key] = queued
        self._backoff.push(queued)
        self._incoming_backoff[label] += 1

    def _to_unschedulable(self, queued: QueuedPod, label: str) -> None:
        present = self._records.get(queued.key)
        if present is not None and present is not queued:
            self._leave(present, present.tier)
        if not queued.tier & UNSCHEDULABLE:
            self._incoming_unschedulable[label] += 1
        self._records[queued.key] = queued
        self._unschedulable.put(queued)

    def _requeue(self, queued: QueuedPod, strategy: Strategy, now_ns: int, label: str) -> None:
        if strategy is SKIP:
            self._to_unschedulable(queued, label)
        elif strategy is AFTER_BACKOFF and self._backoff.is_backing_off(queued, now_ns):
            self._to_backoff(queued, label)
        else:
            self._to_active(queued, now_ns, label)

    def _leave(self, queued: QueuedPod, tiers: int) -> None:
        leaving = queued.tier & tiers
        if leaving & ACTIVE:
            self._active.discard(queued)
        if leaving & WAITS_FOR_BACKOFF:
            self._backoff.discard(queued)
        if leaving & UNSCHEDULABLE:
            self._unschedulable.remove(queued)
        if queued.tier == NOWHERE:
            del self._records[queued.key]

    def __len__(self) -> int:
        """Return the number of waiting pods, without those in flight."""
        return len(self._records)

    @property
    def has_next(self) -> bool:
        """Return whether there is a pod to pop."""
        return bool(len(self._active)) or (self._pop_from_backoff and bool(len(self._backoff.rejected)))

    def get(self, key: str) -> QueuedPod | None:
        """Return the record of the waiting pod ``namespace/name``, or None."""
        return self._records.get(key)

    def active(self) -> list[QueuedPod]:
        """Return the pods of the active queue in the order in which they would be popped."""
        return [*self._active]

    def backing_off(self) -> list[QueuedPod]:
        """Return the pods that plugins rejected, then those whose attempts ended with errors, each in queue order."""
        return [*self._backoff]

    def unschedulable(self) -> list[QueuedPod]:
        """Return the unschedulable pods, including gated ones, in no particular order."""
        return [*self._unschedulable]

    def in_flight(self) -> list[QueuedPod | InFlightEvent]:
        """Return the pods in flight, and the events since the first of them was popped, in order."""
        return [*self._in_flight]

    def pending_counts(self) -> dict[str, int]:
        """Return the sizes of the queues under their names in upstream's metric ``pending_pods``."""
        gated = self._unschedulable.count_gated()
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable) - gated,
            "gated": gated,
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the queue is inconsistent. For tests and simulations under ``--check``."""
        self._unschedulable.check_invariants()
        self._in_flight.check_invariants()
        for tier, pods in (
            (ACTIVE, self.active()),
            (WAITS_FOR_BACKOFF, self.backing_off()),
            (UNSCHEDULABLE, self.unschedulable()),
        ):
            assert len({id(queued) for queued in pods}) == len(pods)
            assert all(queued.tier & tier and self._records[queued.key] is queued for queued in pods)
            assert len(pods) == sum(bool(queued.tier & tier) for queued in self._records.values())
        assert len(self._active) == len(self.active())
        assert len(self._backoff) == len(self.backing_off())
        for key, queued in self._records.items():
            assert queued.key == key == key_of(queued.pod)
            assert queued.uid == uid_of(queued.pod)
            assert queued.tier in (ACTIVE, BACKOFF, ERROR_BACKOFF, UNSCHEDULABLE) or (
                not self._pop_from_backoff and queued.tier & UNSCHEDULABLE and not queued.tier & ACTIVE
            )
