"""Runs a bridge on an event loop: a slice of work whenever something is due, and requests between the slices.

The time comes from a `Clock`, so pause, speed and steps also apply to controllers and the kubelet. Work that is already
due is done even while the clock is paused.
"""

from __future__ import annotations

import asyncio
import logging

from bayplan.apiserver.bridge.bridge import Bridge
from bayplan.base.clock import Clock

SLICE_NS = 2_000_000
"""Maximum duration of a slice of work, after which requests are served. A single write may take longer."""

_MAINTENANCE_SECONDS = 1.0
_AFTER_FAILURE_SECONDS = 1.0
_log = logging.getLogger("bayplan.bridge")
_MAX_SLEEP = 3600.0


class BridgeDriver:
    """Runs a bridge on the event loop.

    Args:
        bridge: the bridge, on the thread of the loop.
        clock: the clock of the bridge's backend.
    """

    def __init__(self, bridge: Bridge, clock: Clock) -> None:
        self._bridge = bridge
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None
        self._maintenance: asyncio.TimerHandle | None = None
        clock.on_change(self._on_clock_change)

    def start(self) -> None:
        """Start on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._bridge.on_work = self._schedule_turn
        self._schedule_turn()
        self._maintenance = self._loop.call_later(_MAINTENANCE_SECONDS, self._run_maintenance)

    def stop(self) -> None:
        """Stop. Call this on the event loop."""
        self._bridge.on_work = None
        self._loop = None
        for handle in (self._soon, self._later, self._maintenance):
            if handle is not None:
                handle.cancel()
        self._soon = self._later = self._maintenance = None

    @property
    def is_idle(self) -> bool:
        """Whether no work is due, and listeners have received every change."""
        wakeup_ns = self._bridge.next_wakeup()
        return self._soon is None and (wakeup_ns is None or wakeup_ns > self._clock.now_ns())

    def _schedule_turn(self) -> None:
        if self._soon is None and self._loop is not None:
            self._soon = self._loop.call_soon(self._turn)

    def _on_clock_change(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._schedule_turn)

    def _turn(self) -> None:
        self._soon = None
        if self._later is not None:
            self._later.cancel()
            self._later = None
        try:
            more = self._bridge.advance(self._clock.now_ns(), SLICE_NS)
        except Exception as problem:  # The cluster must keep running.
            _log.exception("a slice of work failed")
            self._bridge.report_bug("slice of work", problem)
            if self._loop is not None:
                self._later = self._loop.call_later(_AFTER_FAILURE_SECONDS, self._schedule_turn)
            return
        if more:
            self._schedule_turn()
            return
        if self._soon is not None or self._loop is None:
            return
        wakeup_ns = self._bridge.next_wakeup()
        seconds = None if wakeup_ns is None else self._clock.real_seconds_until(wakeup_ns)
        if seconds is not None:
            self._later = self._loop.call_later(min(seconds, _MAX_SLEEP), self._schedule_turn)

    def _run_maintenance(self) -> None:
        if self._loop is None:
            return
        more = self._bridge.run_maintenance(self._clock.now_ns())
        self._maintenance = self._loop.call_later(0.0 if more else _MAINTENANCE_SECONDS, self._run_maintenance)
