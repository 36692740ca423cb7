"""Metrics of a scheduler, with the names, labels and buckets of kube-scheduler.

They cover cycles and their outcomes, changes of the cluster, requests, and the queue, which is read at each scrape.
docs/schedule.md lists the metrics of upstream that are missing, and why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Gauge, disable_created_metrics, generate_latest

from bayplan.base.durations import SECOND_NS
from bayplan.engine.actions import Action, CycleReport, Emit, Evict, SetCondition
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.events import UNSCHEDULABLE_TIMEOUT, object_changes, pod_update_events
from bayplan.framework.feature_gates import FeatureGates
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.live.plugin_timer import PluginTimer
from bayplan.live.process_metrics import register_process_metrics
from bayplan.live.queue_metrics import QueueCollector, QueueFigures
from bayplan.live.scheduler_thread import SchedulerThread
from bayplan.live.series import Distribution, Tally, exponential
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class RequestMetrics:
    """Metrics of API requests; a `bayplan.client.connection.RequestObserver`.

    Used by the event loop of the connections only.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        where = ("host", "verb")
        self._requests = Tally(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
            registry=registry,
        )
        self._seconds = Distribution(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            where,
            buckets=_SECONDS,
            registry=registry,
        )
        self._waited = Distribution(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            where,
            buckets=_SECONDS,
            registry=registry,
        )
        self._request_bytes = Distribution(
            "rest_client_request_size_bytes",
            "Request size in bytes. Broken down by verb and host.",
            where,
            buckets=_BYTES,
            registry=registry,
        )
        self._response_bytes = Distribution(
            "rest_client_response_size_bytes",
            "Response size in bytes. Broken down by verb and host.",
            where,
            buckets=_BYTES,
            registry=registry,
        )

    def waited(self, host: str, method: str, seconds: float) -> None:
        """Record how long a request waited for the rate limit."""
        self._waited.observe(seconds, host, method)

    def answered(
        self, host: str, method: str, code: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Record a response, with the sizes of request and response in bytes."""
        self._requests.add(code, host, method)
        self._seconds.observe(seconds, host, method)
        self._request_bytes.observe(request_bytes, host, method)
        self._response_bytes.observe(response_bytes, host, method)

    def opened(self, host: str, code: str) -> None:
        """Record that a stream was opened or refused; it counts as a request without a duration."""
        self._requests.add(code, host, "GET")


_MAX_ATTEMPTS_LABEL = 15
_PREEMPTION_TEXT = re.compile(r"(?:^|\. )(?:[^.]*, )?preemption: ")
"""The text of DefaultPreemption in a message, after those of the filters, which custom plugins may write."""

_PER_RESULT = ("profile", "result")


class SchedulerMetrics:
    """The metrics of one scheduler.

    The engine's thread reports cycles, actions and changes, the event loop reports requests; any thread may read.

    Args:
        figures: the function that reads figures from the scheduler at a scrape; it returns None if the scheduler does
            not run, or on a timeout.
        feature_gates: the feature gates of the scheduler.
    """

    def __init__(self, figures: Callable[[], QueueFigures | None], feature_gates: FeatureGates | None = None) -> None:
        # Upstream exports no creation times.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        register_process_metrics(registry, feature_gates or FeatureGates())
        QueueCollector(figures, registry)
        self.requests = RequestMetrics(registry)
        self._begun: dict[str, tuple[float, int, int, str, bool]] = {}
        self._leads = Gauge(
            "leader_election_master_status", "1 for the leader, 0 otherwise.", ("name",), registry=registry
        )
        self._count_attempts(registry)
        self._count_the_rest(registry)

    def _count_attempts(self, registry: CollectorRegistry) -> None:
        until_a_minute = exponential(0.001, 2, 15)
        self._attempts = Tally(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result.",
            _PER_RESULT,
            registry=registry,
        )
        self._attempt_seconds = Distribution(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            _PER_RESULT,
            buckets=until_a_minute,
            registry=registry,
        )
        self._algorithm_seconds = Distribution(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            buckets=until_a_minute,
            registry=registry,
        )
        self._pod_attempts = Distribution(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=exponential(1, 2, 5),
            registry=registry,
        )
        self._pod_seconds = Distribution(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency for a pod being scheduled, from the time it entered the scheduling queue.",
            ("attempts",),
            buckets=exponential(0.01, 2, 20),
            registry=registry,
        )
        self._after_flush = Tally(
            "scheduler_pod_scheduled_after_flush",
            "Number of pods that were scheduled after the timeout for unschedulable pods.",
            registry=registry,
        )
        self._preemptions = Tally(
            "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now.", registry=registry
        )
        self._victims = Distribution(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            buckets=exponential(1, 2, 7),
            registry=registry,
        )

    def _count_the_rest(self, registry: CollectorRegistry) -> None:
        self._event_seconds = Distribution(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            ("event",),
            buckets=exponential(0.0001, 2, 12),
            registry=registry,
        )
        self._point_seconds = Distribution(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point, in a sample of cycles.",
            ("extension_point", "profile", "status"),
            buckets=exponential(0.0001, 2, 12),
            registry=registry,
        )
        self._plugin_seconds = Distribution(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point, in a sample of cycles.",
            ("extension_point", "plugin", "status"),
            buckets=exponential(0.00001, 1.5, 20),
            registry=registry,
        )

    def attach(self, host: SchedulerThread) -> None:
        """Measure the cycles and changes of a host; it must report its actions by calling `on_actions`."""
        host.on_cycle = self.on_cycle
        host.calls = _MeasuredCalls(self)

    def set_leading(self, name: str, *, leads: bool) -> None:
        """Record whether this scheduler is the leader."""
        self._leads.labels(name).set(int(leads))

    # --- from the engine's thread -------------------------------------------------------------------------------------

    def on_cycle(self, scheduler: Scheduler, report: CycleReport, seconds: float) -> None:
        """Record a cycle; see `SchedulerThread.on_cycle`."""
        self._algorithm_seconds.observe(seconds)
        profile = report.pod.spec.scheduler_name
        if report.outcome is Outcome.SCHEDULED:
            key = key_of(report.pod)
            # The pod is being bound, or waits at Permit.
            chosen = scheduler.bindings.pending.get(key) or scheduler.bindings.waiting.get(key)
            if chosen is not None:
                queued, queue = chosen.queued, scheduler.queue
                entered_ns = queued.initial_attempt_ns or queued.timestamp_ns
                origin = queue.origin_of(queued.key) if isinstance(queue, InstrumentedQueue) else None
                flushed = origin is not None and origin.woken_by == UNSCHEDULABLE_TIMEOUT.label
                begun = time.monotonic() - seconds
                self._begun[queued.key] = (begun, queued.attempts, entered_ns, profile, flushed)
            return
        self._begun.pop(key_of(report.pod), None)
        if report.outcome is Outcome.SKIPPED:
            return
        result = "unschedulable" if report.outcome is Outcome.UNSCHEDULABLE else "error"
        self._attempts.add(profile, result)
        self._attempt_seconds.observe(seconds, profile, result)
        victims = sum(isinstance(action, Evict) for action in report.actions)
        # As in upstream, every call of DefaultPreemption is an attempt. Without victims, it adds a text with this prefix.
        if victims or _PREEMPTION_TEXT.search(report.message):
            self._preemptions.add()
        if victims:
            self._victims.observe(victims)

    def on_actions(self, actions: Sequence[Action], now_ns: int) -> None:
        """Record the ends of attempts: the event that a pod was scheduled, or the condition that it could not be."""
        for action in actions:
            if isinstance(action, Emit) and action.reason == "Scheduled":
                result = "scheduled"
            elif isinstance(action, SetCondition):
                result = "unschedulable" if action.reason == "Unschedulable" else "error"
            else:
                continue
            begun = self._begun.pop(key_of(action.pod), None)
            if begun is None:
                continue
            since, attempts, entered_ns, profile, flushed = begun
            self._attempts.add(profile, result)
            self._attempt_seconds.observe(time.monotonic() - since, profile, result)
            if result != "scheduled":
                continue
            self._pod_attempts.observe(attempts)
            label = str(attempts) if attempts <= _MAX_ATTEMPTS_LABEL else f"{_MAX_ATTEMPTS_LABEL}+"
            self._pod_seconds.observe(max(now_ns - entered_ns, 0) / SECOND_NS, label)
            if flushed:
                self._after_flush.add()

    def handled(self, event: str, seconds: float) -> None:
        """Record the duration (seconds) of processing a change of the cluster."""
        self._event_seconds.observe(seconds, event)

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record the duration of one plugin at one extension point; see `PluginTimer`."""
        self._plugin_seconds.observe(seconds, point, plugin, status)

    def observe_point(self, point: str, profile: str, status: str, seconds: float) -> None:
        """Record the duration of all plugins at one extension point; see `PluginTimer`."""
        self._point_seconds.observe(seconds, point, profile, status)

    # --- from any thread ----------------------------------------------------------------------------------------------

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format.

        Waits for the scheduler, so don't call it on the scheduler's thread.
        """
        return generate_latest(self.registry)


class _MeasuredCalls(PluginTimer):
    """Measures the calls to a scheduler, and records them in its metrics."""

    def __init__(self, metrics: SchedulerMetrics) -> None:
        super().__init__(metrics)
        self._metrics = metrics

    def handle(
        self, scheduler: Scheduler, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int
    ) -> list[Action]:
        """Process a change; see `EngineCalls.handle`."""
        began = time.perf_counter()
        actions = scheduler.handle(old, new, now_ns)
        seconds = time.perf_counter() - began
        for event in _events(scheduler, old, new):
            self._metrics.handled(event, seconds)
        return actions


def _events(scheduler: Scheduler, old: KubernetesObject | None, new: KubernetesObject | None) -> list[str]:
    """Return upstream's names of the events in a change, such as ``NodeAdd``; none if upstream doesn't handle the change."""
    if not isinstance(old, Pod | None) or not isinstance(new, Pod | None):
        return [change.event.label for change in object_changes(old, new, gates=scheduler.state.request_gates)]
    events: list[str] = []
    was_assigned = old is not None and bool(old.spec.node_name)
    is_assigned = new is not None and bool(new.spec.node_name)
    if was_assigned or is_assigned:
        # For the cache, a pod that gets its node is a new pod.
        events.append(f"AssignedPod{'Delete' if new is None else 'Update' if was_assigned else 'Add'}")
    pending = old if old is not None else new
    if pending is not None and not was_assigned and pending.spec.scheduler_name in scheduler.profiles:
        if old is not None and (new is None or is_assigned):
            events.append("UnschedulablePodDelete")
        elif not is_assigned:
            events.append(f"UnschedulablePod{'Add' if old is None else 'Update'}")
    if old is not None and new is not None and events and events[0].endswith("PodUpdate") and _has_events(old, new):
        specific = [event.label for event in pod_update_events(old, new, scheduler.state.request_gates)]
        events += [event for event in specific if event not in events]
    return events


def _has_events(old: Pod, new: Pod) -> bool:
    """Return whether an update may have specific events. Status updates rarely do, and the search is slow."""
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels
