"""Which pods matter more: the order in which potential victims are spared, and reported."""

from __future__ import annotations

from bayplan.objects.meta import parse_time_ns
from bayplan.objects.pod import Pod
from bayplan.state.pod_info import PodInfo

JUST_STARTED_NS = (1 << 63) - 1
"""A pod without a start time counts as started now: later than any that has one."""


def start_time_ns(pod: Pod) -> int:
    """Return when a pod started."""
    text = pod.status.start_time
    return JUST_STARTED_NS if text is None else parse_time_ns(text)


def importance(info: PodInfo) -> tuple[int, int]:
    """Return a key that sorts the most important pod first: higher priority, then longer running."""
    return (-info.priority, start_time_ns(info.pod))
