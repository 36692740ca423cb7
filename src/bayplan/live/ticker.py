"""A function that is called at intervals on the event loop, such as that of event series."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

_log = logging.getLogger("bayplan.scheduler")


class Ticker:
    """Calls a function at intervals, first after one interval. An exception is logged, and the next call is made.

    Args:
        seconds: the interval.
        function: the function.
    """

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self._seconds = seconds
        self._function = function
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._seconds, self._tick)
        try:
            self._function()
        except Exception:
            _log.exception("a periodic task")

    def stop(self) -> None:
        """Make no more calls."""
        self._timer.cancel()
