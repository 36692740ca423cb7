"""The state of the clock as a document."""

from __future__ import annotations

from bayplan.base.clock import Clock
from bayplan.base.go_text.times import format_instant
from bayplan.http_api.contract.decisions import ClockStatus


def clock_document(clock: Clock) -> ClockStatus:
    """Return the time, its speed, and whether it is ``real`` or ``virtual``."""
    return ClockStatus(now=format_instant(clock.now_ns()), paused=clock.paused, speed=clock.speed, mode=clock.mode)
