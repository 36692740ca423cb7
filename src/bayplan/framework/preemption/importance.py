"""The importance of pods: the order in which potential victims are spared and reported."""

from __future__ import annotations

from bayplan.state.pod_info import PodInfo


def importance(info: PodInfo) -> tuple[int, int]:
    """Return a key that sorts the most important pod first: higher priority, then earlier start."""
    return (-info.priority, info.start_ns)
