"""The scheduling queue of the classic scheduler: activeQ, podBackoffQ, unschedulableQ.

Like `bayplan.engine.queue`, it has no clock, lock or thread, and it has the same interface, so hosts and event handlers
can use both. There are no hints and no gates: an event moves all unschedulable pods, except that a newly assigned pod
moves only those with a matching affinity term. A failed pod goes to podBackoffQ if a move was requested since it was
popped, else to unschedulableQ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.classic.go_heap import GoHeap
from bayplan.classic.pod_backoff import PodBackoffMap
from bayplan.engine.nominated_pods import PodLister
from bayplan.engine.queue import LABEL_ADD, LABEL_UPDATE, PreCheck, PreEnqueue, SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS, FLUSH_UNSCHEDULABLE_PERIOD_NS, QueueOptions, first_on_grid
from bayplan.engine.queued_pod import NO_PLUGINS, KeyFunction, QueuedPod, key_of, priority_sort, uid_of
from bayplan.framework.events import (
    ANY_EVENT,
    ASSIGNED_POD_ADD,
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    EventResource,
    HintTable,
    ObjectChange,
)
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.pod import Pod, PodStatus
from bayplan.objects.storage import StorageClass
from bayplan.plugins.pod_claims import WAIT_FOR_FIRST_CONSUMER
from bayplan.state.affinity_terms import pod_terms

UNSCHEDULABLE_TIMEOUT_NS = 60 * SECOND_NS
"""A pod that has been unschedulable for longer than this is retried without any event."""

IN_UNSCHEDULABLE = "pod is already present in unschedulableQ"
IN_ACTIVE = "pod is already present in the activeQ"
IN_BACKOFF = "pod is already present in the backoffQ"


_CHANGES = ActionType.ADD | ActionType.UPDATE
_MOVING = {
    EventResource.PERSISTENT_VOLUME: _CHANGES,
    EventResource.PERSISTENT_VOLUME_CLAIM: _CHANGES,
    EventResource.CSI_NODE: _CHANGES,
    EventResource.STORAGE_CLASS: ActionType.ADD,
    EventResource.NODE: ActionType.ADD,
    EventResource.ASSIGNED_POD: ActionType.DELETE,
}
"""The actions that move all unschedulable pods, by kind of object; `bayplan.classic.events` handles all others."""


class ClassicQueue(SchedulingQueue):
    """The pods that wait for a node. Arguments as for `SchedulingQueue`.

    Hints, PreEnqueue plugins and the sort key are ignored.

    Attributes:
        move_request_cycle: the scheduling cycle of the last request to move pods; -1 if there was none.
        pod_backoff: the backoff of each pod.
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
        options = replace(options, pop_from_backoff=False)
        super().__init__(hints, pre_enqueue, pod_lister, sort_key=sort_key, options=options)
        self.move_request_cycle = -1
        self.pod_backoff = PodBackoffMap()
        self._active_q = GoHeap(_precedes)
        self._backoff_q = GoHeap(self._backs_off_shorter)
        self._unschedulable_q: dict[str, QueuedPod] = {}
        self._popped: dict[str, QueuedPod] = {}

    def _backs_off_shorter(self, left: QueuedPod, right: QueuedPod) -> bool:
        # A pod without a recorded backoff has upstream's zero time, which is before all others.
        times = (self.pod_backoff.backoff_time_ns(queued.key) for queued in (left, right))
        left_ns, right_ns = (-(1 << 63) if time_ns is None else time_ns for time_ns in times)
        return left_ns < right_ns

    # Adding and removing pods.

    def add(self, pod: Pod, now_ns: int) -> None:
        """Add a pod that is new in the cluster."""
        queued = self.new_record(pod, now_ns)
        self._to_active(queued, now_ns, LABEL_ADD)
        self._unschedulable_q.pop(queued.key, None)
        self._backoff_q.delete(queued.key)
        self.nominator.add(pod)

    def add_if_not_present(self, pod: Pod, now_ns: int) -> None:
        """Add a pod unless one of the queues contains it."""
        if self.get(key_of(pod)) is None:
            self._to_active(self.new_record(pod, now_ns), now_ns, LABEL_ADD)
            self.nominator.add(pod)

    def update(self, old: Pod | None, new: Pod, now_ns: int) -> None:
        """Replace a pod without a node by its new version.

        A pod in podBackoffQ moves to activeQ. An unschedulable pod moves to activeQ, and its backoff is cleared, only
        if more than its status has changed.
        """
        key = key_of(new)
        for heap in (self._active_q, self._backoff_q):
            queued = heap.get(key_of(old)) if old is not None else None
            if queued is not None and old is not None:
                self.nominator.update(old, new)
                if heap is self._backoff_q:
                    heap.delete(queued.key)
                    queued.replace_version(new)
                    self._to_active(queued, now_ns, LABEL_UPDATE)
                else:
                    queued.replace_version(new)
                    self._active_q.add(queued)
                return
        queued = self._unschedulable_q.get(key)
        if queued is None:
            self._to_active(self.new_record(new, now_ns), now_ns, LABEL_UPDATE)
            self.nominator.add(new)
            return
        # Upstream always has an old version.
        before = queued.pod if old is None else old
        self.nominator.update(before, new)
        queued.replace_version(new)
        if is_pod_updated(before, new):
            self.pod_backoff.clear(key)
            del self._unschedulable_q[key]
            self._to_active(queued, now_ns, LABEL_UPDATE)

    def delete(self, pod: Pod) -> None:
        """Remove a deleted pod. As upstream, the backoff of a pod in activeQ stays recorded under its name."""
        self.nominator.remove(uid_of(pod))
        key = key_of(pod)
        if not self._active_q.delete(key):
            self.pod_backoff.clear(key)
            self._backoff_q.delete(key)
            self._unschedulable_q.pop(key, None)

    # Attempts begin and end.

    def pop(self) -> QueuedPod | None:
        """Pop the next pod, which is then in flight. Return None if no pod is ready (upstream's Pop would block)."""
        queued = self._active_q.pop()
        if queued is not None:
            queued.attempts += 1
            self.scheduling_cycle += 1
            self._popped[queued.uid] = queued
        return queued

    def pop_specific(self, pod: Pod, now_ns: int) -> QueuedPod | None:
        """Return None: this queue can't pop a given pod."""
        return None

    def done(self, uid: str) -> None:
        """End an attempt."""
        self._popped.pop(uid, None)

    def fail(
        self,
        queued: QueuedPod,
        now_ns: int,
        *,
        unschedulable_plugins: frozenset[str] = NO_PLUGINS,
        pending_plugins: frozenset[str] = NO_PLUGINS,
        nominated_node_name: str | None = None,
    ) -> str | None:
        """Requeue a popped pod whose attempt failed, unless it was deleted or has a node."""
        self._popped.pop(queued.uid, None)
        known = self._pod_lister(queued.key)
        if known is None or known.spec.node_name:
            return None
        queued.replace_version(known)
        queued.unschedulable_plugins = unschedulable_plugins
        problem = self.add_unschedulable_if_not_present(queued, now_ns)
        if nominated_node_name is not None:
            self.nominator.add(known, nominated_node_name)
        return problem

    def add_unschedulable_if_not_present(
        self, queued: QueuedPod, now_ns: int, *, scheduling_cycle: int | None = None
    ) -> str:
        """Requeue a failed pod; return the error in upstream's words if the queue rejects it, else "".

        Args:
            queued: the record of the pod.
            now_ns: the time.
            scheduling_cycle: the cycle in which it was popped; None for the current one.
        """
        key = queued.key
        if key in self._unschedulable_q:
            return IN_UNSCHEDULABLE
        if self._active_q.get(key) is not None:
            return IN_ACTIVE
        if self._backoff_q.get(key) is not None:
            return IN_BACKOFF
        queued.timestamp_ns = now_ns
        self._backoff_pod(key, now_ns)
        if self.move_request_cycle >= (self.scheduling_cycle if scheduling_cycle is None else scheduling_cycle):
            self._to_backoff(queued, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._to_unschedulable(queued, SCHEDULE_ATTEMPT_FAILURE)
        self.nominator.add(queued.pod)
        return ""

    def _backoff_pod(self, key: str, now_ns: int) -> None:
        """Count a failed attempt, unless the pod is still in backoff after the previous one."""
        self.pod_backoff.clean_up(now_ns)
        until_ns = self.pod_backoff.backoff_time_ns(key)
        if until_ns is None or until_ns < now_ns:
            self.pod_backoff.backoff_pod(key, now_ns)

    # The cluster changes.

    def move_all(
        self,
        event: ClusterEvent,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
        now_ns: int,
        pre_check: PreCheck | None = None,
    ) -> int:
        """Handle an event like the event handlers of 1.16; return the number of moved pods."""
        resource = EventResource(event.resource)
        if resource is EventResource.ASSIGNED_POD and event.actions & ActionType.ADD:
            return self.assigned_pod_added(new, now_ns) if isinstance(new, Pod) else 0
        if not event.actions & _MOVING.get(resource, ActionType(0)):
            return 0
        if isinstance(new, StorageClass) and new.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            return 0
        return self.move_all_to_active_queue(now_ns, event.label)

    def move_all_to_active_queue(self, now_ns: int, label: str = ANY_EVENT.label) -> int:
        """Move all unschedulable pods to activeQ, or to podBackoffQ during their backoff; return their number.

        Pods in flight go to podBackoffQ if they fail.

        Args:
            now_ns: the time.
            label: the label of the event.
        """
        return self._move_to_queues(list(self._unschedulable_q.values()), now_ns, label)

    def assigned_pod_added(self, pod: Pod, now_ns: int) -> int:
        """Move the pods with affinity to this pod; return their number.

        Pods in flight are affected as by other moves.
        """
        return self._move_to_queues(self._with_matching_affinity_term(pod), now_ns, ASSIGNED_POD_ADD.label)

    def _with_matching_affinity_term(self, pod: Pod) -> list[QueuedPod]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        return [
            queued
            for queued in self._unschedulable_q.values()
            if any(
                namespace in term.namespaces and term.selector.matches(labels)
                for term in pod_terms(queued.pod).required_affinity
            )
        ]

    def _move_to_queues(self, movers: Iterable[QueuedPod], now_ns: int, label: str) -> int:
        moved = 0
        for queued in movers:
            until_ns = self.pod_backoff.backoff_time_ns(queued.key)
            if until_ns is not None and until_ns > now_ns:
                self._to_backoff(queued, label)
            else:
                self._to_active(queued, now_ns, label)
            del self._unschedulable_q[queued.key]
            moved += 1
        self.move_request_cycle = self.scheduling_cycle
        return moved

    def activate(self, pods: Iterable[Pod], now_ns: int) -> int:
        """Move pods to activeQ immediately; return their number. For users: plugins could not request this in 1.16."""
        moved = 0
        for pod in pods:
            key = key_of(pod)
            queued = self._unschedulable_q.pop(key, None) or self._backoff_q.get(key)
            if queued is not None:
                self._backoff_q.delete(key)
                self._to_active(queued, now_ns, FORCE_ACTIVATE.label)
                moved += 1
        return moved

    # The three queues.

    def _to_active(self, queued: QueuedPod, now_ns: int, label: str, from_backoff: bool = False) -> bool:
        self._active_q.add(queued)
        queued.backoff_expiry_ns = None
        if queued.initial_attempt_ns is None:
            queued.initial_attempt_ns = now_ns
        self.incoming["active"][label] += 1
        return True

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        self._backoff_q.add(queued)
        queued.backoff_expiry_ns = self.pod_backoff.backoff_time_ns(queued.key)
        self.incoming["backoff"][label] += 1

    def _to_unschedulable(self, queued: QueuedPod, label: str) -> None:
        self._unschedulable_q[queued.key] = queued
        self.incoming["unschedulable"][label] += 1

    # Time passes.

    def flush_backoff(self, now_ns: int) -> int:
        """Move the pods whose backoff has ended to activeQ; return their number. Upstream does this every second."""
        moved = 0
        while (queued := self._backoff_q.peek()) is not None:
            until_ns = self.pod_backoff.backoff_time_ns(queued.key)
            if until_ns is not None and until_ns > now_ns:
                break
            self._backoff_q.pop()
            self._to_active(queued, now_ns, BACKOFF_COMPLETE)
            moved += 1
        return moved

    def flush_unschedulable(self, now_ns: int) -> int:
        """Move the pods that have been unschedulable for more than 60 s; return their number.

        Upstream does this every 30 s.
        """
        overdue = [
            queued
            for queued in self._unschedulable_q.values()
            if now_ns - queued.timestamp_ns > UNSCHEDULABLE_TIMEOUT_NS
        ]
        return self._move_to_queues(overdue, now_ns, UNSCHEDULABLE_TIMEOUT.label) if overdue else 0

    def next_flush_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant, now or later, at which a timer would change something; None if there is none."""
        start_ns = self.options.start_ns
        ticks = []
        first = self._backoff_q.peek()
        if first is not None:
            until_ns = self.pod_backoff.backoff_time_ns(first.key)
            ticks.append(first_on_grid(max(until_ns or 0, now_ns, start_ns), start_ns, SECOND_NS))
        if self._unschedulable_q:
            oldest_ns = min(queued.timestamp_ns for queued in self._unschedulable_q.values())
            due_ns = max(oldest_ns + UNSCHEDULABLE_TIMEOUT_NS + 1, now_ns, start_ns)
            ticks.append(first_on_grid(due_ns, start_ns, FLUSH_UNSCHEDULABLE_PERIOD_NS))
        return min(ticks, default=None)

    # Pending pods.

    def __len__(self) -> int:
        return len(self._active_q) + len(self._backoff_q) + len(self._unschedulable_q)

    @property
    def has_next(self) -> bool:
        """Return whether there is a pod to pop."""
        return bool(len(self._active_q))

    def get(self, key: str) -> QueuedPod | None:
        """Return the record of the waiting pod ``namespace/name``, or None."""
        return self._active_q.get(key) or self._backoff_q.get(key) or self._unschedulable_q.get(key)

    def active(self) -> list[QueuedPod]:
        """Return the pods of activeQ, in no meaningful order."""
        return [*self._active_q]

    def backing_off(self) -> list[QueuedPod]:
        """Return the pods of podBackoffQ, in no meaningful order."""
        return [*self._backoff_q]

    def unschedulable(self) -> list[QueuedPod]:
        """Return the pods of unschedulableQ, in the order in which they were added."""
        return [*self._unschedulable_q.values()]

    def in_flight(self) -> list[QueuedPod | ObjectChange]:
        """Return the pods in flight; no events are recorded for them."""
        return [*self._popped.values()]

    def close(self) -> None:
        """Drop the pods in flight; see `SchedulingQueue.close`."""
        super().close()
        self._popped.clear()

    def pending_counts(self) -> dict[str, int]:
        """Return the sizes of the queues."""
        return {
            "active": len(self._active_q),
            "backoff": len(self._backoff_q),
            "unschedulable": len(self._unschedulable_q),
            "gated": 0,
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the queue is inconsistent, for example if a pod is in two queues."""
        keys = [queued.key for queued in (*self.active(), *self.backing_off(), *self.unschedulable())]
        assert len(keys) == len(set(keys))
        assert all(key_of(queued.pod) == key for key, queued in self._unschedulable_q.items())


def _precedes(left: QueuedPod, right: QueuedPod) -> bool:
    """Return whether one pod comes before another: by priority, higher first, then by age."""
    if left.priority != right.priority:
        return left.priority > right.priority
    return left.timestamp_ns < right.timestamp_ns


def is_pod_updated(old: Pod, new: Pod) -> bool:
    """Return whether a pod has changed in more than its status and versions."""
    return _without_status(old) != _without_status(new)


def _without_status(pod: Pod) -> Pod:
    metadata: ObjectMeta = replace(pod.metadata, resource_version="", generation=0)
    return replace(pod, metadata=metadata, status=PodStatus())
