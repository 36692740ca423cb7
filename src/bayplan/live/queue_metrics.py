"""Metrics that are read from the scheduler at each scrape: queue, cache, pending bindings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.base.errors import EngineBusy
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.scheduler import Scheduler
from bayplan.live.scheduler_thread import SchedulerThread

FIGURES_SECONDS = 1.0
"""Timeout of reading the figures at a scrape."""

POD_POPPED = "PodPopped"
"""The label that counts pods, rather than cluster events, among the events recorded for pods in flight."""


class QueueFigures:
    """Figures of the scheduler at a scrape.

    Attributes:
        pending: the number of pods by tier.
        unschedulable: the number of unschedulable pods by plugin and profile.
        cache: the number of nodes, pods and assumed pods.
        incoming: the number of pods added to a queue, by event and queue.
        in_flight: the number of events recorded for pods in flight, by event.
        binding: the number of pods that are being bound.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        queue, state = scheduler.queue, scheduler.state
        self.cache = {"nodes": len(state.nodes.row_of), "pods": len(state.pods), "assumed_pods": len(scheduler.assumed)}
        self.binding = len(scheduler.bindings.pending)
        self.pending: Mapping[str, int] = dict(queue.pending_counts())
        self.unschedulable: Counter[tuple[str, ...]] = Counter()
        for queued in queue.unschedulable():
            plugins = {queued.gating_plugin} if queued.gating_plugin else queued.unschedulable_plugins
            for plugin in sorted(plugins):
                self.unschedulable[plugin, queued.pod.spec.scheduler_name] += 1
        self.incoming: dict[tuple[str, ...], int] = {
            (event, tier): count for tier, counts in queue.incoming.items() for event, count in counts.items()
        }
        self.in_flight = Counter({POD_POPPED: 0})
        for each in queue.in_flight():
            self.in_flight[POD_POPPED if isinstance(each, QueuedPod) else each.event.label] += 1


def figures_of(host: SchedulerThread) -> QueueFigures | None:
    """Return the figures of a host's scheduler, or None on a timeout. Must not be called on its thread."""
    try:
        return host.call(QueueFigures, FIGURES_SECONDS)
    except EngineBusy:
        return None


class QueueCollector(Collector):
    """Exports the figures of a scheduler as metrics.

    Args:
        figures: the function that reads the figures; it returns None if the scheduler does not run, or on a timeout.
        registry: the registry that they are exported to.
    """

    def __init__(self, figures: Callable[[], QueueFigures | None], registry: CollectorRegistry) -> None:
        self._figures = figures
        # Plugins that rejected pods at an earlier scrape, whose number is reported even if it is 0 now.
        self._rejecting: dict[tuple[str, ...], None] = {}
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the metrics are only read at a scrape; see `Collector`."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read the figures and return them as metrics; see `Collector`."""
        found = self._figures()
        if found is None:
            return
        yield _gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type.",
            ("queue",),
            {(tier,): count for tier, count in found.pending.items()},
        )
        yield _gauge(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
            {(name,): count for name, count in found.cache.items()},
        )
        self._rejecting.update(dict.fromkeys(found.unschedulable))
        yield _gauge(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            ("plugin", "profile"),
            {which: found.unschedulable[which] for which in self._rejecting},
        )
        yield _gauge(
            "scheduler_inflight_events",
            "Number of events currently tracked in the scheduling queue.",
            ("event",),
            {(event,): count for event, count in found.in_flight.items()},
        )
        yield _gauge(
            "scheduler_goroutines",
            "Number of bindings under way.",
            ("operation",),
            {("binding",): found.binding},
        )
        incoming = CounterMetricFamily(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            labels=("event", "queue"),
        )
        for which, count in sorted(found.incoming.items()):
            incoming.add_metric(which, count)
        yield incoming


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for which, value in sorted(values.items()):
        family.add_metric(which, value)
    return family
