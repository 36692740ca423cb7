"""Floats, JSON and base64 in Go's format."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.json import float32, json_float, json_text
from bayplan.base.go_text.quoting import GoTextError


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
def test_floats_are_formatted_in_json_as_in_go(value: float, want: str) -> None:
    assert json_float(value) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [(50.0, 50.0), (0.1, 0.1), (0.30000001192, 0.3), (16777217.0, 16777216.0), (3.4028235e38, 3.4028235e38)],
)
def test_float32_returns_the_shortest_equivalent_number(value: float, want: float) -> None:
    assert float32(value) == want


def test_a_float_beyond_float32_overflows() -> None:
    with pytest.raises(OverflowError):
        float32(1e39)


def test_json_text_escapes_html_and_control_characters() -> None:
    assert json_text({"a": ['<&>"\\', "\b\f\n\r\t\x01\x7f\u2028", None, True, 1, 0.5]}) == (
        r'{"a":["\u003c\u0026\u003e\"\\","\b\f\n\r\t\u0001' + "\x7f" + r'\u2028",null,true,1,0.5]}'
    )


@given(st.binary())
def test_base64_is_decoded_across_line_breaks(data: bytes) -> None:
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
def test_invalid_base64_is_refused_with_the_offset_reported_by_go(text: str, want: int) -> None:
    with pytest.raises(GoTextError) as refused:
        decode_base64(text)
    assert str(refused.value) == f"illegal base64 data at input byte {want}"
