"""Detect that the machine slept: timers stopped during the sleep, so overdue work must run when it wakes up."""

from __future__ import annotations

import asyncio
import logging

from bayplan.base.clock import Clock
from bayplan.base.durations import SECOND_NS

INTERVAL_SECONDS = 1.0
MIN_SLEEP_SECONDS = 2.0
"""Shorter gaps are jitter between two clocks, or a process that was stopped briefly."""

_log = logging.getLogger("bayplan")


def catch_up_after_sleep(clock: Clock) -> bool:
    """Log that the machine slept, and recheck every timer; return whether it slept.

    The clock advances while the machine sleeps, like wall time: leases expire, pods end, retries become due. But timers
    of the event loop and of threads stop, so they would be late by the duration of the sleep.
    """
    seconds = clock.slept_ns() / SECOND_NS
    if seconds < MIN_SLEEP_SECONDS:
        return False
    _log.warning("the machine slept for %.0f s; overdue work runs now", seconds)
    clock.catch_up()
    return True


async def watch_for_sleep(clock: Clock, interval_seconds: float = INTERVAL_SECONDS) -> None:
    """Check for sleep periodically, until cancelled."""
    while True:
        await asyncio.sleep(interval_seconds)
        catch_up_after_sleep(clock)
