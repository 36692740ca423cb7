"""Timers and timestamps."""

from datetime import timedelta, timezone

import pytest

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time, format_time_in
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.timers import Timers


def test_timers_fire_by_time_and_then_by_insertion_order() -> None:
    timers: Timers[str] = Timers()
    for time_ns, item in ((30, "late"), (10, "b"), (20, "between"), (10, "a")):
        timers.set(time_ns, item)
    assert timers.next_time == 10
    got = []
    while (due := timers.pop_due(20)) is not None:
        got.append(due)
    assert got == [(10, "b"), (10, "a"), (20, "between")]
    assert (timers.next_time, len(timers)) == (30, 1)


def test_timers_of_several_periods_fire_in_order() -> None:
    random = RandomStreams(1).stream("timers")
    timers: Timers[int] = Timers()
    now_ns, waiting, got = 0, list[tuple[int, int]](), list[tuple[int, int]]()
    for number in range(3000):
        # Most are set for the current or the next minutes, some for hours later, some for the past.
        time_ns = now_ns + int(random.choice((0, 1, 40, 300, 20_000)) * random.random() * SECOND_NS) - SECOND_NS
        timers.set(time_ns, number)
        waiting.append((time_ns, number))
        assert timers.next_time == min(waiting)[0]
        now_ns += int(random.random() * 5 * SECOND_NS)
        due = sorted(item for item in waiting if item[0] <= now_ns)
        waiting = [item for item in waiting if item[0] > now_ns]
        while (popped := timers.pop_due(now_ns)) is not None:
            got.append(popped)
        assert got[len(got) - len(due) :] == due
        assert len(timers) == len(waiting)
    assert len(got) > 2000


def test_empty_timers_have_no_next_time() -> None:
    timers: Timers[str] = Timers()
    assert timers.next_time is None
    assert timers.pop_due(10**18) is None


@pytest.mark.parametrize(
    ("time_ns", "want"),
    [
        pytest.param(0, "1970-01-01T00:00:00Z", id="the beginning"),
        pytest.param(1_999_999_999, "1970-01-01T00:00:01Z", id="cut to the second"),
        pytest.param(1_769_860_800 * SECOND_NS, "2026-01-31T12:00:00Z", id="a day in 2026"),
        pytest.param(-1, "1969-12-31T23:59:59Z", id="before the beginning"),
    ],
)
def test_format_time_truncates_to_seconds(time_ns: int, want: str) -> None:
    assert format_time(time_ns) == want


@pytest.mark.parametrize(
    ("hours", "want"),
    [
        pytest.param(0, "1970-01-01T00:00:00Z", id="UTC"),
        pytest.param(1, "1970-01-01T01:00:00+01:00", id="east"),
        pytest.param(-3.5, "1969-12-31T20:30:00-03:30", id="west"),
    ],
)
def test_format_time_in_adds_the_zone_offset(hours: float, want: str) -> None:
    assert format_time_in(0, timezone(timedelta(hours=hours))) == want
