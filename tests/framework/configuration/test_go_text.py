"""Texts and numbers as Go has them: durations, floats, JSON, base64."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.configuration.go_text import (
    GoTextError,
    decode_base64,
    float32,
    format_duration,
    json_float,
    json_text,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0),
        ("+5s", 5_000_000_000),
        ("-1.5h", -5_400_000_000_000),
        ("1h2m3.5s", 3_723_500_000_000),
        ("100ms", 100_000_000),
        ("1us", 1_000),
        ("1\u00b5s", 1_000),
        ("1\u03bcs", 1_000),
        ("7ns", 7),
        (".5s", 500_000_000),
        ("3.s", 3_000_000_000),
        ("0.0000000019s", 1),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("-2562047h47m16.854775808s", -(2**63)),
        ("0.100000000000000000000h", 360_000_000_000),
    ],
)
def test_a_duration_is_read_in_nanoseconds(text: str, want: int) -> None:
    assert parse_duration(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".", 'time: invalid duration "."'),
        ("s", 'time: invalid duration "s"'),
        ("3", 'time: missing unit in duration "3"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ('1"', 'time: unknown unit "\\"" in duration "1\\""'),
        ("1\u00e9", 'time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'),
        ("2562047h47m16.854775808s", 'time: invalid duration "2562047h47m16.854775808s"'),
        ("99999999999999999999h", 'time: invalid duration "99999999999999999999h"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_a_text_that_is_no_duration_is_refused_in_the_words_of_go(text: str, want: str) -> None:
    with pytest.raises(GoTextError) as refused:
        parse_duration(text)
    assert str(refused.value) == want


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
def test_a_duration_is_written_as_go_does(duration_ns: int, want: str) -> None:
    assert format_duration(duration_ns) == want


@given(st.integers(-(2**53), 2**53))
def test_a_written_duration_reads_as_itself(duration_ns: int) -> None:
    assert parse_duration(format_duration(duration_ns)) == duration_ns


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (16.0, "16"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.25e22, "-1.25e+22"),
    ],
)
def test_a_float_is_written_as_go_writes_it_in_json(value: float, want: str) -> None:
    assert json_float(value) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [(50.0, 50.0), (0.1, 0.1), (0.30000001192, 0.3), (16777217.0, 16777216.0), (3.4028235e38, 3.4028235e38)],
)
def test_a_float32_has_the_fewest_digits_that_name_it(value: float, want: float) -> None:
    assert float32(value) == want


def test_a_float_beyond_float32_overflows() -> None:
    with pytest.raises(OverflowError):
        float32(1e39)


def test_json_escapes_what_html_and_javascript_would_read() -> None:
    assert json_text({"a": ['<&>"\\', "\b\f\n\r\t\x01\x7f\u2028", None, True, 1, 0.5]}) == (
        r'{"a":["\u003c\u0026\u003e\"\\","\b\f\n\r\t\u0001' + "\x7f" + r'\u2028",null,true,1,0.5]}'
    )


@given(st.binary())
def test_base64_is_read_across_line_breaks(data: bytes) -> None:
    text = base64.encodebytes(data).decode("ascii").replace("\n", "\r\n")
    assert decode_base64(text) == data


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("YWJ", 0),
        ("!!", 0),
        ("YWJj!", 4),
        ("YQ=", 3),
        ("YQ=x", 2),
        ("YQ==x", 4),
        ("Y===", 1),
        ("=", 0),
        ("YWI=\nx", 5),
        ("Y Q=", 1),
    ],
)
def test_bad_base64_is_refused_with_the_offset_that_go_names(text: str, want: int) -> None:
    with pytest.raises(GoTextError) as refused:
        decode_base64(text)
    assert str(refused.value) == f"illegal base64 data at input byte {want}"
