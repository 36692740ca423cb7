"""Times and outcomes of decisions as arrays, for a timeline of hundreds of thousands of decisions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bayplan.base.go_text.times import format_instant
from bayplan.engine.decision import Outcome, Record
from bayplan.http_api.contract.decisions import Density, DensityLanes
from bayplan.state.arrays import Ints

MAX_BINS = 4000

SCHEDULED, WAITS, ERROR, SKIPPED = Outcome.SCHEDULED, Outcome.UNSCHEDULABLE, Outcome.ERROR, Outcome.SKIPPED
PREEMPTS = 8
"""Bit in a mark: the decision preempted pods."""

_SPARE = 100_000


@dataclass(frozen=True, eq=False)
class TimelineColumns:
    """A frozen copy of the timeline.

    Attributes:
        first: the number of the first decision.
        times_ns, marks: int64[decisions], the time and the outcome of each decision; `PREEMPTS` is added to an outcome.
    """

    first: int
    times_ns: Ints
    marks: Ints


class DecisionTimeline:
    """The times and outcomes of all decisions in order. Use on the event loop.

    Args:
        first: the number of the first decision that will be added.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._times, self._marks = array("q"), array("B")

    def add(self, number: int, record: Record) -> None:
        """Add a decision. If numbers before it are missing because their records were dropped, add them as skipped decisions."""
        while self._first + len(self._times) < number:
            self._times.append(record.time_ns)
            self._marks.append(SKIPPED)
        self._times.append(record.time_ns)
        self._marks.append(record.outcome | PREEMPTS * bool(record.nominated_node))

    def forget(self, oldest: int) -> None:
        """Drop decisions whose records are no longer in memory, in batches."""
        gone = oldest - self._first
        if gone > _SPARE:
            del self._times[:gone], self._marks[:gone]
            self._first = oldest if self._times else max(oldest, self._first)

    def freeze(self) -> TimelineColumns:
        """Return a frozen copy of the timeline."""
        return TimelineColumns(
            self._first,
            np.frombuffer(self._times, dtype=np.int64).copy() if self._times else np.zeros(0, dtype=np.int64),
            np.frombuffer(self._marks, dtype=np.uint8).astype(np.int64) if self._marks else np.zeros(0, dtype=np.int64),
        )


def density_document(
    timeline: TimelineColumns, node_changes_ns: Iterable[int], span: tuple[int, int], bins: int, *, by_time: bool
) -> Density:
    """Count the decisions of each kind in equal parts of a span.

    Args:
        timeline: the timeline.
        node_changes_ns: the times at which nodes were added, removed or changed.
        span: the numbers of the first and last decision or, with `by_time`, times in nanoseconds.
        bins: the number of parts.
        by_time: whether parts are equally long in time; otherwise in number of decisions.
    """
    times, marks, first = timeline.times_ns, timeline.marks, timeline.first
    newest = first + len(times) - 1
    if by_time:
        begin, end = span
        places = np.searchsorted(times, [begin, end + 1]).tolist()
        low, high = places[0], places[1]
        edges = np.linspace(begin, end + 1, bins + 1)
        starts = np.searchsorted(times[low:high], edges[:-1], side="left") + low
    else:
        low = min(max(span[0] - first, 0), len(times))
        high = min(max(span[1] - first + 1, low), len(times))
        starts = (low + np.arange(bins) * (high - low) // bins).astype(np.int64)
        begin = int(times[low]) if low < high else 0
        end = int(times[high - 1]) if low < high else 0
        edges = np.append(times[np.minimum(starts, max(len(times) - 1, 0))] if len(times) else np.zeros(bins), end + 1)
    stops = np.append(starts[1:], high)
    outcomes = marks & (PREEMPTS - 1)
    lanes = DensityLanes(
        scheduled=_counts(outcomes == SCHEDULED, starts, stops),
        waits=_counts(outcomes == WAITS, starts, stops),
        error=_counts(outcomes == ERROR, starts, stops),
        preemptions=_counts(marks >= PREEMPTS, starts, stops),
        nodes=_counts_between(np.array([*node_changes_ns], dtype=np.int64), edges),
    )
    return Density(
        first=first + low,
        last=first + high - 1,
        oldest=first,
        newest=newest,
        from_at=format_instant(begin),
        to_at=format_instant(end),
        bins=bins,
        lanes=lanes,
        numbers=(starts + first).tolist(),
    )


def _counts(chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], starts: Ints, stops: Ints) -> list[int]:
    """Return, for each start, the number of chosen entries up to the corresponding stop."""
    sums = np.concatenate(([0], np.cumsum(chosen)))
    counted: list[int] = (sums[np.maximum(stops, starts)] - sums[starts]).tolist()
    return counted


def _counts_between(instants: Ints, edges: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    """Return the number of times between each edge and the next."""
    places = np.searchsorted(edges, instants, side="right") - 1
    inside = places[(places >= 0) & (places < len(edges) - 1)]
    counted: list[int] = np.bincount(inside, minlength=len(edges) - 1).tolist()
    return counted
