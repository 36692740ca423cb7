"""Metrics of a scheduler that works on a cluster, under the names, labels and buckets of kube-scheduler.

Counted are cycles and what came of them, requests, and, when somebody asks, the queue. Written by several threads; the library
takes care of that. What upstream measures of its own machinery (goroutines, informers, batches, single plugins) is not there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client import Counter as TotalCounter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.base.version import KUBERNETES_VERSION
from bayplan.engine.actions import Action, CycleReport, Emit, Evict
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler

SECOND_NS = 1_000_000_000
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_MOST_ATTEMPTS_TOLD = 15


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(round(start * factor**number, 9) for number in range(count))


class QueueFigures:
    """What is asked of the scheduler at each scrape.

    Attributes:
        pending: pods by tier. unschedulable: waiting pods by plugin and profile. cache: nodes, pods, assumed pods.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.pending: Mapping[str, int] = dict(scheduler.queue.pending_counts())
        self.unschedulable: Counter[tuple[str, str]] = Counter()
        for queued in scheduler.queue.unschedulable():
            plugins = {queued.gating_plugin} if queued.gating_plugin else queued.unschedulable_plugins
            for plugin in sorted(plugins):
                self.unschedulable[plugin, queued.pod.spec.scheduler_name] += 1
        state = scheduler.state
        self.cache = {"nodes": len(state.nodes.row_of), "pods": len(state.pods), "assumed_pods": len(scheduler.assumed)}


class SchedulerMetrics:
    """The metrics of one scheduler.

    Args:
        figures: asks the scheduler for figures at a scrape; None where it does not run, or takes too long to answer.
    """

    def __init__(self, figures: Callable[[], QueueFigures | None]) -> None:
        # Upstream tells no times of creation.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._begun: dict[str, tuple[float, int, int, str]] = {}
        self._attempts = TotalCounter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result.",
            ("profile", "result"),
            registry=registry,
        )
        self._attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            ("profile", "result"),
            buckets=_exponential(0.001, 2, 15),
            registry=registry,
        )
        self._algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            buckets=_exponential(0.001, 2, 15),
            registry=registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_exponential(1, 2, 5),
            registry=registry,
        )
        self._pod_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency for a pod being scheduled, from the time it entered the scheduling queue.",
            ("attempts",),
            buckets=_exponential(0.01, 2, 20),
            registry=registry,
        )
        self._preemptions = TotalCounter(
            "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now.", registry=registry
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            buckets=_exponential(1, 2, 7),
            registry=registry,
        )
        self._leads = Gauge(
            "leader_election_master_status", "1 for the leader, 0 for who waits.", ("name",), registry=registry
        )
        registry.register(_QueueCollector(figures))
        self.requests = RequestMetrics(registry)
        info = Gauge(
            "kubernetes_build_info", "The release whose decisions these are.", ("git_version",), registry=registry
        )
        info.labels(f"v{KUBERNETES_VERSION.removeprefix('v')}").set(1)

    def set_leading(self, name: str, *, leads: bool) -> None:
        """Note whether this scheduler is the one that works."""
        self._leads.labels(name).set(int(leads))

    def on_cycle(self, scheduler: Scheduler, report: CycleReport, seconds: float) -> None:
        """Take in a cycle; see `EngineHost.on_cycle`."""
        self._algorithm_seconds.observe(seconds)
        profile = report.pod.spec.scheduler_name
        if report.outcome is Outcome.SCHEDULED:
            pending = scheduler.bindings.pending.get(key_of(report.pod))
            if pending is not None:
                queued = pending.queued
                entered_ns = queued.initial_attempt_ns or queued.timestamp_ns
                begun = time.monotonic() - seconds
                self._begun[queued.key] = (begun, queued.attempts, entered_ns, profile)
            return
        if report.outcome is Outcome.SKIPPED:
            return
        result = "unschedulable" if report.outcome is Outcome.UNSCHEDULABLE else "error"
        self._attempts.labels(profile, result).inc()
        self._attempt_seconds.labels(profile, result).observe(seconds)
        victims = sum(isinstance(action, Evict) for action in report.actions)
        if victims:
            self._preemptions.inc()
            self._victims.observe(victims)

    def on_actions(self, actions: Sequence[Action], now_ns: int) -> None:
        """Take in what the scheduler wants done: the event that a pod is bound ends its attempt."""
        for action in actions:
            if not isinstance(action, Emit):
                continue
            begun = self._begun.pop(key_of(action.pod), None)
            if begun is None or action.reason != "Scheduled":
                continue
            since, attempts, entered_ns, profile = begun
            self._attempts.labels(profile, "scheduled").inc()
            self._attempt_seconds.labels(profile, "scheduled").observe(time.monotonic() - since)
            self._pod_attempts.observe(attempts)
            told = str(attempts) if attempts <= _MOST_ATTEMPTS_TOLD else f"{_MOST_ATTEMPTS_TOLD}+"
            self._pod_seconds.labels(told).observe(max(now_ns - entered_ns, 0) / SECOND_NS)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format. Asks the scheduler, so not to be called on its thread."""
        return generate_latest(self.registry)


class RequestMetrics:
    """What the client of the API has asked, and how long it took: see `bayplan.client.connection.RequestObserver`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = TotalCounter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
            registry=registry,
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            ("host", "verb"),
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )
        self._waited = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            ("host", "verb"),
            buckets=_REQUEST_BUCKETS,
            registry=registry,
        )

    def waited(self, host: str, method: str, seconds: float) -> None:
        """Take in how long a request waited for its turn."""
        self._waited.labels(host, method).observe(seconds)

    def answered(self, host: str, method: str, code: str, seconds: float) -> None:
        """Take in an answer."""
        self._requests.labels(code, host, method).inc()
        self._seconds.labels(host, method).observe(seconds)


class _QueueCollector(Collector):
    """Asks the scheduler when somebody asks for metrics."""

    def __init__(self, figures: Callable[[], QueueFigures | None]) -> None:
        self._figures = figures

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        found = self._figures()
        if found is None:
            return
        pending = GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=["queue"]
        )
        for tier, count in found.pending.items():
            pending.add_metric([tier], count)
        yield pending
        cache = GaugeMetricFamily(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            labels=["type"],
        )
        for name, count in found.cache.items():
            cache.add_metric([name], count)
        yield cache
        plugins = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            labels=["plugin", "profile"],
        )
        for (plugin, profile), count in sorted(found.unschedulable.items()):
            plugins.add_metric([plugin, profile], count)
        yield plugins
