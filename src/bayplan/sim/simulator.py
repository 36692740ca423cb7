"""The simulator: runs one scheduler and one virtual cluster through virtual time, by discrete events.

It makes no decisions. It goes from instant to instant: to the next external operation, task of the virtual cluster
(kubelet, controllers), action of an agent, or timer of the scheduler. It passes every change in the cluster to the
scheduler, and executes the scheduler's actions. `bayplan.sim.operations.Rank` defines the order within an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from bayplan.base.durations import DAY_NS
from bayplan.base.errors import InputError
from bayplan.cluster.store import ChangeEvent
from bayplan.cluster.watched_kinds import WATCHED_KINDS
from bayplan.engine.actions import Action, Bind, CycleReport, Emit, Nominate, SetCondition, Update
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.engine.records import Outcome
from bayplan.engine.retry_predictor import RetryPredictor
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Code, Status
from bayplan.objects.resource import ResourceClaim
from bayplan.sim.agents import Agents
from bayplan.sim.binding_problem import binding_problem, update_problem
from bayplan.sim.emitted_events import EmittedEvents
from bayplan.sim.operation_schedule import OperationSchedule
from bayplan.sim.operations import Apply, Cordon, Delete, Operation
from bayplan.sim.perpetual import perpetual_reason
from bayplan.sim.progress import Progress
from bayplan.sim.relevance import affects_decisions
from bayplan.sim.result import Counters, InputSummary, PodTimeline, SimulationResult
from bayplan.sim.scaling import NodeLifetime
from bayplan.sim.timelines import Timelines
from bayplan.sim.traced_queue import TracedQueue
from bayplan.sim.usage import UsageMeter
from bayplan.sim.virtual_cluster import VirtualCluster

PERPETUAL_HORIZON_NS = DAY_NS
"""Time for which a run without a given end continues after the last external operation, if a workload never finishes."""

PROGRESS_STEP = 500
"""Number of cycles and instants between reports of progress."""

_MAX_ROUNDS = 10_000
"""Maximum number of rounds of controllers and scheduler at one instant; more of them indicate an endless loop."""

_MAX_ATTEMPTS = 1000
"""Maximum average number of cycles per pod at one instant; more of them indicate an endless loop."""


class Simulator:
    """A scheduler and a cluster in virtual time.

    Args:
        scheduler: the scheduler, with an empty state, created with `start_ns` as its start.
        cluster: the cluster, which may contain objects; only the simulator may write to it.
        seed: the seed of the random streams of cluster and scheduler, for the result.
        start_ns: the start of virtual time, in nanoseconds since 1970.
        check: whether to check the invariants of state, queue and store after every event. Slow.
        strict: whether to raise an error if the cluster rejects an object, instead of recording it in `failures`.

    Attributes:
        now_ns: the virtual time; it never goes backwards.
        counters, failures: see `SimulationResult`.
        agents: see `Agents`.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: VirtualCluster,
        *,
        seed: int,
        start_ns: int,
        check: bool = False,
        strict: bool = False,
    ) -> None:
        self.scheduler = scheduler
        self.cluster = cluster
        self.seed = seed
        self.start_ns = start_ns
        self.now_ns = start_ns
        self.counters = Counters()
        self.failures: dict[str, str] = {}
        self._check = check
        self._strict = strict
        self._operations = OperationSchedule()
        # The time of the last operation that the host has added. Those of agents may follow each other forever.
        self._last_given_ns = start_ns
        self._timer_ns: int | None = None
        self._timelines = Timelines(cluster.store)
        self._usage = UsageMeter(scheduler.state, start_ns)
        self._events = EmittedEvents()
        self.agents = Agents()
        self._connect_queue()
        self._stopped = ""
        self._progress: Callable[[Progress], None] | None = None
        self._progress_due = 0
        # Timers do not retry a waiting pod that was tried after the last change in the cluster.
        self._changes = 0
        # The time of the last operation, or action of kubelet and controllers.
        self._active_ns = start_ns
        self._tried: dict[str, int] = {}
        self._all_tried_at = -1

    def _connect_queue(self) -> None:
        queue = self.scheduler.queue
        if isinstance(queue, EventDrivenQueue):
            queue.retry_predictor = RetryPredictor(self.scheduler)
        if isinstance(queue, TracedQueue):
            queue.clock = lambda: self.now_ns

    @property
    def pods(self) -> Sequence[PodTimeline]:
        """Return the timelines of all pods so far, in the order of arrival."""
        return self._timelines.pods

    @property
    def nodes(self) -> Sequence[NodeLifetime]:
        """Return the lifetimes of all nodes so far, in the order of arrival."""
        return self._timelines.nodes

    # Scheduled operations.

    def at(self, time_ns: int, operation: Operation) -> None:
        """Schedule an operation for a time in nanoseconds since 1970; a time in the past means now."""
        self._last_given_ns = max(self._last_given_ns, time_ns)
        self._schedule(time_ns, operation)

    def _schedule(self, time_ns: int, operation: Operation) -> None:
        self._operations.add(max(time_ns, self.now_ns), operation)

    def run(self, *, until_ns: int | None = None, progress: Callable[[Progress], None] | None = None) -> None:
        """Advance virtual time until the cluster is idle, or up to and including `until_ns`.

        The cluster is idle when no operations are left, no pod or controller has anything to do, and every waiting pod
        was tried after the last change: the scheduler's timers could then only repeat failures. If a workload, an
        agent or a plugin never finishes (e.g. a CronJob), the run ends a day after the last operation that was added by `at`.

        Raises:
            InputError: the annotation with a pod's run time is invalid.
        """
        self._progress, self._stopped = progress, ""
        while (time_ns := self._next_instant()) is not None:
            if until_ns is not None and time_ns > until_ns:
                self._stop(until_ns, "the requested time is over")
                break
            if until_ns is None and time_ns > self._last_given_ns + PERPETUAL_HORIZON_NS and self._stop_if_perpetual():
                break
            self._instant(time_ns)

    def advance(self, until_ns: int, *, stop: Callable[[], bool] | None = None) -> bool:
        """Advance virtual time to `until_ns`, even if the cluster is idle earlier; return whether `stop` ended it.

        Args:
            until_ns: the time in nanoseconds since 1970.
            stop: called after every instant; if it returns True, time stops there.
        """
        while (time_ns := self._next_instant()) is not None and time_ns <= until_ns:
            self._instant(time_ns)
            if stop is not None and stop():
                return True
        self._stop(until_ns, "")
        return stop is not None and stop()

    def settle(self, until_ns: int) -> bool:
        """Advance virtual time until the cluster is idle (see `run`), but at most to `until_ns`.

        Return whether it is idle.
        """
        while (time_ns := self._next_instant()) is not None:
            if time_ns > until_ns:
                self._stop(until_ns, "")
                return False
            self._instant(time_ns)
        return True

    def perform(self, operation: Operation) -> None:
        """Execute an operation now, with all its consequences at this instant."""
        self._operate(operation, self.now_ns)
        self._instant(self.now_ns)

    def replace_scheduler(self, scheduler: Scheduler) -> None:
        """Replace the scheduler. The new one tries all waiting pods again, and continues the records.

        Args:
            scheduler: the new scheduler, created for the state of the current one, with `now_ns` as its start.
        """
        before, now_ns = self.scheduler, self.now_ns
        for waiting in list(before.waiting_pods):
            status = Status(Code.UNSCHEDULABLE, ("the scheduler's configuration changed",))
            self._execute(before.reject_waiting_pod(waiting.key, status, now_ns), now_ns)
        scheduler.records = before.records
        self.scheduler = scheduler
        self._connect_queue()
        self._tried.clear()
        self._changes += 1
        for pod in list(self.cluster.store.pods.values()):
            if not pod.spec.node_name:
                self._execute(scheduler.handle(None, pod, now_ns), now_ns)
        self._instant(now_ns)

    def result(self, given: InputSummary | None = None) -> SimulationResult:
        """Return the result so far. Its timelines grow if the simulator continues.

        Args:
            given: the summary of the input, for `SimulationResult.input`.
        """
        scheduler, cluster = self.scheduler, self.cluster
        self._timelines.close(scheduler.queue, frozenset(scheduler.profiles))
        failures = self.failures | {key: str(problem) for key, problem in cluster.failures().items()}
        return SimulationResult(
            seed=self.seed,
            digest=scheduler.records.digest(),
            start_ns=self.start_ns,
            end_ns=self.now_ns,
            stopped=self._stopped,
            scheduler=scheduler,
            cluster=cluster,
            pods=self._timelines.pods,
            nodes=self._timelines.nodes,
            usage=self._usage.usages(self.now_ns),
            counters=self.counters,
            list_events=self._events.all,
            moves=scheduler.queue.moves if isinstance(scheduler.queue, TracedQueue) else None,
            failures=failures,
            input=given or InputSummary(),
        )

    # Time steps.

    def _next_instant(self) -> int | None:
        """Return the next instant at which something relevant happens; None: never."""
        instant_ns = self._operations.next_ns()
        wakeup_ns = self.cluster.next_wakeup()
        if wakeup_ns is not None and (instant_ns is None or wakeup_ns < instant_ns):
            instant_ns = max(wakeup_ns, self.now_ns)
        instant_ns = self.agents.earlier(instant_ns, self._changes, self.now_ns)
        self._timer_ns = timer_ns = self._next_timer(alone=instant_ns is None)
        if timer_ns is not None and (instant_ns is None or timer_ns < instant_ns):
            return timer_ns
        return instant_ns

    def _next_timer(self, *, alone: bool) -> int | None:
        """Return when the scheduler's next relevant timer expires, or None. `alone`: nothing else is left to do."""
        scheduler, queue = self.scheduler, self.scheduler.queue
        if not len(queue) and not len(scheduler.waiting_pods):
            return None
        if isinstance(queue, EventDrivenQueue):
            queue.timed_retries = alone
        elif not alone:
            return scheduler.next_wakeup_ns(self.now_ns)
        return scheduler.next_wakeup_ns(self.now_ns) if self._timers_matter() else None

    def _timers_matter(self) -> bool:
        """Return whether a pod waits at Permit, or a waiting pod has not been tried since the last change."""
        scheduler = self.scheduler
        if len(scheduler.waiting_pods):
            return True
        changes, tried = self._changes, self._tried
        if self._all_tried_at == changes:
            return False
        queue = scheduler.queue
        waiting = chain(queue.backing_off(), queue.unschedulable())
        if any(not queued.gating_plugin and tried.get(queued.key, -1) < changes for queued in waiting):
            return True
        self._all_tried_at = changes
        return False

    def _stop_if_perpetual(self) -> bool:
        """End the run if a workload, an agent or a plugin never finishes; return whether it did."""
        why = perpetual_reason(self.cluster.store) or self.agents.endless_reason(self._last_given_ns)
        if not why and self._only_retries():
            why = "a plugin would make pods wait and reject them forever"
        if why:
            self._stop(self._last_given_ns + PERPETUAL_HORIZON_NS, why)
        return bool(why)

    def _only_retries(self) -> bool:
        """Return whether nothing but the scheduler's timers has caused anything for a long time, or is left to do so."""
        idle = self._operations.next_ns() is None and self.cluster.next_wakeup() is None
        idle = idle and self.agents.earlier(None, self._changes, self.now_ns) is None
        return idle and self._timer_ns is not None and self.now_ns > self._active_ns + PERPETUAL_HORIZON_NS

    def _stop(self, end_ns: int, why: str) -> None:
        """End the run at a given time, after trying the waiting pods whose retries were due until then."""
        self._stopped = why
        self._timer_ns = None
        queue = self.scheduler.queue
        now_ns = max(self.now_ns, end_ns)
        if isinstance(queue, EventDrivenQueue) and queue.retry_overdue(now_ns):
            self._instant(now_ns)
        self.now_ns = now_ns

    def _instant(self, now_ns: int) -> None:
        """Process everything that is due at an instant, in the order of `Rank`."""
        self.now_ns = now_ns
        self.counters.instants += 1
        cluster, scheduler = self.cluster, self.scheduler
        queue = scheduler.queue
        if isinstance(queue, EventDrivenQueue) and len(queue):
            queue.catch_up(now_ns)
            if self._timer_ns is None and queue.has_timers:
                self._timer_ns = scheduler.next_wakeup_ns(now_ns)
        # Kubelet and controllers have one clock, so the due tasks of both run first; those of the kubelet are
        # Rank.ENDS.
        wakeup_ns = cluster.next_wakeup()
        if wakeup_ns is not None and wakeup_ns <= now_ns:
            self._active_ns = now_ns
            self._take(cluster.advance(now_ns), now_ns)
        self._run_operations(now_ns)
        for _ in range(_MAX_ROUNDS):
            wakeup_ns = cluster.next_wakeup()
            if wakeup_ns is not None and wakeup_ns <= now_ns:
                self._active_ns = now_ns
                self._take(cluster.advance(now_ns), now_ns)
            if self._timer_ns is not None and self._timer_ns <= now_ns:
                self._timer_ns = None
                self._execute(scheduler.tick(now_ns), now_ns)
            self._empty_queue(now_ns)
            wakeup_ns = cluster.next_wakeup()
            if (wakeup_ns is None or wakeup_ns > now_ns) and not self._run_agents(now_ns):
                break
        else:
            raise InputError(
                "the cluster keeps changing at one point in virtual time",
                got=f"{_MAX_ROUNDS} rounds of controllers and scheduler",
                hint="run times above 0 for pods that a controller recreates",
            )
        self._usage.settle(now_ns)
        if self._progress is not None:
            self._report_progress(self._progress)

    def _run_operations(self, now_ns: int) -> None:
        operations = self._operations
        while (time_ns := operations.next_ns()) is not None and time_ns <= now_ns:
            self._operate(operations.pop(), now_ns)

    def _run_agents(self, now_ns: int) -> bool:
        """Execute the actions that agents request now; return whether there were any."""
        asked = self.agents.act(now_ns, self._changes)
        for time_ns, operation in asked:
            self._schedule(time_ns, operation)
        self._run_operations(now_ns)
        return bool(asked)

    def _operate(self, operation: Operation, now_ns: int) -> None:
        cluster = self.cluster
        self._active_ns = now_ns
        if isinstance(operation, Apply):
            try:
                changes = cluster.apply(operation.item, now_ns)
            except InputError as refused:
                if self._strict:
                    raise
                name = f"{type(operation.item).__name__} {operation.item.key}"
                self.failures[name] = str(refused).removeprefix(f"{name} ")
                return
        elif isinstance(operation, Delete):
            changes = cluster.delete(
                operation.kind,
                operation.key,
                now_ns,
                propagation=operation.propagation,
                grace_seconds=operation.grace_seconds,
            )
        elif isinstance(operation, Cordon):
            changes = cluster.cordon(operation.node_name, now_ns, unschedulable=operation.unschedulable)
        else:
            changes = cluster.evict_by_api(operation.pod_key, now_ns)
        self._take(changes, now_ns)

    # Changes for the scheduler.

    def _take(self, changes: Iterable[ChangeEvent], now_ns: int) -> None:
        """Pass changes in the cluster to the scheduler, and execute its actions."""
        scheduler, counters = self.scheduler, self.counters
        for change in changes:
            old, new = change.old, change.new
            self._timelines.record(old, new, now_ns)
            if change.kind not in WATCHED_KINDS:
                continue
            counters.events += 1
            if affects_decisions(old, new):
                self._changes += 1
            actions = scheduler.handle(old, new, now_ns)
            if self._check:
                self._check_invariants()
            if actions:
                self._execute(actions, now_ns)

    def _check_invariants(self) -> None:
        self.scheduler.state.check_invariants()
        self.scheduler.queue.check_invariants()
        self.cluster.store.check_invariants()

    # Actions of the scheduler.

    def _empty_queue(self, now_ns: int) -> None:
        scheduler = self.scheduler
        budget = _MAX_ROUNDS + _MAX_ATTEMPTS * len(self.cluster.store.pods)
        while (report := scheduler.schedule_one(now_ns)) is not None:
            self._note(report)
            self._execute(report.actions, now_ns)
            if self._progress is not None:
                self._report_progress(self._progress)
            budget -= 1
            if budget < 0:
                raise InputError(
                    f"Pod {report.pod.key} is retried endlessly at one point in virtual time",
                    got=report.message,
                    hint="a plugin whose results depend only on the pod and the cluster",
                )

    def _note(self, report: CycleReport) -> None:
        counters, outcome = self.counters, report.outcome
        counters.decisions += 1
        key = key_of(report.pod)
        timeline = self._timelines.of_pod(key)
        if timeline is not None:
            timeline.attempts += 1
        if isinstance(self.scheduler.queue, TracedQueue):
            self._trace(self.scheduler.queue, report)
        if outcome is Outcome.SCHEDULED:
            counters.scheduled += 1
            self._tried.pop(key, None)
            return
        self._tried[key] = self._changes
        if outcome is Outcome.UNSCHEDULABLE:
            counters.unschedulable += 1
        elif outcome is Outcome.ERROR:
            counters.errors += 1
        else:
            counters.skipped += 1

    def _trace(self, queue: TracedQueue, report: CycleReport) -> None:
        waiting = self.scheduler.bindings.waiting.get(key_of(report.pod))
        if waiting is not None and report.outcome is Outcome.SCHEDULED:
            queue.wait_for_permit(waiting.queued, waiting.node_name)

    def _execute(self, actions: Iterable[Action], now_ns: int) -> None:
        cluster = self.cluster
        refused = ""
        for action in actions:
            key = key_of(action.pod)
            if isinstance(action, Bind | Update):
                # The remaining actions for a pod are dropped after one of them was rejected.
                if key == refused:
                    continue
                refusal = self._write_for_binding(action, key, now_ns)
                if refusal:
                    refused = key
                    self._execute(refusal, now_ns)
                continue
            if isinstance(action, Emit):
                self._events.record(action, now_ns)
                continue
            if isinstance(action, SetCondition):
                timeline = self._timelines.of_pod(key)
                if timeline is not None:
                    timeline.message, timeline.last_failure_ns = action.message, now_ns
                if isinstance(self.scheduler.queue, TracedQueue):
                    self.scheduler.queue.add_message(uid_of(action.pod), action.message)
                changes = cluster.set_unschedulable(key, action.reason, action.message, now_ns)
            elif isinstance(action, Nominate):
                changes = cluster.set_nominated(key, action.node_name, now_ns)
            else:
                self.counters.evictions += 1
                changes = cluster.evict(key, now_ns, preemptor=action.preemptor)
            self._take(changes, now_ns)

    def _write_for_binding(self, action: Bind | Update, key: str, now_ns: int) -> Sequence[Action]:
        """Bind a pod, or write what its binding requires. If that is rejected, return the scheduler's reaction."""
        cluster, scheduler = self.cluster, self.scheduler
        if isinstance(action, Bind):
            changes = cluster.bind(key, action.node_name, now_ns)
            if not changes:
                plugin = "" if action.extender else "DefaultBinder"
                refusal = binding_problem(cluster.store, key) or "the cluster refused it"
                return scheduler.binding_failed(action.pod, refusal, now_ns, plugin=plugin)
        else:
            changes = cluster.write_volume(action.item, action.node_name, now_ns)
            if not changes and (refusal := update_problem(cluster.store, action.item)):
                plugin = "DynamicResources" if isinstance(action.item, ResourceClaim) else "VolumeBinding"
                return scheduler.binding_failed(action.pod, refusal, now_ns, plugin=plugin, point="PreBind")
        self._take(changes, now_ns)
        return ()

    def _report_progress(self, report: Callable[[Progress], None]) -> None:
        done = self.counters.decisions + self.counters.instants
        if done < self._progress_due:
            return
        self._progress_due = done + PROGRESS_STEP
        left, added = len(self._operations), self._operations.added
        report(Progress(self.now_ns, left, added, len(self.scheduler.queue), self.counters.decisions))
