"""The engine's thread: it turns changes of the cluster into actions, and isolates failures of the scheduler.

Only that thread uses the scheduler. Other threads post changes, submit functions that run between two cycles, pause,
step, and replace the scheduler by one with another configuration. If a plugin fails, its cycle fails
(`bayplan.live.plugin_guard`). An exception in the engine itself is a bug: it is reported, and the scheduler is rebuilt from the
current objects. Without a thread (if `start` is not called), every call does its work immediately in `run_slice`, which tests use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from bayplan.base.clock import Clock
from bayplan.base.errors import EngineBusy
from bayplan.cluster.watched_kinds import WATCHED_KINDS
from bayplan.engine.actions import Action, Bind, CycleReport
from bayplan.engine.scheduler import Scheduler
from bayplan.live.decision_store import DecisionStore
from bayplan.live.engine_calls import EngineCalls
from bayplan.live.engine_recovery import EngineRecovery, prepare, quarantine_unfinished_cycle, refill
from bayplan.live.engine_status import PUBLISH_SECONDS, EngineStatus, StatusPublisher
from bayplan.live.job_thread import JobThread
from bayplan.live.object_mirror import Change, ObjectMirror
from bayplan.live.pending_bindings import PendingBindings
from bayplan.live.plugin_runner import PluginRunner
from bayplan.live.quarantine import Quarantine
from bayplan.live.scheduler_replacement import SchedulerReplacement
from bayplan.live.scheduling_steps import SchedulingSteps
from bayplan.objects.pod import Pod

T = TypeVar("T")

SLICE_CYCLES = 64
SLICE_SECONDS = 0.005
"""The maximum time and number of cycles between two checks of the inbox."""

CALL_TIMEOUT_S = 5.0


class SchedulerThread:
    """Runs a scheduler.

    Args:
        scheduler: the scheduler for an empty cluster; afterwards only the host may use it.
        clock: the clock; while it is paused, pods are only scheduled by steps.
        on_actions: the function to call on the engine's thread with the actions of the current scheduler, in order.
        remake: the function that creates an equivalent scheduler after a failure; if None, scheduling stops.
        runner: the runner of the custom plugins; read for the status.

    Attributes:
        generation: the number of times the scheduler was replaced or rebuilt. Outcomes of earlier generations are ignored.
        on_cycle: the function to call on the engine's thread after each cycle, with the scheduler, the report, and its seconds.
        calls: makes the calls to the scheduler; replace it to measure them.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        on_actions: Callable[[Sequence[Action]], None],
        *,
        remake: Callable[[], Scheduler] | None = None,
        runner: PluginRunner | None = None,
    ) -> None:
        self.clock = clock
        self.generation = 0
        self.on_cycle: Callable[[Scheduler, CycleReport, float], None] | None = None
        self.calls = EngineCalls()
        self._scheduler = scheduler
        prepare(scheduler)
        self._on_actions = on_actions
        self._runner = runner
        self._mirror = ObjectMirror()
        self._quarantine = Quarantine()
        self._bindings = PendingBindings()
        self._actions: list[Action] = []
        self._steps = SchedulingSteps()
        # `next_wakeup_ns` skips instants before its argument, so the due time of the timers is computed in advance.
        self._timer_ns: int | None = None
        self._recovery = EngineRecovery(clock)
        self._replacement = SchedulerReplacement(remake)
        self._publisher = StatusPublisher(clock, runner)
        self._worker = JobThread(self.run_slice, self._seconds_of_rest)
        clock.on_change(self._worker.notify)

    # --- the thread ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._worker.start("bayplan-engine")

    def stop(self, deadline_seconds: float = 5.0) -> None:
        """Stop the thread; a cycle that takes longer than the deadline is abandoned."""
        self._worker.stop(deadline_seconds)
        self._steps.cancel()
        if self._runner is not None:
            self._runner.close()

    def _seconds_of_rest(self) -> float | None:
        """Return how long to sleep unless woken; None for no limit."""
        seconds = None if self._publisher.is_current and not self._replacement.is_requested else PUBLISH_SECONDS
        if self._recovery.is_resting:
            due: float | None = self._recovery.seconds_left()
        else:
            instants = [self._timer_ns, self._quarantine.next_ns()]
            wakeup_ns = min((instant for instant in instants if instant is not None), default=None)
            due = None if wakeup_ns is None else self.clock.real_seconds_until(wakeup_ns)
        return min((each for each in (seconds, due) if each is not None), default=None)

    # --- requests from any thread -------------------------------------------------------------------------------------

    def post(self, changes: Sequence[Change]) -> None:
        """Queue changes of the cluster; the engine's thread processes them in order."""
        self._worker.put(lambda: self._apply_changes(changes))

    def binding_failed(
        self,
        pod: Pod,
        message: str,
        *,
        plugin: str = "DefaultBinder",
        point: str = "Bind",
        generation: int | None = None,
    ) -> None:
        """Report that the API refused a binding, or an update before it; see `Scheduler.binding_failed`.

        Failures of bindings that an earlier generation requested are ignored; None is the current generation.
        """

        def job() -> None:
            if generation is None or generation == self.generation:
                self._publisher.meter.binding_failures += 1
                self._actions += self._scheduler.binding_failed(
                    pod, message, self.clock.now_ns(), plugin=plugin, point=point
                )

        self._worker.put(job)

    def binding_written(self, pod: Pod, *, generation: int | None = None) -> None:
        """Report that the API has accepted a binding, in case the watch never confirms it; see `binding_failed`."""
        if generation is None or generation == self.generation:
            self._bindings.note(pod)
            if self._mirror.pod(pod.key) is None:
                self._worker.notify()

    def preemption_failed(self, pod: Pod, *, generation: int | None = None) -> None:
        """Report that an eviction for a pod was refused; see `Scheduler.preemption_failed` and `binding_failed`."""

        def job() -> None:
            if generation is None or generation == self.generation:
                self._scheduler.preemption_failed(pod, self.clock.now_ns())

        self._worker.put(job)

    def submit(self, question: Callable[[Scheduler], T]) -> Future[T]:
        """Call a function with the scheduler between two cycles; it must be fast and free of side effects."""
        future: Future[T] = Future()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(question(self._scheduler))
                except Exception as problem:
                    future.set_exception(problem)

        if self._worker.is_caller:
            job()
        else:
            self._worker.put(job)
        return future

    def call(self, question: Callable[[Scheduler], T], timeout: float = CALL_TIMEOUT_S) -> T:
        """Return the result of a function of the scheduler; see `submit`.

        Raises:
            EngineBusy: there was no result within `timeout` seconds. Exceptions of the function are raised, too.
        """
        future = self.submit(question)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise EngineBusy(
                f"the scheduler did not respond within {timeout:g} s{self._publisher.running_call()}"
            ) from None

    def replace(self, make: Callable[[], Scheduler], *, timeout: float = 60.0) -> None:
        """Replace the scheduler; all pending pods are retried, and the records continue.

        Args:
            make: the function that creates the new scheduler, for an empty cluster; called immediately on this thread, and again
                after a failure.
            timeout: the maximum seconds until the new scheduler runs.

        Raises:
            InputError: raised by `make`; then nothing has changed.
            EngineBusy: the current cycle takes longer; the scheduler is replaced when it ends. Or the new scheduler
                failed twice on the objects of the cluster; it is retried.
        """
        successor = make()
        future: Future[None] = Future()

        begin = time.monotonic()
        self._worker.put(lambda: self._replacement.request(successor, make, future))
        if self._worker.is_caller:
            self.run_slice()
            if not future.done():
                self.run_slice()  # The object that broke the successor is in quarantine now.
            timeout = 0.0
        try:
            future.result(timeout)
        except TimeoutError:
            waited = time.monotonic() - begin
            raise EngineBusy(
                f"the scheduler was not replaced within {waited:.3g} s{self._publisher.running_call()}"
            ) from None

    # --- time ---------------------------------------------------------------------------------------------------------

    def step_decision(self) -> Future[bool]:
        """Schedule the next pod although the clock is paused; the result is True if a pod was ready."""
        future: Future[bool] = Future()
        self._steps.instant_ns = -1
        self._worker.put(lambda: self._steps.add(future))
        if self._worker.is_caller:
            self.run_slice()
        return future

    def schedule_current_instant(self) -> None:
        """Schedule all pods that are or become ready at the current instant of a paused clock.

        To advance to the next instant at which something is due, set the clock first (`next_instant_of`).
        """
        self._steps.instant_ns = self.clock.now_ns()
        self._worker.notify()
        if self._worker.is_caller:
            while self.run_slice():
                pass

    def next_instant_of(self, scheduler: Scheduler) -> int | None:
        """Return the time when the scheduler next has work (now if pods are ready), or None. Call it with `call`."""
        return self.clock.now_ns() if scheduler.queue.has_next else self._timer_ns

    def has_work(self, scheduler: Scheduler) -> bool:
        """Return whether the host has work at the current time. Call it with `call`."""
        return bool(self._worker.has_jobs or self._actions or self._steps.is_pending) or (
            scheduler.queue.has_next and self._may_schedule(self.clock.now_ns())
        )

    def _may_schedule(self, now_ns: int) -> bool:
        if self._replacement.is_requested or self._bindings.check_backlog(self._scheduler):
            return False
        return not self.clock.paused or self._steps.allows(now_ns)

    # --- status -------------------------------------------------------------------------------------------------------

    def status(self) -> EngineStatus:
        """Return the last published status. Never blocks."""
        return self._publisher.status()

    def _publish(self) -> None:
        records = self._scheduler.records
        if isinstance(records, DecisionStore):
            records.expire(self.clock.now_ns())
        self._publisher.publish(self._scheduler, self._recovery, self.generation)

    # --- work of the engine's thread ----------------------------------------------------------------------------------

    def run_slice(self) -> bool:
        """Do the due work in a slice of bounded length; return whether there is more."""
        self._process_inbox()
        recovery, more = self._recovery, False
        if recovery.is_resting and not recovery.seconds_left():
            self._rebuild()
        self._switch_to_successor()
        if recovery.in_order:
            more = self._schedule()
        else:
            self._steps.end()
        self._publisher.is_current = False
        if self._publisher.is_due or not self._worker.is_started:
            if recovery.in_order:
                self._guarded("finishing bindings", self._finish_bindings)
            recovery.attempt("publishing the status", self._publish)
        self._deliver_actions()
        return more or self._worker.has_jobs

    def _finish_bindings(self) -> None:
        self._actions += self._bindings.finish_deleted(self._scheduler, self.clock.now_ns())

    def _deliver_actions(self) -> None:
        """Pass the actions to the host's callback; if it raises, the bindings have failed."""
        actions, self._actions = self._actions, []
        if actions and not self._recovery.attempt("handing over actions", lambda: self._on_actions(actions)):
            for action in actions:
                if isinstance(action, Bind):
                    self.binding_failed(action.pod, "internal error", generation=self.generation)

    def _process_inbox(self) -> None:
        for job in self._worker.take_jobs():
            self._guarded("processing changes and requests", job)

    def _apply_changes(self, changes: Iterable[Change]) -> None:
        now_ns, mirror, quarantine = self.clock.now_ns(), self._mirror, self._quarantine
        watched = [(each.old, each.new) for each in changes if type(each.new or each.old) in WATCHED_KINDS]
        # Mirror all of them first: if one of them breaks the engine, the next scheduler still gets the others.
        for old, new in watched:
            mirror.apply(old, new)
        for old, new in watched:
            if quarantine and quarantine.hides(old, new):
                continue
            if self._recovery.in_order:
                self._actions += self.calls.handle(self._scheduler, old, new, now_ns)

    def _schedule(self) -> bool:
        """Run a slice of cycles, or put the pod whose cycle failed into quarantine; return whether more pods are ready."""
        now_ns, scheduler = self.clock.now_ns(), self._scheduler
        try:
            try:
                return self._run_cycles(scheduler, now_ns)
            finally:
                self._timer_ns = scheduler.next_wakeup_ns(now_ns)
        except Exception as problem:
            text = self._recovery.note("scheduling", problem)
            quarantine_unfinished_cycle(scheduler, self._quarantine, text, self.clock.now_ns())
            self._abandon_scheduler()
            return False

    def _run_cycles(self, scheduler: Scheduler, now_ns: int) -> bool:
        """Run the timers, then cycles while there are pods; return whether more are ready."""
        clock = self.clock
        if self._timer_ns is not None and self._timer_ns <= now_ns:
            self._actions += scheduler.tick(now_ns)
        for pod in self._quarantine.released(now_ns, self._mirror):
            self._actions += scheduler.handle(None, pod, now_ns)
        end = time.perf_counter() + SLICE_SECONDS
        for _ in range(SLICE_CYCLES):
            now_ns = clock.now_ns()
            if not self._may_schedule(now_ns):
                return False
            if not self._cycle(scheduler, now_ns):
                self._steps.end()
                return False
            if time.perf_counter() > end:
                break
        return scheduler.queue.has_next and self._may_schedule(clock.now_ns())

    def _cycle(self, scheduler: Scheduler, now_ns: int) -> bool:
        """Schedule the next pod; return whether there was one."""
        start = time.perf_counter()
        self._publisher.busy_since_ns = time.monotonic_ns()
        try:
            report = self.calls.schedule(scheduler, now_ns)
        finally:
            self._publisher.busy_since_ns = None
        if report is None:
            return False
        seconds = time.perf_counter() - start
        self._publisher.meter.record(report, seconds)
        if self.on_cycle is not None:
            self.on_cycle(scheduler, report, seconds)
        self._actions += report.actions
        self._steps.answer(had_pod=True)
        return True

    # --- replacing the scheduler --------------------------------------------------------------------------------------

    def _switch_to_successor(self) -> None:
        """Switch to the successor once no binding is pending, or when the deadline has passed."""
        draining = self._worker.is_started and self._recovery.in_order and bool(self._scheduler.bindings.pending)
        successor = self._replacement.take(draining=draining)
        if successor is None:
            return
        self._recovery.end()
        if self._runner is not None:
            self._runner.forget_incidents()  # They are those of the previous scheduler's plugins.
        # If loading fails, the scheduler is rebuilt immediately without the object that broke it; that attempt decides.
        if self._guarded("replacing the scheduler", lambda: self._load(successor, self._scheduler)):
            self._replacement.answer()

    def _load(self, scheduler: Scheduler, before: Scheduler) -> None:
        """Make a scheduler the current one, and pass it all objects and the attempt numbers of the pods."""
        # Pass on pending actions first: they belong to the generation of the previous scheduler.
        self._deliver_actions()
        scheduler.records = before.records
        prepare(scheduler)
        self._scheduler = scheduler
        self.generation += 1
        refill(scheduler, before, self._mirror, self._quarantine, self.clock.now_ns(), self._actions)

    # --- bugs of the engine -------------------------------------------------------------------------------------------

    def _guarded(self, doing: str, work: Callable[[], None]) -> bool:
        """Like `EngineRecovery.attempt`, but rebuild the scheduler after an exception: its state may be inconsistent."""
        succeeded = self._recovery.attempt(doing, work)
        if not succeeded:
            self._abandon_scheduler()
        return succeeded

    def _abandon_scheduler(self) -> None:
        if self._replacement.make is None:
            self._recovery.give_up()
        else:
            self._recovery.rest()

    def _rebuild(self) -> None:
        """Rebuild the scheduler from the current objects, except those that broke it."""
        remake, before = self._replacement.make, self._scheduler
        self._recovery.end()
        if remake is not None:
            problem = None
            if not self._guarded("rebuilding the scheduler", lambda: self._load(remake(), before)):
                text = self._recovery.failures[-1].exception
                problem = EngineBusy(f"the new scheduler failed on the objects of the cluster: {text}")
            self._replacement.answer(problem)
