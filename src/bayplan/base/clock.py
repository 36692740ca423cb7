"""The clock of everything that runs in real time: API, controllers, kubelet and scheduler of one process.

It runs at a speed, is paused, or is set forward. By default it is real time at speed 1; any other setting makes it a
virtual clock, with its own time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError

MAX_SPEED = 1_000_000.0


def steady_ns() -> int:
    """Return nanoseconds since some instant in the past; never goes backwards, and includes system sleep if possible."""
    # Users and daemons set real clocks; due actions must neither wait an hour nor run twice.
    return time.clock_gettime_ns(_STEADY) if _STEADY is not None else time.monotonic_ns()


_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock:
    """A clock that threads share and that never goes backwards. All methods may be called from any thread.

    Args:
        start_ns: the initial time, nanoseconds since 1970; None for the machine's time.
        speed: the seconds of this clock per real second.
        paused: whether it starts paused.
        steady: the function that returns monotonic nanoseconds.
        awake: the same, but not counting system sleep.

    Raises:
        InputError: a speed that is not above 0.
    """

    def __init__(
        self,
        *,
        start_ns: int | None = None,
        speed: float = 1.0,
        paused: bool = False,
        steady: Callable[[], int] = steady_ns,
        awake: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._steady = steady
        self._awake = awake
        self._asleep_ns = steady() - awake()
        self._lock = Lock()
        self._virtual = start_ns is not None or speed != 1.0 or paused
        self._speed = _checked(speed)
        # The readings of this clock and the monotonic one at the last change, and the speed since, 0 while paused.
        # Readers take no lock, so the three are replaced together.
        self._since = (time.time_ns() if start_ns is None else start_ns, steady(), 0.0 if paused else self._speed)
        self._listeners: list[Callable[[], None]] = []

    def now_ns(self) -> int:
        """Return the time, nanoseconds since 1970."""
        then_ns, steady_ns, rate = self._since
        if not rate:
            return then_ns
        passed = self._steady() - steady_ns
        return then_ns + (passed if rate == 1.0 else int(passed * rate))

    def seconds(self) -> float:
        """Return the time in seconds since 1970."""
        return self.now_ns() / SECOND_NS

    @property
    def speed(self) -> float:
        """Return the seconds of this clock per real second while it is not paused."""
        return self._speed

    @property
    def paused(self) -> bool:
        """Return whether it is paused."""
        return not self._since[2]

    @property
    def mode(self) -> str:
        """Return ``real``, or ``virtual`` if the clock has ever been anything but the machine's."""
        return "virtual" if self._virtual else "real"

    def real_seconds_until(self, time_ns: int) -> float | None:
        """Return the real seconds until a time, 0 if it has passed; None: never, as the clock is paused."""
        left = time_ns - self.now_ns()
        if left <= 0:
            return 0.0
        rate = self._since[2]
        return left / SECOND_NS / rate if rate else None

    # --- changing it --------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Pause the clock."""
        self._change(paused=True)

    def resume(self) -> None:
        """Resume the clock."""
        self._change(paused=False)

    def set_speed(self, speed: float) -> None:
        """Change the speed.

        Raises:
            InputError: a speed that is not above 0.
        """
        self._change(speed=_checked(speed))

    def jump(self, time_ns: int) -> None:
        """Set the clock forward; a time in the past changes nothing."""
        if time_ns > self.now_ns():
            self._change(time_ns=time_ns)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call a function whenever the clock was paused, resumed, set or changed in speed, on the thread that did it.

        Waiters for a time wake up then, and check again.
        """
        self._listeners.append(listener)

    def slept_ns(self) -> int:
        """Return how long the machine has slept since the last call. Timers of the system don't run during sleep."""
        before, self._asleep_ns = self._asleep_ns, self._steady() - self._awake()
        return max(0, self._asleep_ns - before)

    def catch_up(self) -> None:
        """Call all listeners, because time has passed that their timers did not notice."""
        for listener in tuple(self._listeners):
            listener()

    def _change(self, *, time_ns: int | None = None, speed: float | None = None, paused: bool | None = None) -> None:
        with self._lock:
            now_ns = self.now_ns() if time_ns is None else max(time_ns, self.now_ns())
            if time_ns is not None or paused or (speed is not None and speed != self._speed):
                self._virtual = True
            if speed is not None:
                self._speed = speed
            stands = self.paused if paused is None else paused
            self._since = (now_ns, self._steady(), 0.0 if stands else self._speed)
        self.catch_up()


def _checked(speed: float) -> float:
    if not 0 < speed <= MAX_SPEED:
        raise InputError("speed of the clock", got=str(speed), wanted=f"a number above 0, up to {MAX_SPEED:,.0f}")
    return speed
