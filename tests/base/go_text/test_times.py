"""Times as the API writes and reads them."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.go_text.times import (
    MAX_INSTANT_NS,
    MIN_INSTANT_NS,
    format_instant,
    format_micro_time,
    format_time,
    format_time_in,
    parse_instant,
    parse_time_ns,
    utc_time,
)

TIME_NS = 1_769_860_800_123_456_789


@pytest.mark.parametrize(
    ("time_ns", "want"),
    [
        pytest.param(0, ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000Z"), id="1970"),
        pytest.param(
            TIME_NS,
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123Z"),
            id="digits below the unit are cut off",
        ),
        pytest.param(
            -1,
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999Z"),
            id="before 1970",
        ),
        pytest.param(
            parse_time_ns("0001-01-01T00:00:00Z") - 1,
            ("0000-12-31T23:59:59Z", "0000-12-31T23:59:59.999999Z", "0000-12-31T23:59:59.999Z"),
            id="year 0",
        ),
        pytest.param(
            -62167219201_000_000_000,
            ("-0001-12-31T23:59:59Z", "-0001-12-31T23:59:59.000000Z", "-0001-12-31T23:59:59.000Z"),
            id="before the year 0",
        ),
        pytest.param(
            253402300800_000_000_000,
            ("10000-01-01T00:00:00Z", "10000-01-01T00:00:00.000000Z", "10000-01-01T00:00:00.000Z"),
            id="after the year 9999",
        ),
    ],
)
def test_times_are_truncated_to_their_unit(time_ns: int, want: tuple[str, str, str]) -> None:
    assert (format_time(time_ns), format_micro_time(time_ns), format_instant(time_ns)) == want


@pytest.mark.parametrize(
    ("hours", "want"),
    [
        pytest.param(0, "2026-01-31T12:00:00Z", id="UTC"),
        pytest.param(2, "2026-01-31T14:00:00+02:00", id="east"),
        pytest.param(-13, "2026-01-30T23:00:00-13:00", id="the day before"),
    ],
)
def test_times_in_a_zone_have_their_offset(hours: int, want: str) -> None:
    assert format_time_in(TIME_NS, timezone(timedelta(hours=hours))) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("2026-01-31T12:00:00.123456789Z", TIME_NS, id="nanoseconds"),
        pytest.param(
            "2026-01-31T14:00:00.1234567899+02:00", TIME_NS, id="an offset and more digits than nanoseconds have"
        ),
        pytest.param("0001-01-01T00:00:00Z", MIN_INSTANT_NS, id="a time before those of int64"),
        pytest.param("9999-12-31T23:59:59Z", MAX_INSTANT_NS, id="a time after those of int64"),
        pytest.param("yesterday", None, id="text that is not a time"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="none"),
    ],
)
def test_instants_are_parsed_with_any_precision(text: str | None, want: int | None) -> None:
    assert parse_instant(text) == want


def test_year_0_is_a_leap_year() -> None:
    days = ("0000-01-01T00:00:00Z", "0000-02-29T00:00:00Z", "0001-01-01T00:00:00Z")
    first, leap_day, next_year = (parse_time_ns(day) // (24 * 3600 * 10**9) for day in days)
    assert (leap_day - first, next_year - first) == (59, 366)
    assert [format_time(parse_time_ns(day)) for day in days] == [*days]


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00.123456789Z", "2026-01-31T14:00:00.1234567899+02:00"])
def test_parse_time_ns_parses_an_instant_to_the_same_time(text: str) -> None:
    assert parse_time_ns(text) == parse_instant(text) == TIME_NS


@pytest.mark.parametrize(
    ("text", "micro", "want"),
    [
        pytest.param("2026-01-31T14:00:00.9+02:00", False, "2026-01-31T12:00:00Z", id="a time is truncated to seconds"),
        pytest.param("2026-01-31T12:00:00.000001Z", True, "2026-01-31T12:00:00.000001Z", id="a micro time keeps its fraction"),
        pytest.param(
            "2026-01-31", False,
            'parsing time "2026-01-31" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"', id="a day",
        ),
        pytest.param(
            "2026-13-31T12:00:00Z", False, 'parsing time "2026-13-31T12:00:00Z": month out of range', id="a month",
        ),
        pytest.param(
            "2026-01-31T12:00:00Z", True,
            'parsing time "2026-01-31T12:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
            id="a micro time without digits",
        ),
        pytest.param("0001-01-01T00:00:00.000000+01:00", True, "0000-12-31T23:00:00.000000Z", id="the last hour of the year 0"),
        pytest.param("0000-01-01T00:00:00+05:00", False, "-0001-12-31T19:00:00Z", id="before the year 0"),
        pytest.param("0000-02-29T00:00:00-05:00", False, "0000-02-29T05:00:00Z", id="the year 0 is a leap year"),
        pytest.param("2024-01-31T12:00:00+23:60", False, "2024-01-30T12:00:00Z", id="an offset of 60 minutes"),
        pytest.param("2024-01-31T1:00:00,5Z", False, "2024-01-31T01:00:00Z", id="one digit of the hour, and a comma"),
        pytest.param(
            "2024-01-31T12:00:00+24:61", False,
            'parsing time "2024-01-31T12:00:00+24:61": time zone offset minute out of range', id="an offset",
        ),
        pytest.param(
            "2024-13-01T00:00:00Z", True, 'parsing time "2024-13-01T00:00:00Z": month out of range',
            id="the first problem counts",
        ),
        pytest.param(
            '\u00e9"', False, r'parsing time "\xc3\xa9\"" as "2006-01-02T15:04:05Z07:00": cannot parse "\xc3\xa9\"" as "2006"',
            id="a quote and bytes",
        ),
        pytest.param(
            "2024-02-30T00:00:00Zx", False, 'parsing time "2024-02-30T00:00:00Zx": extra text: "x"', id="text after the zone",
        ),
        pytest.param("2023-02-29T00:00:00Z", False, 'parsing time "2023-02-29T00:00:00Z": day out of range', id="a leap day"),
        pytest.param(
            "\u0662\u0660\u0662\u0664-01-01T00:00:00Z", False,
            r'parsing time "\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa4-01-01T00:00:00Z" as "2006-01-02T15:04:05Z07:00": '
            r'cannot parse "\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa4-01-01T00:00:00Z" as "2006"',
            id="digits of another script",
        ),
    ],
)  # fmt: skip
def test_api_times_are_converted_to_utc_or_refused_with_the_errors_of_go(text: str, micro: bool, want: str) -> None:
    try:
        found = utc_time(text, micro=micro)
    except GoTextError as problem:
        found = str(problem)
    assert found == want
