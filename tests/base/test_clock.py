"""Tests of `bayplan.base.clock`."""

from __future__ import annotations

import time

import pytest

from bayplan.base.clock import Clock
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError


class Steady:
    """Real time that passes only when the test advances it."""

    def __init__(self) -> None:
        self.now_ns = 5_000

    def __call__(self) -> int:
        return self.now_ns

    def pass_seconds(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND_NS)


def test_a_new_clock_is_real_and_starts_at_system_time() -> None:
    clock = Clock()
    assert abs(clock.now_ns() - time.time_ns()) < SECOND_NS
    assert (clock.mode, clock.speed, clock.paused) == ("real", 1.0, False)


@pytest.mark.parametrize(
    ("speed", "seconds", "want"),
    [
        pytest.param(1.0, 2.0, 2 * SECOND_NS, id="real time passes as it does"),
        pytest.param(100.0, 2.0, 200 * SECOND_NS, id="a fast clock passes faster"),
        pytest.param(0.1, 2.0, SECOND_NS // 5, id="a slow clock passes slower"),
    ],
)
def test_time_passes_at_the_configured_speed(speed: float, seconds: float, want: int) -> None:
    steady = Steady()
    clock = Clock(start_ns=0, speed=speed, steady=steady)
    steady.pass_seconds(seconds)
    assert clock.now_ns() == want


def test_speed_pause_jump_and_resume_take_effect_immediately() -> None:
    steady = Steady()
    clock = Clock(start_ns=0, steady=steady)
    steady.pass_seconds(1)
    clock.set_speed(10)
    steady.pass_seconds(1)
    assert clock.now_ns() == 11 * SECOND_NS
    clock.pause()
    steady.pass_seconds(100)
    assert (clock.now_ns(), clock.paused, clock.mode) == (11 * SECOND_NS, True, "virtual")
    assert clock.real_seconds_until(12 * SECOND_NS) is None
    clock.jump(20 * SECOND_NS)
    clock.jump(3 * SECOND_NS)
    assert clock.now_ns() == 20 * SECOND_NS
    clock.resume()
    assert clock.real_seconds_until(30 * SECOND_NS) == 1.0
    assert clock.real_seconds_until(2 * SECOND_NS) == 0.0


def test_listeners_are_notified_of_every_clock_change() -> None:
    steady, reported = Steady(), list[int]()
    clock = Clock(start_ns=0, steady=steady)
    clock.on_change(lambda: reported.append(clock.now_ns()))
    clock.pause()
    clock.jump(7)
    clock.resume()
    clock.set_speed(2.0)
    assert reported == [0, 7, 7, 7]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_an_invalid_speed_is_refused(speed: float) -> None:
    with pytest.raises(InputError, match="speed of the clock"):
        Clock(speed=speed)
