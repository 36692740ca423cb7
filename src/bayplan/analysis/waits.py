"""Waiting times and numbers of attempts of pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.sim.result import PodFate, PodTimeline


def percentile(ascending: Sequence[int], percent: int) -> int:
    """Return the smallest number that at least `percent` percent of all numbers do not exceed. `ascending` must not be empty."""
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(rank, 1) - 1]


class WaitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting times of some pods, in nanoseconds of virtual time; all 0 if there are none.

    Attributes:
        pods: number of pods.
        median_ns, p95_ns, max_ns: by nearest rank.
    """

    pods: int = 0
    median_ns: int = 0
    p95_ns: int = 0
    max_ns: int = 0


class AttemptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles by pod.

    Attributes:
        pods: pods that were tried at least once.
        total: attempts of all pods.
        most: maximum number of attempts of one pod.
        most_pod: the key of that pod; the first of several.
        repeated: pods that were tried more than once.
    """

    pods: int = 0
    total: int = 0
    most: int = 0
    most_pod: str = ""
    repeated: int = 0


WAITING = (PodFate.PENDING, PodFate.GATED, PodFate.UNATTENDED)
"""Fates of pods that have no node and could still get one."""


def waits_of(durations_ns: Iterable[int]) -> WaitFacts:
    """Return the facts about some waiting times."""
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
    """Return the number of attempts by pod."""
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
