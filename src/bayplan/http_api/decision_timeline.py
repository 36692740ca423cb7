"""When decisions were taken and how they ended, as arrays: for a timeline that shows hundreds of thousands at once."""

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
"""Bit of a mark: the decision preempted pods."""

_SPARE = 100_000


@dataclass(frozen=True, eq=False)
class TimelineColumns:
    """The timeline, frozen.

    Attributes:
        first: number of the first decision.
        times_ns, marks: int64, of all decisions from the first one on.
    """

    first: int
    times_ns: Ints
    marks: Ints


class DecisionTimeline:
    """The decisions in order. Use on the loop thread.

    Args:
        first: number of the first decision to be added.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._times, self._marks = array("q"), array("B")

    def add(self, number: int, record: Record) -> None:
        """Add a decision; missing numbers before it, whose records have been dropped, count as skipped."""
        while self._first + len(self._times) < number:
            self._times.append(record.time_ns)
            self._marks.append(SKIPPED)
        self._times.append(record.time_ns)
        self._marks.append(record.outcome | PREEMPTS * bool(record.nominated_node))

    def forget(self, oldest: int) -> None:
        """Drop decisions that are no longer in memory, in batches."""
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
    """Return the number of decisions of each kind in equal parts of a span.

    Args:
        timeline: frozen.
        node_changes_ns: when nodes were added, removed or changed.
        span: first and last decision, or instants in nanoseconds; limited to known decisions.
        bins: number of parts.
        by_time: whether parts are equal in time; otherwise in number of decisions.
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
    """Return the number of chosen entries from each start to its stop."""
    sums = np.concatenate(([0], np.cumsum(chosen)))
    counted: list[int] = (sums[np.maximum(stops, starts)] - sums[starts]).tolist()
    return counted


def _counts_between(instants: Ints, edges: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    """Return the number of instants between each edge and the next."""
    places = np.searchsorted(edges, instants, side="right") - 1
    inside = places[(places >= 0) & (places < len(edges) - 1)]
    counted: list[int] = np.bincount(inside, minlength=len(edges) - 1).tolist()
    return counted
