"""The scheduling queue of a simulation: time alone never brings a rejected pod back, because it could not help.

Upstream tries every unschedulable pod again after five minutes, in case an event was missed. In a simulation none is missed:
plugins say which events may help a pod that they rejected, every event comes by here, and a pod that none of them woke would
fail for the same reasons as before. Over months of virtual time with pods that wait, such attempts would be nearly all
there is to do.

So they are not made, but counted: when a pod leaves the unschedulable pods at last, its number of attempts, its backoff and the
time of its last failure, by which pods of equal priority are ordered, are what they would be after them. Two kinds of pods are
still brought back by time: those that no plugin rejected, and those rejected by a plugin that names no events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bayplan.engine.hint_index import SKIP, Rejection, Strategy
from bayplan.engine.nominator import PodLister
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS, FLUSH_UNSCHEDULABLE_PERIOD_NS, QueueOptions, first_on_grid
from bayplan.engine.queue_tiers import PreEnqueue
from bayplan.engine.queued_pod import UNSCHEDULABLE, KeyFunction, QueuedPod, priority_sort
from bayplan.framework.events import UNSCHEDULABLE_TIMEOUT, HintTable
from bayplan.objects.pod import Pod


class EventDrivenQueue(SchedulingQueue):
    """A scheduling queue that trusts the hints. Arguments as for `SchedulingQueue`.

    Attributes:
        timed_retries: whether time brings back all pods after all, as upstream; a simulation sets it when nothing but time is
            left, so that every pod that waits is tried on the final state of the cluster.
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
        self._listening = {profile: frozenset(plugin for _, plugin, _ in table) for profile, table in hints.items()}
        self._trusted: dict[Rejection, bool] = {}

    def flush_unschedulable(self, now_ns: int) -> int:
        """Move the pods that have been unschedulable for too long and that no event can be relied on to wake."""
        before_ns = now_ns - self.options.max_in_unschedulable_ns
        overdue = [queued for queued in self._timed() if self._last_failure_ns(queued, now_ns) < before_ns]
        return self._retry(overdue, now_ns)

    def next_flush_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant, now or later, at which one of the timers would change something; None: never."""
        ticks = [] if (tick_ns := self._backoff.next_flush_ns(now_ns)) is None else [tick_ns]
        oldest_ns = min((self._last_failure_ns(queued, now_ns) for queued in self._timed()), default=None)
        if oldest_ns is not None:
            ticks.append(self._on_grid(max(oldest_ns + self.options.max_in_unschedulable_ns + 1, now_ns)))
        return min(ticks, default=None)

    def retry_overdue(self, now_ns: int) -> int:
        """Move the pods that upstream would have tried again since they failed; return how many."""
        members = [
            queued for group in self._unschedulable.groups if not group.gating_plugin for queued in group.members
        ]
        overdue = [queued for queued in members if self._last_failure_ns(queued, now_ns) > queued.timestamp_ns]
        return self._retry(overdue, now_ns)

    def _retry(self, pods: Sequence[QueuedPod], now_ns: int) -> int:
        match = self._hints.match(UNSCHEDULABLE_TIMEOUT)
        movers = [(queued, match.strategy(queued, None, None)) for queued in pods]
        return self._move(movers, UNSCHEDULABLE_TIMEOUT, None, None, now_ns) if movers else 0

    def _timed(self) -> Iterator[QueuedPod]:
        """Yield the pods that time brings back."""
        for group in self._unschedulable.groups:
            if (
                group.members
                and not group.gating_plugin
                and (self.timed_retries or not self._is_trusted(group.rejection))
            ):
                yield from group.members

    def _is_trusted(self, rejection: Rejection) -> bool:
        """Return whether every plugin that rejected a pod says which events may help it."""
        trusted = self._trusted.get(rejection)
        if trusted is None:
            profile, unschedulable, pending = rejection
            rejecting = unschedulable | pending
            trusted = bool(rejecting) and rejecting <= self._listening.get(profile, frozenset())
            self._trusted[rejection] = trusted
        return trusted

    # Attempts that were not made.

    def _last_failure_ns(self, queued: QueuedPod, now_ns: int) -> int:
        """Return when a waiting pod would have failed last, up to but not including now."""
        return self._retries(queued, now_ns)[1]

    def _retries(self, queued: QueuedPod, now_ns: int) -> tuple[int, int]:
        """Return how often a waiting pod would have been tried in vain since it failed, and when last."""
        failed_ns = queued.timestamp_ns
        rejection = (queued.pod.spec.scheduler_name, queued.unschedulable_plugins, queued.pending_plugins)
        if queued.gating_plugin or not self._is_trusted(rejection):
            return 0, failed_ns
        first_ns = self._on_grid(failed_ns + self.options.max_in_unschedulable_ns + 1)
        if first_ns >= now_ns:
            return 0, failed_ns
        period_ns = self._on_grid(first_ns + self.options.max_in_unschedulable_ns + 1) - first_ns
        more = (now_ns - 1 - first_ns) // period_ns
        return more + 1, first_ns + more * period_ns

    def _on_grid(self, earliest_ns: int) -> int:
        start_ns = self.options.start_ns
        return first_on_grid(max(earliest_ns, start_ns), start_ns, FLUSH_UNSCHEDULABLE_PERIOD_NS)

    def _catch_up(self, queued: QueuedPod, now_ns: int) -> None:
        """Count the attempts that a waiting pod would have seen by now."""
        count, last_ns = self._retries(queued, now_ns)
        if count:
            queued.attempts += count
            queued.unschedulable_count += count
            queued.timestamp_ns = last_ns
            queued.backoff_expiry_ns = None

    def _requeue(self, queued: QueuedPod, strategy: Strategy, now_ns: int, label: str) -> None:
        if strategy is not SKIP:
            self._catch_up(queued, now_ns)
        super()._requeue(queued, strategy, now_ns, label)

    def _activate(self, pod: Pod, now_ns: int) -> bool:
        queued = self._records.get(f"{pod.metadata.namespace}/{pod.metadata.name}")
        if queued is not None and queued.tier & UNSCHEDULABLE:
            self._catch_up(queued, now_ns)
        return super()._activate(pod, now_ns)
