"""The status of a scheduler on its own thread: it publishes figures, so that reading them never blocks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.engine.actions import CycleReport, Evict
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler
from bayplan.live.plugin_runner import PluginIncident, RunningCall

CYCLE_WINDOW = 1024
WINDOW_SECONDS = 5.0


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


def status_of(
    scheduler: Scheduler,
    meter: CycleMeter,
    *,
    now_ns: int,
    generation: int,
    paused: bool,
    engine_failures: Sequence[EngineFailure],
    broken: bool,
) -> EngineStatus:
    """Return the figures of a scheduler. Called by the thread that runs it."""
    p50_ms, p99_ms = meter.percentiles_ms()
    outcomes = meter.outcomes
    return EngineStatus(
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
        paused=paused,
        queue=scheduler.queue.pending_counts(),
        assumed=len(scheduler.assumed),
        pending_bindings=len(scheduler.bindings.pending),
        waiting_for_permit=len(scheduler.waiting_pods),
        preemptions=meter.preemptions,
        evictions=meter.evictions,
        binding_failures=meter.binding_failures,
        next_retry_ns=scheduler.next_wakeup_ns(now_ns),
        engine_failures=tuple(engine_failures),
        broken=broken,
    )
