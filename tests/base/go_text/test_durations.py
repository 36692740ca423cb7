"""Durations as Go reads and writes them; the answers are those of Go 1.26's ``time.ParseDuration``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import format_duration, parse_duration, read_duration
from bayplan.base.go_text.quoting import GoTextError

NINES = "9" * 5000


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("90s", 90_000_000_000, id="seconds"),
        pytest.param("1h2m3.5s", 3_723_500_000_000, id="hours, minutes and seconds"),
        pytest.param("100ms", 100_000_000, id="milliseconds"),
        pytest.param("2us", 2_000, id="microseconds"),
        pytest.param("2\u00b5s", 2_000, id="microseconds with the micro sign"),
        pytest.param("2\u03bcs", 2_000, id="microseconds with the Greek letter"),
        pytest.param("7ns", 7, id="nanoseconds"),
        pytest.param(".5s", 500_000_000, id="a fraction without a whole"),
        pytest.param("-.5h", -1_800_000_000_000, id="a sign before a fraction"),
        pytest.param("1.s", 1_000_000_000, id="a point without a fraction"),
        pytest.param("+1s", 1_000_000_000, id="a plus"),
        pytest.param("+1m1ns", 60_000_000_001, id="a plus before several units"),
        pytest.param("-1.5h", -5_400_000_000_000, id="a minus"),
        pytest.param("0", 0, id="zero needs no unit"),
        pytest.param("-0", 0, id="nor does zero with a sign"),
        pytest.param("0.0000000019s", 1, id="digits below a nanosecond are cut off"),
        pytest.param("0.100000000000000000000h", 360_000_000_000, id="zeros beyond 63 bits"),
        pytest.param("0.3333333333333333333h", 1_200_000_000_000, id="a fraction is a float"),
        pytest.param(f"1.{NINES}s", 2_000_000_000, id="thousands of digits are rounded as a float"),
        pytest.param("9223372036854775807ns", 2**63 - 1, id="the longest"),
        pytest.param("2562047h47m16.854775807s", 2**63 - 1, id="the longest, in hours"),
        pytest.param("-9223372036854775808ns", -(2**63), id="the longest below zero"),
    ],
)
def test_durations_are_parsed_to_nanoseconds_as_in_go(text: str, want: int) -> None:
    assert parse_duration(text) == want
    assert read_duration(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", 'invalid duration ""', id="nothing"),
        pytest.param("-", 'invalid duration "-"', id="a sign alone"),
        pytest.param("+-1s", 'invalid duration "+-1s"', id="two signs"),
        pytest.param(".", 'invalid duration "."', id="a point alone"),
        pytest.param(".s", 'invalid duration ".s"', id="a point and a unit"),
        pytest.param("..5s", 'invalid duration "..5s"', id="two points"),
        pytest.param("s", 'invalid duration "s"', id="a unit alone"),
        pytest.param("3", 'missing unit in duration "3"', id="no unit"),
        pytest.param("00", 'missing unit in duration "00"', id="two zeros"),
        pytest.param("1s2", 'missing unit in duration "1s2"', id="no unit at the end"),
        pytest.param("1.5.5s", 'missing unit in duration "1.5.5s"', id="two fractions"),
        pytest.param("1d", 'unknown unit "d" in duration "1d"', id="days"),
        pytest.param("1S", 'unknown unit "S" in duration "1S"', id="a capital"),
        pytest.param("1 s", 'unknown unit " s" in duration "1 s"', id="a space"),
        pytest.param("1s ", 'unknown unit "s " in duration "1s "', id="a space at the end"),
        pytest.param("1e3s", 'unknown unit "e" in duration "1e3s"', id="an exponent"),
        pytest.param("1s-1s", 'unknown unit "s-" in duration "1s-1s"', id="a sign inside"),
        pytest.param('1"', 'unknown unit "\\"" in duration "1\\""', id="a quote"),
        pytest.param("1\u00e9", 'unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"', id="a letter outside ASCII"),
        pytest.param("\u0663s", 'invalid duration "\\xd9\\xa3s"', id="a digit outside ASCII"),
        pytest.param("9223372036854775808ns", 'invalid duration "9223372036854775808ns"', id="one nanosecond too long"),
        pytest.param("9999999999h", 'invalid duration "9999999999h"', id="beyond 64 bits"),
        pytest.param(f"{NINES}s", f'invalid duration "{NINES}s"', id="thousands of digits"),
    ],
)
def test_invalid_durations_raise_the_errors_of_go(text: str, want: str) -> None:
    with pytest.raises(GoTextError) as refused:
        parse_duration(text)
    assert str(refused.value) == f"time: {want}"
    with pytest.raises(InputError, match="a duration with units"):
        read_duration(text)


@pytest.mark.parametrize(
    ("duration_ns", "want"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5\u00b5s"),
        (2_000_000, "2ms"),
        (999_999_999, "999.999999ms"),
        (1_000_000_000, "1s"),
        (60_000_000_000, "1m0s"),
        (600_000_000_000, "10m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (-5_400_500_000_000, "-1h30m0.5s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_durations_are_formatted_as_in_go(duration_ns: int, want: str) -> None:
    assert format_duration(duration_ns) == want


@given(st.integers(-(2**53), 2**53))
def test_format_duration_round_trips(duration_ns: int) -> None:
    assert parse_duration(format_duration(duration_ns)) == duration_ns
