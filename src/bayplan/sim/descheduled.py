"""The evictions of a descheduler in a run: a row for each pod."""

from __future__ import annotations

import msgspec


class Descheduled(msgspec.Struct, frozen=True):
    """A pod that the descheduler evicted: when, its key, its node, and the plugin."""

    time_ns: int
    pod: str
    node: str
    plugin: str
