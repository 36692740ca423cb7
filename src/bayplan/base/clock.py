"""The clock that API, controllers, kubelet and scheduler of a process share.

It shows the machine's time until it is paused, set forward, or given another speed. From then on, it is a virtual clock
with its own time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError

MAX_SPEED = 1_000_000.0


def boottime_ns() -> int:
    """Return the nanoseconds since some instant in the past.

    Never goes backwards, and includes the machine's sleep if possible.
    """
    # Users and services set the machine's clock; actions must then neither be an hour late nor happen twice.
    return time.clock_gettime_ns(_STEADY) if _STEADY is not None else time.monotonic_ns()


_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock:
    """A clock that threads share. It never goes backwards, and all its methods may be called from any thread.

    Args:
        start_ns: the initial time, in nanoseconds since 1970; None for the machine's time.
        speed: how many seconds pass on this clock per real second.
        paused: whether it starts paused.
        steady: a function that returns nanoseconds and never goes backwards.
        awake: the same, without the time that the machine sleeps.

    Raises:
        InputError: the speed is not above 0, or too high.
    """

    def __init__(
        self,
        *,
        start_ns: int | None = None,
        speed: float = 1.0,
        paused: bool = False,
        steady: Callable[[], int] = boottime_ns,
        awake: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._steady = steady
        self._awake = awake
        self._asleep_ns = steady() - awake()
        self._lock = Lock()
        self._virtual = start_ns is not None or speed != 1.0 or paused
        self._speed = _checked(speed)
        # The time of this clock and the steady time at the last change, and the speed since then (0 while paused).
        # Readers take no lock, so the three are replaced together.
        self._since = (time.time_ns() if start_ns is None else start_ns, steady(), 0.0 if paused else self._speed)
        self._listeners: list[Callable[[], None]] = []

    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970."""
        then_ns, since_ns, rate = self._since
        if not rate:
            return then_ns
        passed = self._steady() - since_ns
        return then_ns + (passed if rate == 1.0 else int(passed * rate))

    def seconds(self) -> float:
        """Return the time in seconds since 1970."""
        return self.now_ns() / SECOND_NS

    @property
    def speed(self) -> float:
        """Return how many seconds pass on this clock per real second, while it is not paused."""
        return self._speed

    @property
    def paused(self) -> bool:
        """Return whether it is paused."""
        return not self._since[2]

    @property
    def mode(self) -> str:
        """Return `real`, or `virtual` if the clock has ever shown another time than the machine's."""
        return "virtual" if self._virtual else "real"

    def real_seconds_until(self, time_ns: int) -> float | None:
        """Return the real seconds until a time: 0 if it has passed, None while the clock is paused."""
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
            InputError: the speed is not above 0, or too high.
        """
        self._change(speed=_checked(speed))

    def jump(self, time_ns: int) -> None:
        """Set the clock forward; a time in the past changes nothing."""
        if time_ns > self.now_ns():
            self._change(time_ns=time_ns)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call a function whenever the clock is paused, resumed or set forward, or changes its speed.

        The function runs on the thread that made the change. It makes waiting threads check again how long to wait.
        """
        self._listeners.append(listener)

    def slept_ns(self) -> int:
        """Return how long the machine has slept since the last call.

        The operating system's timers stand still while it sleeps.
        """
        before, self._asleep_ns = self._asleep_ns, self._steady() - self._awake()
        return max(0, self._asleep_ns - before)

    def catch_up(self) -> None:
        """Call all listeners, because time has passed that timers did not count."""
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
        raise InputError("speed of the clock", got=str(speed), wanted=f"a number above 0 and at most {MAX_SPEED:,.0f}")
    return speed
