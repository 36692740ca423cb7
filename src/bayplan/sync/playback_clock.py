"""The playback clock of a replay: a position in the recording that advances, with speed, pause and seek."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError


class PlaybackClock:
    """The position in a recording. Use it on one event loop.

    Args:
        now_ns: the function that returns monotonic nanoseconds.
        speed: the seconds of the recording per second; with infinity, waiting ends immediately.
        start_ns: the initial position, in nanoseconds from the start of the recording.
    """

    def __init__(self, now_ns: Callable[[], int], *, speed: float = 1.0, start_ns: int = 0) -> None:
        _check_speed(speed)
        self._now_ns = now_ns
        self._speed = speed
        self._paused = False
        self._base_ns = start_ns
        self._since_ns = now_ns()
        self._changed = asyncio.Event()

    @property
    def position_ns(self) -> int:
        """The position (ns) from the start of the recording; with infinite speed, the last position that was set."""
        if self._paused or self._speed == float("inf"):
            return self._base_ns
        return self._base_ns + int((self._now_ns() - self._since_ns) * self._speed)

    @property
    def speed(self) -> float:
        """Seconds of the recording per second."""
        return self._speed

    @property
    def paused(self) -> bool:
        """Whether playback is paused."""
        return self._paused

    def pause(self) -> None:
        """Pause playback."""
        self._rebase()
        self._paused = True

    def resume(self) -> None:
        """Resume playback."""
        self._rebase()
        self._paused = False

    def set_speed(self, speed: float) -> None:
        """Change the speed.

        Raises:
            InputError: the speed is not above 0.
        """
        _check_speed(speed)
        self._rebase()
        self._speed = speed

    def seek(self, position_ns: int) -> None:
        """Continue from another position, forward or back."""
        self._rebase()
        self._base_ns = max(position_ns, 0)

    def _rebase(self) -> None:
        self._base_ns, self._since_ns = self.position_ns, self._now_ns()
        self._changed.set()

    async def wait_until(self, offset_ns: int, seen_ns: int) -> bool:
        """Wait until a position is reached; return False if the position was set to before the last emitted change.

        Args:
            offset_ns: the position to wait for.
            seen_ns: the position of the last emitted change.
        """
        while True:
            position_ns = self.position_ns
            if not self._paused and self._speed == float("inf"):
                if position_ns < seen_ns:
                    return False
                self._base_ns = max(position_ns, offset_ns)
                return True
            if position_ns < seen_ns:
                return False
            if position_ns >= offset_ns:
                return True
            self._changed.clear()
            seconds = None if self._paused else (offset_ns - position_ns) / self._speed / SECOND_NS
            # Not `wait_for`: before Python 3.12 it loses a cancellation that coincides with the awaited event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()


def _check_speed(speed: float) -> None:
    if not speed > 0:
        raise InputError(
            "speed", got=f"{speed:g}", wanted="a number above 0", hint="1, 10, or inf for as fast as possible"
        )
