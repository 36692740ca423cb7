"""Statistics of the waiting times and scheduling attempts of pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.sim.result import PodFate, PodTimeline


def percentile(ascending: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile: the smallest number such that at least `percent` percent of all are not greater.

    `ascending` must be sorted and not empty.
    """
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(rank, 1) - 1]


class WaitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of waiting times, in nanoseconds of virtual time; all 0 if there are no pods.

    Attributes:
        pods: the number of pods.
        median_ns, p95_ns, max_ns: nearest-rank percentiles.
    """

    pods: int = 0
    median_ns: int = 0
    p95_ns: int = 0
    max_ns: int = 0


class AttemptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of scheduling attempts.

    Attributes:
        pods: the number of pods with at least one attempt.
        total: the number of attempts of all pods.
        most: the maximum number of attempts of one pod.
        most_pod: the key of the first pod with this number.
        repeated: the number of pods with more than one attempt.
    """

    pods: int = 0
    total: int = 0
    most: int = 0
    most_pod: str = ""
    repeated: int = 0


WAITING = (PodFate.PENDING, PodFate.GATED, PodFate.UNATTENDED)
"""Fates of pods that have no node and could still get one."""


def waits_of(durations_ns: Iterable[int]) -> WaitFacts:
    """Return statistics of the given waiting times."""
    ascending = sorted(durations_ns)
    if not ascending:
        return WaitFacts()
    return WaitFacts(
        pods=len(ascending),
        median_ns=percentile(ascending, 50),
        p95_ns=percentile(ascending, 95),
        max_ns=ascending[-1],
    )


def bound_waits(pods: Iterable[PodTimeline]) -> WaitFacts:
    """Return the waiting times of pods that got a node in this run, from arrival to binding."""
    return waits_of(wait for pod in pods if (wait := pod.wait_ns) is not None)


def unbound_waits(pods: Iterable[PodTimeline], end_ns: int) -> WaitFacts:
    """Return the waiting times of pods that still wait, from arrival to the end of the run."""
    return waits_of(end_ns - pod.arrived_ns for pod in pods if pod.fate in WAITING)


def attempts_of(pods: Sequence[PodTimeline]) -> AttemptFacts:
    """Return statistics of the attempts of these pods."""
    tried = [pod for pod in pods if pod.attempts]
    if not tried:
        return AttemptFacts()
    most = max(tried, key=lambda pod: pod.attempts)
    return AttemptFacts(
        pods=len(tried),
        total=sum(pod.attempts for pod in tried),
        most=most.attempts,
        most_pod=most.key,
        repeated=sum(pod.attempts > 1 for pod in tried),
    )
