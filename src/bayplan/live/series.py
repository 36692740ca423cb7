"""Cheap counters and histograms: a single thread writes each of them without a lock, and scrapes read them.

Those of `prometheus_client` take a lock, and a microsecond or more, for each value; these are for frequent
values. A scrape may see a value in the count before it is in the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from operator import mul

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the upper bounds of `count` buckets, each `factor` times the previous one."""
    # Computed as in upstream, so that they have the same decimal representation.
    return tuple(accumulate(repeat(factor, count - 1), mul, initial=start))


class Distribution(Collector):
    """A histogram that a single thread writes.

    Args:
        name: the name of the metric.
        text: the help text.
        labels: the names of the labels.
        buckets: the upper bounds, without infinity.
        registry: the registry of the metric.
    """

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._bounds = tuple(buckets)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        if not labels:
            self._begin(())
        registry.register(self)

    def _begin(self, labels: tuple[str, ...]) -> list[int]:
        self._sums[labels] = 0.0
        counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        return counts

    def observe(self, value: float, *labels: str) -> None:
        """Count a value for these label values."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._begin(labels)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def describe(self) -> Iterable[Metric]:
        """Return the metric's description without values; see `Collector`."""
        return (HistogramMetricFamily(self._name, self._text, labels=self._labels),)

    def collect(self) -> Iterable[Metric]:
        """Return the metric's values; see `Collector`."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        bounds = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, counts in sorted(self._counts.items()):
            points = list(zip(bounds, map(float, accumulate(counts)), strict=True))
            family.add_metric(labels, points, self._sums[labels])
        return (family,)


class Tally(Collector):
    """A counter that a single thread writes.

    Args:
        name: the name of the metric, without ``_total``.
        text: the help text.
        labels: the names of the labels.
        registry: the registry of the metric.
    """

    def __init__(self, name: str, text: str, labels: Sequence[str] = (), *, registry: CollectorRegistry) -> None:
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._counts: dict[tuple[str, ...], float] = {} if labels else {(): 0}
        registry.register(self)

    def add(self, *labels: str) -> None:
        """Increment the counter by one."""
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def describe(self) -> Iterable[Metric]:
        """Return the metric's description without values; see `Collector`."""
        return (CounterMetricFamily(self._name, self._text, labels=self._labels),)

    def collect(self) -> Iterable[Metric]:
        """Return the metric's values; see `Collector`."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in sorted(self._counts.items()):
            family.add_metric(labels, count)
        return (family,)
