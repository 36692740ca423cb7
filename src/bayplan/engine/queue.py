"""The scheduling queue: orders pending pods, and decides when pods that failed are retried.

A pod waits in the active queue (ready), in one of two backoff queues (ready when its backoff ends), or among the
unschedulable pods (ready after an event that may help, or after a long time; gated pods wait there, too). Or it is in
flight: popped, with an attempt that has not ended. The queue is a state machine without clock, lock or thread: every
method that needs the time takes it as ``now_ns``, nanoseconds since the epoch, never going backwards. Sources: KEP-4247
(queueing hints), KEP-3521 (gates), KEP-5142 (popping from the backoff queue).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from bayplan.engine import queued_pod
from bayplan.engine.backoff_queue import BackoffQueue
from bayplan.engine.heap import PodHeap
from bayplan.engine.hint_index import AFTER_BACKOFF, IMMEDIATELY, SKIP, EventMatch, HintIndex, Strategy
from bayplan.engine.in_flight import InFlight
from bayplan.engine.nominated_pods import Nominator, PodLister
from bayplan.engine.queue_options import DEFAULT_OPTIONS, FLUSH_UNSCHEDULABLE_PERIOD_NS, QueueOptions, first_on_grid
from bayplan.engine.queued_pod import NO_PLUGINS, KeyFunction, QueuedPod, priority_sort
from bayplan.engine.unschedulable_pods import RejectionGroup, UnschedulablePods
from bayplan.framework.events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_QUEUE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    HintTable,
    ObjectChange,
    pod_update_events,
)
from bayplan.framework.status import SUCCESS, Status
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

__all__ = ["SchedulingQueue", "QueueOptions", "PreCheck", "PreEnqueue"]

LABEL_ADD = UNSCHEDULABLE_POD_ADD.label
LABEL_UPDATE = UNSCHEDULABLE_POD_UPDATE.label
TIMEOUT = ObjectChange(UNSCHEDULABLE_TIMEOUT, None, None)

PreCheck: TypeAlias = Callable[[Pod], bool]
"""Returns whether an event may move a pod."""

PreEnqueue: TypeAlias = Callable[[Pod], Status | None]
"""A PreEnqueue plugin: returns None or an ok status to let the pod into the active queue; any other status gates it."""


class SchedulingQueue:
    """The pods that wait for a node, by ``namespace/name``; pods in flight and nominations by uid.

    Every move to the active queue, and with popping from the backoff queue every move to a backoff queue, runs the
    PreEnqueue plugins, the gates; if one of them rejects a pod, the pod joins the unschedulable pods.

    Args:
        hints: the events and hints that the plugins of each profile registered
            (`bayplan.framework.events.registrations`).
        pre_enqueue: the PreEnqueue plugins in order, by scheduler name.
        pod_lister: the function that returns the cluster's newest version of a pod; called at failures and nominations.
        sort_key: the order of the active queue; see `priority_sort`.
        options: settings; also an attribute.

    Attributes:
        nominator: nominations.
        incoming: how many times pods entered ``active``, ``backoff`` and ``unschedulable``, by the label of the event.
        scheduling_cycle: the number of popped pods.
        closed: whether `close` was called.
    """

    def __init__(
        self,
        hints: HintTable,
        pre_enqueue: Mapping[str, Sequence[tuple[str, PreEnqueue]]],
        pod_lister: PodLister,
        *,
        sort_key: KeyFunction = priority_sort,
        options: QueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.options = options
        self.nominator = Nominator(pod_lister)
        self.incoming = {tier: defaultdict[str, int](int) for tier in ("active", "backoff", "unschedulable")}
        self.scheduling_cycle = 0
        self.closed = False
        self._hints = HintIndex(hints)
        self._pre_enqueue = {profile: tuple(plugins) for profile, plugins in pre_enqueue.items() if plugins}
        self._pod_lister = pod_lister
        self._sort_key = sort_key
        self._sequence = 0
        self._active = PodHeap()
        self._backoff = BackoffQueue(options, sort_key)
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight()
        self._unschedulable_flushed_ns = options.start_ns - 1

    # Pods come and go.

    def add(self, pod: Pod, now_ns: int) -> None:
        """Add a pod that is new in the cluster."""
        self._to_active(self.new_record(pod, now_ns), now_ns, LABEL_ADD)

    def update(self, old: Pod, new: Pod, now_ns: int) -> None:
        """Replace a pod without a node by its new version.

        The event handler drops updates whose resource version did not change. In the active and the backoff queues, the
        pod only moves to the position of its new version. For an unschedulable pod the update is an event, but only for
        this pod, and even if the pod is gated.
        """
        uid = queued_pod.uid_of(new)
        if uid in self._in_flight:
            for event in pod_update_events(old, new, self.options.request_gates):
                self._in_flight.append(ObjectChange(event, old, new))
            return
        key = queued_pod.key_of(new)
        queued = self.get(key)
        if queued is None:
            self._to_active(self.new_record(new, now_ns), now_ns, LABEL_UPDATE)
            return
        queued.replace_version(new)
        self.nominator.update(old, new)
        if key in self._active:
            self._active.push(queued, self._sort_key(queued))
            return
        if key in self._backoff:
            self._backoff.reorder(queued)
            return
        for event in pod_update_events(old, new, self.options.request_gates):
            self._requeue(queued, self._hints.match(event).strategy(queued, old, new), now_ns, event.label)
            # Without popping from the backoff queue, upstream does not stop after a move to it: a later event can add
            # the pod to the unschedulable pods as well.
            if key in self._active or (self.options.pop_from_backoff and key in self._backoff):
                return

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted, or bound by another client. A pod in flight stays in flight."""
        self.nominator.remove(queued_pod.uid_of(pod))
        key = queued_pod.key_of(pod)
        if not self._active.discard(key) and not self._backoff.discard(key):
            self._unschedulable.discard(key)

    def new_record(self, pod: Pod, now_ns: int) -> QueuedPod:
        """Create a record of a pod without adding it to the queue; `add` creates its own record."""
        self._sequence += 1
        key = queued_pod.key_of(pod)
        return QueuedPod(pod, key, pod.metadata.uid or key, self._sequence, now_ns)

    # Pods move between tiers.

    def _gate(self, queued: QueuedPod) -> None:
        pod = queued.pod
        plugins = self._pre_enqueue.get(pod.spec.scheduler_name, ())
        if queued.gating_plugin:
            # The plugin that gated the pod runs first: most likely, it still does.
            held_by = [plugin for plugin in plugins if plugin[0] == queued.gating_plugin]
            plugins = (*held_by, *[plugin for plugin in plugins if plugin not in held_by])
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
        if self._pre_enqueue and not (from_backoff and self.options.pop_from_backoff):
            self._gate(queued)
        key = queued.key
        if queued.gating_plugin:
            # A pod that is both unschedulable and in a backoff queue stays in both, but moves to the group of its
            # current gate.
            elsewhere = key in self._active or key in self._backoff
            if not elsewhere or self._unschedulable.get(key) is queued:
                self._to_unschedulable(queued, label)
            return False
        self._backoff.discard(key)
        self._unschedulable.discard(key)
        if queued.initial_attempt_ns is None:
            queued.initial_attempt_ns = now_ns
        self._active.push(queued, self._sort_key(queued))
        self.incoming["active"][label] += 1
        pod = queued.pod
        if label in (LABEL_ADD, LABEL_UPDATE) and (
            pod.status.nominated_node_name or queued.uid in self.nominator.node_by_uid
        ):
            self.nominator.add(pod)
        return True

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        if self.options.pop_from_backoff:
            self._gate(queued)
            if queued.gating_plugin:
                self._to_unschedulable(queued, label)
                return
        self._unschedulable.discard(queued.key)
        if queued.key not in self._backoff:
            self._backoff.push(queued)
            self.incoming["backoff"][label] += 1

    def _to_unschedulable(self, queued: QueuedPod, label: str) -> None:
        if self._unschedulable.get(queued.key) is not queued:
            self._unschedulable.discard(queued.key)
            self.incoming["unschedulable"][label] += 1
        self._unschedulable.put(queued)

    def _requeue(self, queued: QueuedPod, strategy: Strategy, now_ns: int, label: str) -> None:
        if strategy is SKIP:
            self._to_unschedulable(queued, label)
        elif strategy is AFTER_BACKOFF and self._backoff.is_backing_off(queued, now_ns):
            self._to_backoff(queued, label)
        else:
            self._to_active(queued, now_ns, label)

    # Attempts start and end.

    def pop(self) -> QueuedPod | None:
        """Pop the next pod, which is then in flight. Return None if no pod is ready (upstream's Pop would block)."""
        while True:
            queued = self._active.pop()
            if queued is None:
                if not self.options.pop_from_backoff or (queued := self._backoff.rejected.pop()) is None:
                    return None
                self.incoming["active"][POP_FROM_BACKOFF_QUEUE] += 1
            if self._start(queued):
                return queued

    def pop_specific(self, pod: Pod, now_ns: int) -> QueuedPod | None:
        """Activate a pod and pop it out of turn; None if it is not in the active queue after activation."""
        self._activate(pod, now_ns)
        queued = self._active.get(queued_pod.key_of(pod))
        if queued is None:
            return None
        self._active.discard(queued.key)
        return queued if self._start(queued) else None

    def _start(self, queued: QueuedPod) -> bool:
        """Start an attempt. If the same pod is in flight under another record, return False: the record is discarded."""
        queued.attempts += 1
        if not self._in_flight.start(queued):
            return False
        self.scheduling_cycle += 1
        return True

    def done(self, uid: str) -> None:
        """End an attempt: the pod was bound, or failed and is back in the queue."""
        self._in_flight.done(uid)

    def fail(
        self,
        queued: QueuedPod,
        now_ns: int,
        *,
        unschedulable_plugins: frozenset[str] = NO_PLUGINS,
        pending_plugins: frozenset[str] = NO_PLUGINS,
        nominated_node_name: str | None = None,
    ) -> str | None:
        """Requeue a popped pod whose attempt failed, and end the attempt.

        Return why the queue refuses the pod, in upstream's words, or ""; None if the pod is gone, assigned, or replaced
        by another pod of the same name.

        Args:
            queued: the popped record.
            now_ns: the time.
            unschedulable_plugins: plugins that rejected the pod. If this and `pending_plugins` are empty, an error
                ended the attempt.
            pending_plugins: plugins that returned Pending; their events skip the backoff.
            nominated_node_name: the node to nominate the pod to, "" to clear its nomination; None to use the node in
                the pod's status.
        """
        queued.unschedulable_plugins = unschedulable_plugins
        queued.pending_plugins = pending_plugins
        queued.gating_plugin = ""
        known = self._pod_lister(queued.key)
        if known is None or known.spec.node_name:
            self._in_flight.done(queued.uid)
            self.nominator.add(queued.pod, nominated_node_name)
            return None
        if queued_pod.uid_of(known) != queued.uid:
            self._in_flight.done(queued.uid)
            return None
        queued.replace_version(known)
        self.nominator.add(queued.pod, nominated_node_name)
        return self.add_unschedulable_if_not_present(queued, now_ns)

    def add_unschedulable_if_not_present(self, queued: QueuedPod, now_ns: int) -> str:
        """Requeue a failed pod where its rejection and the events since its pop say; end the attempt.

        Return why the queue refuses the pod, in upstream's words, or "".
        """
        key = queued.key
        for where, tier in (
            ("unschedulable queue", self._unschedulable),
            ("the active queue", self._active),
            ("the backoff queue", self._backoff),
        ):
            if key in tier:
                self._in_flight.done(queued.uid)
                return f"Pod {key} is already present in {where}"
        if queued.failed_by_error:
            queued.error_count += 1
        else:
            queued.unschedulable_count += 1
            queued.error_count = 0
        queued.timestamp_ns = now_ns
        queued.backoff_expiry_ns = None
        queued.flushed = False
        strategy, happened = AFTER_BACKOFF, self._in_flight.events_since_pop(queued.uid)
        if happened is not None and not queued.failed_by_error:
            strategy = self._hints.strategy(queued, happened)
        self._requeue(queued, strategy, now_ns, SCHEDULE_ATTEMPT_FAILURE)
        self._in_flight.done(queued.uid)
        return ""

    # The cluster changes.

    def move_all(
        self,
        event: ClusterEvent,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        now_ns: int,
        pre_check: PreCheck | None = None,
    ) -> int:
        """Move the unschedulable pods that an event may help; return how many moved to the active or backoff queues.

        `old` and `new` are the changed object, None for an addition or a deletion. Pods for which `pre_check` returns
        False are skipped.
        """
        if not self._in_flight and not self._unschedulable:
            return 0
        match = self._hints.match(event)
        if not match.of_interest:
            return 0
        happened = ObjectChange(event, old, new)
        movers: list[tuple[QueuedPod, Strategy]] = []
        for group in self._unschedulable.groups.values():
            if group.members and (not group.gating_plugin or group.gating_plugin in match.gating_plugins):
                movers += self._movers(group, match, happened, now_ns, pre_check)
        return self._move(movers, happened, now_ns)

    def _movers(
        self, group: RejectionGroup, match: EventMatch, happened: ObjectChange, now_ns: int, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, Strategy]]:
        """Return the members of a group that an event may help, and that `pre_check`, if given, returns True for."""
        movers = match.movers(group, happened.old, happened.new)
        return movers if pre_check is None else [mover for mover in movers if pre_check(mover[0].pod)]

    def _move(self, movers: Sequence[tuple[QueuedPod, Strategy]], happened: ObjectChange, now_ns: int) -> int:
        moved, label = 0, self._hints.match(happened.event).label
        for queued, strategy in movers:
            self._unschedulable.discard(queued.key)
            self._requeue(queued, strategy, now_ns, label)
            moved += queued.key not in self._unschedulable
        if self._in_flight:
            self._in_flight.append(happened)
        return moved

    def activate(self, pods: Iterable[Pod], now_ns: int) -> int:
        """Move pods to the active queue immediately, at the request of plugins; return the number of moved pods.

        A pod that is in flight is tried again when it comes back.
        """
        activated = 0
        for pod in pods:
            if self._activate(pod, now_ns):
                activated += 1
            elif queued_pod.uid_of(pod) in self._in_flight:
                self._in_flight.append(ObjectChange(FORCE_ACTIVATE, None, pod))
        return activated

    def _activate(self, pod: Pod, now_ns: int) -> bool:
        key = queued_pod.key_of(pod)
        queued = self._unschedulable.get(key)
        if queued is not None:
            self._requeue(queued, IMMEDIATELY, now_ns, FORCE_ACTIVATE.label)
            return key in self._active
        queued = self._backoff.get(key)
        if queued is None:
            return False
        self._backoff.discard(key)
        return self._to_active(queued, now_ns, FORCE_ACTIVATE.label, True)

    # Time passes.

    def flush_backoff(self, now_ns: int) -> int:
        """Move the pods whose backoff has ended to the active queue, as upstream does every second; count them."""
        finished = self._backoff.pop_finished(now_ns)
        return sum([self._to_active(queued, now_ns, BACKOFF_COMPLETE, True) for queued in finished])

    def flush_unschedulable(self, now_ns: int) -> int:
        """Move the pods that have been unschedulable for too long; return their number. Upstream does this every 30 s.

        Gated pods stay, but while one of them is overdue, the timer counts as an event for pods in flight: if their
        attempt fails, they are retried without waiting for another event.
        """
        self._unschedulable_flushed_ns = now_ns
        overdue = self._unschedulable.mark_overdue(now_ns - self.options.max_in_unschedulable_ns)
        if not overdue:
            return 0
        gates = self._hints.match(UNSCHEDULABLE_TIMEOUT).gating_plugins
        movers = [(each, AFTER_BACKOFF) for each in overdue if not each.gating_plugin or each.gating_plugin in gates]
        return self._move(movers, TIMEOUT, now_ns)

    def next_flush_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant, now or later, at which a timer would change something; None if there is none.

        The instant is on upstream's grid: whole seconds for `flush_backoff` (since the start without popping from the
        backoff queue), multiples of 30 s since the start for `flush_unschedulable`. A host that calls both then misses
        nothing.
        """
        ticks = [self._backoff.next_flush_ns(now_ns)]
        ages, overdue, due = self._unschedulable.ages, self._unschedulable.overdue, list[int]()
        if (oldest := ages.peek()) is not None:
            due.append(oldest.timestamp_ns + self.options.max_in_unschedulable_ns + 1)
        # Overdue pods are gated: they only matter to pods in flight, or if their gate registers the timer event.
        gates = self._hints.match(UNSCHEDULABLE_TIMEOUT).gating_plugins
        if overdue and (self._in_flight or (gates and any(each.gating_plugin in gates for each in overdue.values()))):
            due.append(self._unschedulable_flushed_ns + 1)
        if due:
            ticks.append(self._on_grid(max(min(due), now_ns)))
        return min((tick for tick in ticks if tick is not None), default=None)

    def _on_grid(self, earliest_ns: int) -> int:
        start_ns = self.options.start_ns
        return first_on_grid(max(earliest_ns, start_ns), start_ns, FLUSH_UNSCHEDULABLE_PERIOD_NS)

    def close(self) -> None:
        """Drop the pods in flight, because the scheduler is about to stop. The remaining pods can still be popped."""
        self._in_flight = InFlight()
        self.closed = True

    # Pending pods.

    def __len__(self) -> int:
        """Return the number of waiting pods, without those in flight."""
        count = len(self._active) + len(self._backoff) + len(self._unschedulable)
        if not self.options.pop_from_backoff:
            # Pods can be in backoff and unschedulable at once; see `update`.
            count -= sum(queued.key in self._unschedulable for queued in self._backoff)
        return count

    @property
    def has_next(self) -> bool:
        """Return whether there is a pod to pop."""
        return bool(len(self._active)) or (self.options.pop_from_backoff and bool(len(self._backoff.rejected)))

    def get(self, key: str) -> QueuedPod | None:
        """Return the record of the waiting pod ``namespace/name``, or None."""
        return self._active.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def active(self) -> list[QueuedPod]:
        """Return the pods of the active queue in the order in which they would be popped."""
        return [*self._active]

    def backing_off(self) -> list[QueuedPod]:
        """Return the pods that plugins rejected, then those whose attempts ended with errors, each in queue order."""
        return [*self._backoff]

    def unschedulable(self) -> list[QueuedPod]:
        """Return the unschedulable pods, including gated ones, in no particular order."""
        return [*self._unschedulable]

    def in_flight(self) -> list[QueuedPod | ObjectChange]:
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
        waiting = [*self.active(), *self.backing_off(), *self.unschedulable()]
        assert len({id(queued) for queued in waiting}) == len(self)
        for queued in waiting:
            assert self.get(queued.key) is queued
            assert (queued.key, queued.uid) == (queued_pod.key_of(queued.pod), queued_pod.uid_of(queued.pod))
        assert not any(queued.key in self._active for queued in (*self.backing_off(), *self.unschedulable()))
