"""The scheduling queue: orders pending pods, and decides when pods that failed are retried.

A pod waits in the active queue (ready), in one of two backoff queues (ready when its backoff ends), or among the
unschedulable pods (ready after an event that may help, or after a long time; gated pods wait there, too). Or it is in
flight: popped, with an attempt that has not ended. The queue is a state machine without clock, lock or thread: every
method that needs the time takes it as ``now_ns``, nanoseconds since the epoch, never going backwards. Sources: KEP-4247
(queueing hints), KEP-3521 (gates), KEP-5142 (popping from the backoff queue).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from bayplan.engine.hint_index import AFTER_BACKOFF, IMMEDIATELY, SKIP, EventMatch, HintIndex, Strategy
from bayplan.engine.nominator import PodLister
from bayplan.engine.queue_options import DEFAULT_OPTIONS, FLUSH_UNSCHEDULABLE_PERIOD_NS, QueueOptions, first_on_grid
from bayplan.engine.queue_tiers import LABEL_ADD, LABEL_UPDATE, WAITS_FOR_BACKOFF, PreEnqueue, QueueTiers
from bayplan.engine.queued_pod import (
    ACTIVE,
    NO_PLUGINS,
    NOWHERE,
    UNSCHEDULABLE,
    KeyFunction,
    QueuedPod,
    key_of,
    priority_sort,
    uid_of,
)
from bayplan.framework.events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_QUEUE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    HintTable,
    pod_update_events,
)
from bayplan.objects.pod import Pod

__all__ = ["SchedulingQueue", "QueueOptions", "Requeue", "PreCheck", "PreEnqueue"]

_LABEL_FORCE_ACTIVATE = FORCE_ACTIVATE.label

PreCheck: TypeAlias = Callable[[Pod], bool]
"""Returns whether an event may move a pod."""


class Requeue(msgspec.Struct, frozen=True):
    """The result of requeueing a failed pod.

    Attributes:
        requeued: False if the pod is gone, assigned, or replaced by another pod of the same name.
        error: why the queue rejected the pod, in upstream's words; empty on success.
    """

    requeued: bool
    error: str = ""


class SchedulingQueue(QueueTiers):
    """The pods that wait for a node, by ``namespace/name``; pods in flight and nominations by uid.

    Args:
        hints: the events and hints that the plugins of each profile registered
            (`bayplan.framework.events.registrations`).
        pre_enqueue: the PreEnqueue plugins in order, by scheduler name.
        pod_lister: the function that returns the cluster's newest version of a pod; called at failures and nominations.
        sort_key: the order of the active queue; see `priority_sort`.
        options: settings.

    Attributes:
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
        super().__init__(pre_enqueue, pod_lister, sort_key, options)
        self.scheduling_cycle = 0
        self.closed = False
        self._hints = HintIndex(hints)
        self._pod_lister = pod_lister
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
        uid = uid_of(new)
        if uid in self._in_flight:
            for event in pod_update_events(old, new, self.options.request_gates):
                self._in_flight.append(event, old, new)
            return
        queued = self._records.get(key_of(old))
        if queued is not None and queued.tier & (ACTIVE | WAITS_FOR_BACKOFF):
            queued.replace_version(new)
            if queued.tier & ACTIVE:
                self._active.reorder(queued, self._sort_key(queued))
            else:
                self._backoff.reorder(queued)
            self.nominator.update(old, new)
            return
        queued = self._records.get(key_of(new))
        if queued is None:
            self._to_active(self.new_record(new, now_ns), now_ns, LABEL_UPDATE)
            return
        queued.replace_version(new)
        self.nominator.update(old, new)
        for event in pod_update_events(old, new, self.options.request_gates):
            strategy = self._hints.match(event).strategy(queued, old, new)
            self._requeue(queued, strategy, now_ns, event.label)
            # Without popping from the backoff queue, upstream does not stop after a move to it: a later event can add
            # the pod to the unschedulable pods as well.
            if queued.tier & (ACTIVE | WAITS_FOR_BACKOFF if self._pop_from_backoff else ACTIVE):
                return

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted, or bound by another client. A pod in flight stays in flight."""
        self.nominator.remove(uid_of(pod))
        queued = self._records.get(key_of(pod))
        if queued is None:
            return
        if queued.tier & ACTIVE:
            self._leave(queued, ACTIVE)
        elif queued.tier & WAITS_FOR_BACKOFF:
            self._leave(queued, WAITS_FOR_BACKOFF)
        else:
            self._leave(queued, UNSCHEDULABLE)

    # Attempts start and end.

    def pop(self) -> QueuedPod | None:
        """Pop the next pod, which is then in flight. Return None if no pod is ready (upstream's Pop would block)."""
        while True:
            queued = self._active.pop()
            if queued is None:
                if not self._pop_from_backoff or (queued := self._backoff.pop_early()) is None:
                    return None
                self._incoming_active[POP_FROM_BACKOFF_QUEUE] += 1
            del self._records[queued.key]
            queued.attempts += 1
            if self._in_flight.start(queued):
                self.scheduling_cycle += 1
                return queued
            # The same pod is in flight under another record: discard this one.

    def pop_specific(self, pod: Pod, now_ns: int) -> QueuedPod | None:
        """Activate a pod and pop it out of turn; None if it is not in the active queue after activation."""
        self._activate(pod, now_ns)
        queued = self._records.get(key_of(pod))
        if queued is None or not queued.tier & ACTIVE:
            return None
        self._leave(queued, ACTIVE)
        queued.attempts += 1
        if not self._in_flight.start(queued):
            return None
        self.scheduling_cycle += 1
        return queued

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
    ) -> Requeue:
        """Requeue a popped pod whose attempt failed, and end the attempt.

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
            return Requeue(False)
        if uid_of(known) != queued.uid:
            self._in_flight.done(queued.uid)
            return Requeue(False)
        queued.replace_version(known)
        self.nominator.add(queued.pod, nominated_node_name)
        return Requeue(True, self.add_unschedulable_if_not_present(queued, now_ns))

    def add_unschedulable_if_not_present(self, queued: QueuedPod, now_ns: int) -> str:
        """Requeue a failed pod where its rejection and the events since its pop say; end the attempt.

        Return why the queue refuses the pod, in upstream's words, or "".
        """
        error = self._error_if_present(queued)
        if not error:
            if queued.failed_by_error:
                queued.error_count += 1
            else:
                queued.unschedulable_count += 1
                queued.error_count = 0
            queued.timestamp_ns = now_ns
            queued.backoff_expiry_ns = None
            queued.flushed = False
            self._requeue(queued, self._strategy_for_in_flight(queued), now_ns, SCHEDULE_ATTEMPT_FAILURE)
        self._in_flight.done(queued.uid)
        return error

    def _error_if_present(self, queued: QueuedPod) -> str:
        present = self._records.get(queued.key)
        if present is None:
            return ""
        if present.tier & UNSCHEDULABLE:
            where = "unschedulable queue"
        elif present.tier & ACTIVE:
            where = "the active queue"
        else:
            where = "the backoff queue"
        return f"Pod {queued.key} is already present in {where}"

    def _strategy_for_in_flight(self, queued: QueuedPod) -> Strategy:
        if queued.failed_by_error:
            return AFTER_BACKOFF
        happened = self._in_flight.events_since_pop(queued.uid)
        if happened is None:
            return AFTER_BACKOFF
        best = SKIP
        for event, old, new in happened:
            best = max(best, self._hints.match(event).strategy(queued, old, new))
            # Without pending plugins, no better strategy is possible.
            if best is IMMEDIATELY or (best is AFTER_BACKOFF and not queued.pending_plugins):
                break
        return best

    # The cluster changes.

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now_ns: int,
        pre_check: PreCheck | None = None,
    ) -> int:
        """Move the unschedulable pods that an event may help; return how many moved to the active or backoff queues.

        `old` and `new` are the changed object, None for an addition or a deletion. Pods for which `pre_check` returns
        False are skipped.
        """
        match = self._hints.match(event)
        if not match.of_interest:
            return 0
        movers = self._movers(match, old, new, now_ns, pre_check) if len(self._unschedulable) else ()
        return self._move(movers, event, old, new, now_ns)

    def _movers(
        self, match: EventMatch, old: object | None, new: object | None, now_ns: int, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, Strategy]]:
        """Return the unschedulable pods that an event may help, and that `pre_check`, if given, returns True for."""
        movers: list[tuple[QueuedPod, Strategy]] = []
        for group in self._unschedulable.groups:
            members = group.members
            if not members or (group.gating_plugin and group.gating_plugin not in match.gating_plugins):
                continue
            if match.wildcard:
                movers += [(queued, match.strategy(queued, old, new)) for queued in members]
                continue
            interest = match.interest(group.rejection)
            if interest is None:
                continue
            if interest.at_least is SKIP and not interest.pending and len(interest.others) == 1:
                # Nearly every event in a large cluster takes this path: one hint, run for thousands of pods.
                hint = interest.others[0]
                movers += [(queued, AFTER_BACKOFF) for queued in members if hint(queued.pod, old, new)]
            else:
                movers += [(queued, interest.evaluate(queued.pod, old, new)) for queued in members]
        return movers if pre_check is None else [mover for mover in movers if pre_check(mover[0].pod)]

    def _move(
        self,
        movers: Iterable[tuple[QueuedPod, Strategy]],
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now_ns: int,
    ) -> int:
        moved = 0
        for queued, strategy in movers:
            if strategy is SKIP:
                continue
            self._unschedulable.remove(queued)
            self._requeue(queued, strategy, now_ns, event.label)
            moved += not queued.tier & UNSCHEDULABLE
        if self._in_flight:
            self._in_flight.append(event, old, new)
        return moved

    def activate(self, pods: Iterable[Pod], now_ns: int) -> int:
        """Move pods to the active queue immediately, at the request of plugins; return the number of moved pods.

        A pod that is in flight is tried again when it comes back.
        """
        activated = 0
        for pod in pods:
            if self._activate(pod, now_ns):
                activated += 1
            elif uid_of(pod) in self._in_flight:
                self._in_flight.append(FORCE_ACTIVATE, None, pod)
        return activated

    def _activate(self, pod: Pod, now_ns: int) -> bool:
        queued = self._records.get(key_of(pod))
        if queued is None:
            return False
        if queued.tier & UNSCHEDULABLE:
            return self._to_active(queued, now_ns, _LABEL_FORCE_ACTIVATE)
        if queued.tier & WAITS_FOR_BACKOFF:
            self._leave(queued, WAITS_FOR_BACKOFF)
            return self._to_active(queued, now_ns, _LABEL_FORCE_ACTIVATE, True)
        return False

    # Time passes.

    def flush_backoff(self, now_ns: int) -> int:
        """Move the pods whose backoff has ended to the active queue, as upstream does every second; count them."""
        moved = 0
        for queued in self._backoff.pop_finished(now_ns):
            if queued.tier == NOWHERE:
                del self._records[queued.key]
            moved += self._to_active(queued, now_ns, BACKOFF_COMPLETE, True)
        return moved

    def flush_unschedulable(self, now_ns: int) -> int:
        """Move the pods that have been unschedulable for too long; return their number. Upstream does this every 30 s.

        Gated pods stay, but while one of them is overdue, the timer counts as an event for pods in flight: if their
        attempt fails, they are retried without waiting for another event.
        """
        self._unschedulable_flushed_ns = now_ns
        overdue = self._unschedulable.mark_overdue(now_ns - self.options.max_in_unschedulable_ns)
        if not overdue:
            return 0
        match = self._hints.match(UNSCHEDULABLE_TIMEOUT)
        movers = [
            (queued, match.strategy(queued, None, None))
            for queued in overdue
            if not queued.gating_plugin or queued.gating_plugin in match.gating_plugins
        ]
        return self._move(movers, UNSCHEDULABLE_TIMEOUT, None, None, now_ns)

    def next_flush_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant, now or later, at which a timer would change something; None if there is none.

        The instant is on upstream's grid: whole seconds for `flush_backoff` (since the start without popping from the
        backoff queue), multiples of 30 s since the start for `flush_unschedulable`. A host that calls both then misses
        nothing.
        """
        ticks = [self._backoff.next_flush_ns(now_ns)]
        waiting = self._unschedulable
        oldest_ns = waiting.oldest_timestamp_ns()
        due = [] if oldest_ns is None else [oldest_ns + self.options.max_in_unschedulable_ns + 1]
        if waiting.overdue:
            # Overdue gated pods only matter to pods in flight, or if their gate registers the timer event.
            held = self._hints.match(UNSCHEDULABLE_TIMEOUT).gating_plugins
            if self._in_flight or any(not gate or gate in held for gate in waiting.overdue_by_gate):
                due.append(self._unschedulable_flushed_ns + 1)
        if due:
            start_ns = self.options.start_ns
            ticks.append(first_on_grid(max(min(due), now_ns, start_ns), start_ns, FLUSH_UNSCHEDULABLE_PERIOD_NS))
        return min((tick for tick in ticks if tick is not None), default=None)

    def close(self) -> None:
        """Drop the pods in flight, because the scheduler is about to stop. The remaining pods can still be popped."""
        self._in_flight.clear()
        self.closed = True

    # Nominations.

    def nominate(self, pod: Pod, nominated_node_name: str | None = None) -> None:
        """Nominate a pod to a node; "" clears the nomination, None uses the node in the pod's status."""
        self.nominator.add(pod, nominated_node_name)

    def unnominate(self, pod: Pod) -> None:
        """Clear a pod's nomination."""
        self.nominator.remove(uid_of(pod))
