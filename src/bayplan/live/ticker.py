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
        report: called with each exception.
    """

    def __init__(
        self, seconds: float, function: Callable[[], None], report: Callable[[Exception], None] | None = None
    ) -> None:
        self._seconds = seconds
        self._report = report
        self._function = function
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._seconds, self._tick)
        try:
            self._function()
        except Exception as problem:
            _log.exception("a periodic task failed")
            if self._report is not None:
                self._report(problem)

    def stop(self) -> None:
        """Make no more calls."""
        self._timer.cancel()
