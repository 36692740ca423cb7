"""The scheduling queue of simulations: a rejected pod is retried after an event that may help, not by time alone.

Upstream retries every unschedulable pod after five minutes, in case it missed an event. A simulation misses none, so
such attempts would fail again, and over months of virtual time they would take nearly all of the time. The queue counts
them without running them: when a pod leaves the unschedulable pods, its number of attempts, its backoff and the time of
its last failure are what they would be after those attempts. Time still retries pods that no plugin rejected, pods
rejected by a plugin that registers no events, and, without nodes, all pods: an attempt then ends with an error.

Most events that wake a pod don't help it, either. With a `RetryPredictor`, an event that wakes a plan group of similar
pods retries only one of them, the head, and only if the plan finds a node for it. The others follow one by one while
there is room, then fail together. Pods get nodes in the same order as with upstream's queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bayplan.engine.hint_index import AFTER_BACKOFF, SKIP, EventMatch, Strategy
from bayplan.engine.nominated_pods import PodLister
from bayplan.engine.plan_groups import PlanGroup, UnschedulablePodsByPlan
from bayplan.engine.queue import TIMEOUT, PreCheck, PreEnqueue, SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS, QueueOptions
from bayplan.engine.queued_pod import KeyFunction, QueuedPod, Rejection, key_of, priority_sort
from bayplan.engine.unschedulable_pods import RejectionGroup
from bayplan.framework.events import HintTable, ObjectChange
from bayplan.objects.pod import Pod

if TYPE_CHECKING:
    from bayplan.engine.plan import Plan
    from bayplan.engine.retry_predictor import RetryPredictor


class EventDrivenQueue(SchedulingQueue):
    """A scheduling queue that relies on queueing hints. Arguments as for `SchedulingQueue`.

    Attributes:
        timed_retries: whether pods also return to the queue after some time, as upstream; a simulation sets it when
            only timers are left, so that every waiting pod is tried on the final state of the cluster.
        retry_predictor: predicts whether a waiting pod can be scheduled; None to try every woken pod.
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
        super().__init__(hints, pre_enqueue, pod_lister, sort_key=sort_key, options=options)
        self.timed_retries = False
        self.retry_predictor: RetryPredictor | None = None
        self._listening = {profile: frozenset(plugin for _, plugin, _ in table) for profile, table in hints.items()}
        self._unschedulable = UnschedulablePodsByPlan(self._plan_of)
        # Plan groups need both: members are ordered by age, and a head is tried at the instant at which it is woken.
        self._groups_by_plan = sort_key is priority_sort and options.pop_from_backoff
        self._woken: dict[PlanGroup, None] = {}
        self._plan_group_of_head: dict[QueuedPod, PlanGroup] = {}
        self._tried_head: tuple[PlanGroup, QueuedPod] | None = None

    # Plan groups.

    def _plan_of(self, queued: QueuedPod) -> Plan | None:
        """Return the plan of a pod that only events bring back and whose backoff is at the maximum; else None."""
        options, count = self.options, queued.unschedulable_count
        if (
            self.retry_predictor is None
            or not self._groups_by_plan
            # A pod's nomination counts for all pods except itself, so no other pod has the same feasible nodes.
            or self.nominator.node_by_uid.get(queued.uid)
            or queued.gating_plugin
            or queued.pending_plugins
            or not count
            or options.initial_backoff_ns << (count - 1) < options.max_backoff_ns
            or not self._is_trusted(queued.rejection)
        ):
            return None
        return self.retry_predictor.plan_of(queued)

    def _movers(
        self, group: RejectionGroup, match: EventMatch, happened: ObjectChange, now_ns: int, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, Strategy]]:
        """Return the members of a group that an event may help; a plan group is only woken until the next `pop`."""
        if not isinstance(group, PlanGroup):
            return super()._movers(group, match, happened, now_ns, pre_check)
        sample = next(iter(group.members.values()))
        if match.strategy(sample, happened.old, happened.new) is not SKIP and (
            pre_check is None or pre_check(sample.pod)
        ):
            head = group.head
            if head is None or not (self._active.get(head.key) is head or self._backoff.get(head.key) is head):
                group.head, group.woken_ns, group.label = None, now_ns, happened.event.label
                self._woken[group] = None
        return []

    def _send_next_head(self, plan_group: PlanGroup) -> None:
        """Requeue the next member as the head, which is tried for all, or fail all if the plan has no node for them."""
        assert self.retry_predictor is not None
        plan_group.head = None
        if not plan_group.members:
            return
        now_ns = plan_group.woken_ns
        if self.retry_predictor.cannot_succeed(plan_group.plan, plan_group.rejection[1], now_ns):
            plan_group.fail_all(now_ns, self._retries_since)
            return
        plan_group.head = head = plan_group.first(now_ns, self._retries_since)
        self._plan_group_of_head[head] = plan_group
        self._unschedulable.discard(head.key)
        self._requeue(head, AFTER_BACKOFF, now_ns, plan_group.label)

    def pop(self) -> QueuedPod | None:
        """Pop the next pod, which is then in flight; None if no pod is ready."""
        tried, self._tried_head = self._tried_head, None
        if tried is None and not (len(self._active) or len(self._backoff) or len(self._unschedulable)):
            # A simulation calls this at every instant, and usually no pod waits.
            return None
        if tried is not None and tried[0].head is tried[1]:
            plan_group, head = tried
            if self.get(head.key) is not head:
                # The head got a node or waits at Permit, so the next member is tried.
                self._send_next_head(plan_group)
            else:
                self._scatter(plan_group)
        # All events since the last pop count.
        woken, self._woken = self._woken, {}
        for plan_group in woken:
            self._send_next_head(plan_group)
        queued = SchedulingQueue.pop(self)
        if queued is not None and queued in self._plan_group_of_head:
            self._tried_head = (self._plan_group_of_head.pop(queued), queued)
        return queued

    def _to_unschedulable(self, queued: QueuedPod, label: str) -> None:
        SchedulingQueue._to_unschedulable(self, queued, label)
        if self._tried_head is not None and self._tried_head[1] is queued:
            plan_group, self._tried_head = self._tried_head[0], None
            if self._unschedulable.group_of.get(queued.key) is plan_group:
                # All members fail like their head.
                plan_group.head = None
                plan_group.fail_all(queued.timestamp_ns, self._retries_since, tried=queued)
            else:
                self._scatter(plan_group)

    def _scatter(self, plan_group: PlanGroup) -> None:
        """Requeue all members as separate pods."""
        plan_group.head = None
        for queued in [*plan_group.members.values()]:
            self._unschedulable.discard(queued.key)
            self._requeue(queued, AFTER_BACKOFF, plan_group.woken_ns, plan_group.label)

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted, or bound by something else. A pod in flight stays in flight."""
        queued = self.get(key_of(pod)) if self._plan_group_of_head else None
        SchedulingQueue.delete(self, pod)
        plan_group = self._plan_group_of_head.pop(queued, None) if queued is not None else None
        if plan_group is not None and plan_group.head is queued:
            self._send_next_head(plan_group)

    # Time.

    def flush_unschedulable(self, now_ns: int) -> int:
        """Move the overdue pods that no event is certain to wake; return the number of pods moved."""
        before_ns = now_ns - self.options.max_in_unschedulable_ns
        overdue = [queued for queued in self._timed() if self._retries(queued, now_ns)[1] < before_ns]
        return self._retry(overdue, now_ns)

    def next_flush_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant, now or later, at which a timer would change something; None if there is none."""
        ticks = [] if (tick_ns := self._backoff.next_flush_ns(now_ns)) is None else [tick_ns]
        oldest_ns = min((self._retries(queued, now_ns)[1] for queued in self._timed()), default=None)
        if oldest_ns is not None:
            ticks.append(self._on_grid(max(oldest_ns + self.options.max_in_unschedulable_ns + 1, now_ns)))
        return min(ticks, default=None)

    def retry_overdue(self, now_ns: int) -> int:
        """Move the pods that upstream would have retried since they failed; return their number."""
        overdue = [
            queued
            for group in self._unschedulable.groups.values()
            if not group.gating_plugin
            for queued in group.members.values()
            if isinstance(group, PlanGroup) or self._retries(queued, now_ns)[1] > queued.timestamp_ns
        ]
        return self._retry(overdue, now_ns)

    @property
    def has_timers(self) -> bool:
        """Return whether time will bring back any waiting pod."""
        return bool(len(self._backoff)) or next(self._timed(), None) is not None

    def catch_up(self, now_ns: int) -> None:
        """Count the retries before now, by time alone, that the host skipped because nothing had changed."""
        for queued in [*self._backoff.failed]:
            self._catch_up_failed(queued, now_ns)
        for group in self._unschedulable.groups.values():
            if group.members and not group.gating_plugin and not self._is_trusted(group.rejection):
                for queued in group.members.values():
                    queued.count_failures(*self._retries_since(queued.timestamp_ns, now_ns))

    def _catch_up_failed(self, queued: QueuedPod, now_ns: int) -> None:
        tick_ns = self._end_of_backoff(queued)
        if tick_ns >= now_ns:
            return
        while tick_ns < now_ns:
            period_ns = tick_ns - queued.timestamp_ns
            longest = self.options.initial_backoff_ns << queued.error_count >= 4 * self.options.max_backoff_ns
            # Once the backoff is at its maximum, failures come at equal intervals.
            more = (now_ns - 1 - tick_ns) // period_ns if longest else 0
            queued.attempts += 1 + more
            queued.error_count += 1 + more
            queued.timestamp_ns = tick_ns + more * period_ns
            queued.backoff_expiry_ns = None
            tick_ns = self._end_of_backoff(queued)
        self._backoff.push(queued)

    def _end_of_backoff(self, queued: QueuedPod) -> int:
        """Return the first tick of the timer after the end of a pod's backoff."""
        self._backoff.is_backing_off(queued, queued.timestamp_ns)
        return self._backoff.first_tick_ns(queued, self.options.start_ns + 1)

    def _retry(self, pods: Sequence[QueuedPod], now_ns: int) -> int:
        movers = [(queued, AFTER_BACKOFF) for queued in pods]
        return self._move(movers, TIMEOUT, now_ns) if movers else 0

    def _timed(self) -> Iterator[QueuedPod]:
        """Yield the pods that time brings back: those that no event is certain to wake, or all (see `timed_retries`)."""
        everybody = self.timed_retries or (self.retry_predictor is not None and self.retry_predictor.has_no_nodes)
        for group in self._unschedulable.groups.values():
            if group.members and not group.gating_plugin and (everybody or not self._is_trusted(group.rejection)):
                yield from group.members.values()

    def _is_trusted(self, rejection: Rejection) -> bool:
        """Return whether every plugin that rejected a pod registers the events that may help it."""
        profile, unschedulable, pending = rejection
        rejecting = unschedulable | pending
        return bool(rejecting) and rejecting <= self._listening.get(profile, frozenset())

    # Attempts that are counted but not run.

    def _retries(self, queued: QueuedPod, now_ns: int) -> tuple[int, int]:
        """Return the number of counted attempts since a waiting pod's last failure, and the time of the last one."""
        group = self._unschedulable.group_of.get(queued.key)
        failed_ns = group.failure_ns(queued) if isinstance(group, PlanGroup) else queued.timestamp_ns
        if queued.gating_plugin or not self._is_trusted(queued.rejection):
            return 0, failed_ns
        return self._retries_since(failed_ns, now_ns)

    def _retries_since(self, failed_ns: int, now_ns: int) -> tuple[int, int]:
        first_ns = self._on_grid(failed_ns + self.options.max_in_unschedulable_ns + 1)
        if first_ns >= now_ns:
            return 0, failed_ns
        period_ns = self._on_grid(first_ns + self.options.max_in_unschedulable_ns + 1) - first_ns
        more = (now_ns - 1 - first_ns) // period_ns
        return more + 1, first_ns + more * period_ns

    def _requeue(self, queued: QueuedPod, strategy: Strategy, now_ns: int, label: str) -> None:
        if strategy is not SKIP:
            queued.count_failures(*self._retries(queued, now_ns))
        SchedulingQueue._requeue(self, queued, strategy, now_ns, label)
