"""Cron schedules: recorded times of robfig/cron v3.0.1, errors, and a comparison with a naive implementation in UTC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.controllers.cron_schedule import parse_cron_schedule
from tests.oracle.cron import matches

NOON = "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("schedule", "after", "want"),
    [
        pytest.param("* * * * *", "2026-01-31T12:00:30Z", ["31T12:01", "31T12:02", "31T12:03"], id="every minute"),
        pytest.param("*/5 * * * *", NOON, ["31T12:05", "31T12:10", "31T12:15"], id="every five minutes"),
        pytest.param("7/8 * * * *", NOON, ["31T12:07", "31T12:15", "31T12:23"], id="from 7 to the end of the hour"),
        pytest.param("0 0 * FEB,mar MON-fri", NOON, ["02-02T00:00", "02-03T00:00", "02-04T00:00"], id="names"),
        pytest.param("0 12 13 * 5", NOON, ["02-06T12:00", "02-13T12:00", "02-20T12:00"], id="day of month or of week"),
        pytest.param("0 12 13 * *", NOON, ["02-13T12:00", "03-13T12:00", "04-13T12:00"], id="with a star, both"),
        pytest.param(
            "0 0 */10 * 1", NOON, ["02-01T00:00", "02-02T00:00", "02-09T00:00"], id="a star with a step is not a star"
        ),
        pytest.param("? ? ? ? ?", NOON, ["31T12:01", "31T12:02", "31T12:03"], id="question marks mean stars"),
        pytest.param("0 0 29 2 *", NOON, ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29"], id="29 February"),
        pytest.param("0 0 31 2 *", NOON, ["never"], id="31 February does not exist"),
        pytest.param(", * * * *", NOON, ["never"], id="an empty field matches nothing"),
        pytest.param("@hourly", NOON, ["31T13:00", "31T14:00", "31T15:00"], id="hourly"),
        pytest.param("@daily", NOON, ["02-01T00:00", "02-02T00:00", "02-03T00:00"], id="daily"),
        pytest.param("@weekly", NOON, ["02-01T00:00", "02-08T00:00", "02-15T00:00"], id="weekly"),
        pytest.param("@monthly", NOON, ["02-01T00:00", "03-01T00:00", "04-01T00:00"], id="monthly"),
        pytest.param("@yearly", NOON, ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01"], id="yearly"),
        pytest.param("@every 1m30s", "2026-01-31T12:00:01Z", ["12:01:31", "12:03:01", "12:04:31"], id="every 90 s"),
        pytest.param("@every 10ms", "2026-01-31T12:00:01Z", ["12:00:02", "12:00:03", "12:00:04"], id="at least 1 s"),
        pytest.param(
            "TZ=Europe/Berlin 30 2 * * *",
            "2026-03-28T00:00:00Z",
            ["03-28T01:30", "03-30T00:30", "03-31T00:30"],
            id="a time skipped by daylight saving is skipped",
        ),
        pytest.param(
            "TZ=Europe/Berlin 30 2 * * *",
            "2026-10-24T00:00:00Z",
            ["10-24T00:30", "10-25T00:30", "10-25T01:30"],
            id="a time that occurs twice fires twice",
        ),
        pytest.param(
            "TZ=Asia/Beirut 0 0 * * *",
            "2026-03-27T00:00:00Z",
            ["03-27T22:00", "03-29T21:00", "03-30T21:00"],
            id="a midnight that does not exist",
        ),
        pytest.param(
            "CRON_TZ=Asia/Kathmandu 0 9 * * *",
            NOON,
            ["02-01T03:15", "02-02T03:15", "02-03T03:15"],
            id="a zone of three quarters of an hour",
        ),
    ],
)
def test_next_times_match_robfig_cron(schedule: str, after: str, want: list[str]) -> None:
    parsed = parse_cron_schedule(schedule)
    time_ns: int | None = parse_time_ns(after)
    got: list[str] = []
    while time_ns is not None and len(got) < len(want):
        time_ns = parsed.next_after(time_ns)
        got.append("never" if time_ns is None else format_time(time_ns))
    assert [text in found for text, found in zip(want, got, strict=True)] == [True] * len(want), got


def test_a_time_zone_in_the_schedule_overrides_that_of_the_cron_job() -> None:
    for schedule in (
        parse_cron_schedule("0 9 * * *", time_zone="Asia/Kathmandu"),
        parse_cron_schedule("TZ=Asia/Kathmandu 0 9 * * *", time_zone="UTC"),
    ):
        assert schedule.next_after(parse_time_ns(NOON)) == parse_time_ns("2026-02-01T03:15:00Z")


def test_next_after_advances_past_a_day_skipped_by_its_time_zone() -> None:
    schedule = parse_cron_schedule("6 7/8 16 * *", time_zone="Pacific/Apia")
    time_ns = parse_time_ns("2011-12-20T00:00:00Z")
    following = schedule.next_after(time_ns)
    assert following is not None
    assert following > time_ns


@pytest.mark.parametrize(
    ("schedule", "want"),
    [
        pytest.param("* * * *", "exactly 5 fields", id="four fields"),
        pytest.param("60 * * * *", "values from 0 to 59", id="a minute that does not exist"),
        pytest.param("* * * * 7", "values from 0 to 6", id="Sunday is 0 only"),
        pytest.param("5-1 * * * *", "in ascending order", id="a descending range"),
        pytest.param("*/0 * * * *", "in ascending order", id="a step of zero"),
        pytest.param("1-2-3 * * * *", "a number, a range or a step", id="two hyphens"),
        pytest.param("1/2/3 * * * *", "a number, a range or a step", id="two slashes"),
        pytest.param("x * * * *", "integers", id="no number"),
        pytest.param("* * * moon *", "integers or names", id="no month"),
        pytest.param("@fortnightly", "@hourly", id="an unknown descriptor"),
        pytest.param("@every soon", "a duration", id="no duration"),
        pytest.param("TZ=Moon/Sea * * * * *", "an IANA time zone", id="no time zone"),
        pytest.param("TZ=../etc/passwd * * * * *", "an IANA time zone", id="no path either"),
    ],
)
def test_invalid_schedules_are_refused_with_what_was_expected(schedule: str, want: str) -> None:
    with pytest.raises(InputError, match=want):
        parse_cron_schedule(schedule)


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    stepped = st.tuples(span | st.just("*") | number.map(str), st.integers(1, 9)).map(
        lambda both: f"{both[0]}/{both[1]}"
    )
    part = st.just("*") | number.map(str) | span | stepped
    return st.lists(part, min_size=1, max_size=2).map(",".join)


@given(
    schedule=st.tuples(fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12), fields(0, 6)).map(" ".join),
    start=st.integers(0, 2**31),
)
def test_next_after_returns_the_first_matching_minute(schedule: str, start: int) -> None:
    following = parse_cron_schedule(schedule).next_after(start * SECOND_NS)
    horizon = start // 60 + 2 * 24 * 60
    end = horizon if following is None else min(following // SECOND_NS // 60, horizon)
    assert not any(matches(schedule, minute) for minute in range(start // 60 + 1, end))
    if following is not None and following // SECOND_NS // 60 < horizon:
        assert following % (60 * SECOND_NS) == 0
        assert matches(schedule, end)
