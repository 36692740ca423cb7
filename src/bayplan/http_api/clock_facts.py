"""The clock, told."""

from __future__ import annotations

from bayplan.base.clock import Clock
from bayplan.base.go_text.times import format_instant
from bayplan.http_api.contract.decisions import ClockStatus


def clock_document(clock: Clock) -> ClockStatus:
    """Return what time it is, how fast it passes, and whose time it is: ``real`` or ``virtual``."""
    return ClockStatus(now=format_instant(clock.now_ns()), paused=clock.paused, speed=clock.speed, mode=clock.mode)
