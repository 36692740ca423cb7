"""Availability of pods: ready for at least ``minReadySeconds``."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.owned_pods import OwnedPods, condition_time, is_ready
from bayplan.objects.pod import Pod


def is_available(pod: Pod, min_ready_seconds: int, now_ns: int) -> bool:
    """Return whether a pod has been ready for at least `min_ready_seconds`."""
    if min_ready_seconds <= 0:
        return is_ready(pod)
    # Without a transition time, a pod is never available if `minReadySeconds` is set.
    since = condition_time(pod, "Ready", "True")
    return since is not None and parse_time_ns(since) + min_ready_seconds * SECOND_NS <= now_ns


def count_available(owned: OwnedPods, min_ready_seconds: int, now_ns: int) -> tuple[int, int | None]:
    """Return the number of available pods, and the time (ns) at which the next ready pod becomes available, or None.

    Without ``minReadySeconds`` this only reads a size; otherwise it checks every ready pod.
    """
    if min_ready_seconds <= 0:
        return len(owned.ready), None
    active = owned.active
    return _count((active[key] for key in owned.ready), min_ready_seconds, now_ns)


def _count(ready: Iterable[Pod], min_ready_seconds: int, now_ns: int) -> tuple[int, int | None]:
    available = 0
    soonest: int | None = None
    for pod in ready:
        since = condition_time(pod, "Ready", "True")
        if since is None:
            continue
        available_at = parse_time_ns(since) + min_ready_seconds * SECOND_NS
        if available_at <= now_ns:
            available += 1
        elif soonest is None or available_at < soonest:
            soonest = available_at
    return available, soonest
