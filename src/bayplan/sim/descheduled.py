"""The evictions of a descheduler during a run, one row per pod."""

from __future__ import annotations

import msgspec


class Descheduled(msgspec.Struct, frozen=True):
    """A pod that the descheduler evicted: the time, the pod's key, its node, and the plugin that chose it."""

    time_ns: int
    pod: str
    node: str
    plugin: str
