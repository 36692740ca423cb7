"""The status of a scheduler on its own thread: it publishes figures, so that reading them never blocks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bayplan.base.clock import Clock
from bayplan.engine.actions import CycleReport, Evict
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler
from bayplan.live.plugin_runner import PluginIncident, PluginRunner, RunningCall

if TYPE_CHECKING:
    from bayplan.live.engine_recovery import EngineRecovery

CYCLE_WINDOW = 1024
WINDOW_SECONDS = 5.0
PUBLISH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """An exception in the engine itself, which is a bug.

    Attributes:
        doing: the operation that failed.
        exception, traceback: type and message of the exception, and its traceback.
        at_ns: the time.
    """

    doing: str
    exception: str
    traceback: str
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """The last published status of the engine.

    Attributes:
        now_ns: the time of the engine's clock.
        generation: how often the scheduler was replaced or rebuilt.
        decisions: the number of cycles so far.
        scheduled, unschedulable, errors, skipped: the number of cycles by outcome.
        decisions_per_second: the rate of decisions in the last `WINDOW_SECONDS`.
        p50_ms, p99_ms: percentiles of the duration of the latest cycles.
        paused: whether the clock is paused.
        queue: the number of pods ``active``, in ``backoff``, ``unschedulable``, ``gated``.
        assumed, pending_bindings, waiting_for_permit: the number of pods between the choice of their node and its
            confirmation.
        preemptions: the number of cycles that chose victims.
        evictions: the number of victims.
        binding_failures: the number of rejected bindings.
        next_retry_ns: the time when a timer of the scheduler is due next; None: never.
        plugin_failures: the latest failures of plugins.
        plugin_failure_counts: the number of all failures, by plugin.
        engine_failures: the exceptions in the engine itself.
        broken: whether these exceptions have stopped the engine.
        busy_since_ns: the start of the current cycle, by `time.monotonic_ns`; None between two cycles.
        running_plugin: the call of a custom plugin that the engine waits for, or None.
    """

    now_ns: int = 0
    generation: int = 0
    decisions: int = 0
    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    skipped: int = 0
    decisions_per_second: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    paused: bool = False
    queue: Mapping[str, int] = field(default_factory=dict)
    assumed: int = 0
    pending_bindings: int = 0
    waiting_for_permit: int = 0
    preemptions: int = 0
    evictions: int = 0
    binding_failures: int = 0
    next_retry_ns: int | None = None
    plugin_failures: Sequence[PluginIncident] = ()
    plugin_failure_counts: Mapping[str, int] = field(default_factory=dict)
    engine_failures: Sequence[EngineFailure] = ()
    broken: bool = False
    busy_since_ns: int | None = None
    running_plugin: RunningCall | None = None


class CycleMeter:
    """Counts cycles and measures their duration. Used by the engine's thread only."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.preemptions = 0
        self.evictions = 0
        self.binding_failures = 0
        self._seconds: deque[float] = deque(maxlen=CYCLE_WINDOW)
        self._counts: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    @property
    def decisions(self) -> int:
        """The number of cycles."""
        return sum(self.outcomes.values())

    def record(self, report: CycleReport, seconds: float) -> None:
        """Count a cycle that took this many seconds."""
        self.outcomes[report.outcome] += 1
        self._seconds.append(seconds)
        if report.outcome is not Outcome.SCHEDULED and len(report.actions) > 2:
            victims = sum(isinstance(action, Evict) for action in report.actions)
            self.evictions += victims
            self.preemptions += victims > 0

    def per_second(self) -> float:
        """Return the recent number of cycles per second. Call it a few times a second."""
        now, count = time.monotonic(), self.decisions
        counts = self._counts
        while len(counts) > 1 and now - counts[0][0] > WINDOW_SECONDS:
            counts.popleft()
        since, before = counts[0]
        counts.append((now, count))
        return (count - before) / max(now - since, 0.05)

    def percentiles_ms(self) -> tuple[float, float]:
        """Return the median and the 99th percentile of the latest cycles, in milliseconds."""
        found = sorted(self._seconds)
        if not found:
            return 0.0, 0.0
        return found[len(found) // 2] * 1e3, found[min(len(found) * 99 // 100, len(found) - 1)] * 1e3


class StatusPublisher:
    """Publishes the status of an engine for readers on other threads.

    Args:
        clock: the engine's clock.
        runner: the runner of the custom plugins, or None.

    Attributes:
        meter: the counts of cycles.
        busy_since_ns: see `EngineStatus`.
        is_current: whether the engine has done nothing since the last status.
    """

    def __init__(self, clock: Clock, runner: PluginRunner | None) -> None:
        self.meter = CycleMeter()
        self.busy_since_ns: int | None = None
        self.is_current = False
        self._clock = clock
        self._runner = runner
        self._published_at = 0.0
        self._status = EngineStatus(paused=clock.paused)

    @property
    def is_due(self) -> bool:
        """Whether the last status is older than `PUBLISH_SECONDS`."""
        return time.monotonic() - self._published_at > PUBLISH_SECONDS

    def publish(self, scheduler: Scheduler, recovery: EngineRecovery, generation: int) -> None:
        """Publish the figures of a scheduler. Called by the thread that runs it."""
        self._published_at, self.is_current = time.monotonic(), True
        now_ns, meter = self._clock.now_ns(), self.meter
        p50_ms, p99_ms = meter.percentiles_ms()
        outcomes = meter.outcomes
        self._status = EngineStatus(
            now_ns=now_ns,
            generation=generation,
            decisions=meter.decisions,
            scheduled=outcomes[Outcome.SCHEDULED],
            unschedulable=outcomes[Outcome.UNSCHEDULABLE],
            errors=outcomes[Outcome.ERROR],
            skipped=outcomes[Outcome.SKIPPED],
            decisions_per_second=meter.per_second(),
            p50_ms=p50_ms,
            p99_ms=p99_ms,
            queue=scheduler.queue.pending_counts(),
            assumed=len(scheduler.assumed),
            pending_bindings=len(scheduler.bindings.pending),
            waiting_for_permit=len(scheduler.waiting_pods),
            preemptions=meter.preemptions,
            evictions=meter.evictions,
            binding_failures=meter.binding_failures,
            next_retry_ns=scheduler.next_wakeup_ns(now_ns),
            engine_failures=tuple(recovery.failures),
            broken=recovery.is_broken,
        )

    def status(self) -> EngineStatus:
        """Return the last published status, with the current state of the clock and the plugins. Never blocks."""
        runner = self._runner
        return replace(
            self._status,
            paused=self._clock.paused,
            busy_since_ns=self.busy_since_ns,
            running_plugin=None if runner is None else runner.running(),
            plugin_failures=() if runner is None else runner.incidents(),
            plugin_failure_counts={} if runner is None else dict(runner.failures),
        )

    def running_call(self) -> str:
        """Return the end of an error message that names the plugin that the engine waits for; "" if there is none."""
        running = None if self._runner is None else self._runner.running()
        return "" if running is None else f"; it waits for {running.point} of plugin {running.plugin}"
