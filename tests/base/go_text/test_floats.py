"""Floats as Go's `strconv` reads them."""

from __future__ import annotations

import math

import pytest

from bayplan.base.go_text.floats import parse_float


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1e+5", 100000.0, id="an exponent"),
        pytest.param(".5", 0.5, id="no digit before the point"),
        pytest.param("5.", 5.0, id="no digit after the point"),
        pytest.param("1_0.5_5", 10.55, id="underscores"),
        pytest.param("0x1p-2", 0.25, id="hexadecimal"),
        pytest.param("0X_1.8P1", 3.0, id="hexadecimal with a point"),
        pytest.param("+iNf", math.inf, id="infinity"),
        pytest.param("1e-99999999999999999999", 0.0, id="below the smallest one"),
        pytest.param("1e999", None, id="out of range"),
        pytest.param("0x1p1024", None, id="out of range in hexadecimal"),
        pytest.param("0x1", None, id="hexadecimal without an exponent"),
        pytest.param("+nan", None, id="NaN with a sign"),
        pytest.param("1__0", None, id="two underscores"),
        pytest.param("1_", None, id="an underscore at the end"),
        pytest.param(" 1", None, id="a space"),
        pytest.param("\u0661", None, id="a digit of another script"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_floats_are_parsed_as_in_go(text: str, want: float | None) -> None:
    assert parse_float(text) == want
