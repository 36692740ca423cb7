"""The clock, told."""

from __future__ import annotations

from bayplan.base.clock import Clock
from bayplan.base.go_text.times import format_instant


def clock_document(clock: Clock) -> dict[str, object]:
    """Return what time it is, how fast it passes, and whose time it is: ``real`` or ``virtual``."""
    return {"now": format_instant(clock.now_ns()), "paused": clock.paused, "speed": clock.speed, "mode": clock.mode}
