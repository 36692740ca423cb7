"""Conversions, arithmetic and types; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.cel.problems import CompileProblem, RunProblem
from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("double('0x1p-2')", 0.25, id="a hexadecimal double"),
        pytest.param("bool('T')", True, id="a boolean of one letter"),
        pytest.param("-7 % 3", -1, id="a remainder has the sign of the dividend"),
        pytest.param("9007199254740993 % -2", 1, id="a large remainder"),
        pytest.param(r"'\u00a0\x1ca\u0085'.trim()", "\x1ca", id="trim removes Go's spaces"),
        pytest.param("optional.ofNonZeroValue(duration('0s')).hasValue()", False, id="no duration"),
        pytest.param(
            "optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", False, id="the zero time"
        ),
        pytest.param("optional.ofNonZeroValue(timestamp(0)).hasValue()", True, id="1970 is not the zero time"),
        pytest.param("type(ip('1.2.3.4')) == net.IP", True, id="the type of an address"),
        pytest.param("type(cidr('1.2.3.4/8')) == net.CIDR", True, id="the type of a network"),
    ],
)
def test_functions_return_the_values_of_kubernetes(text: str, want: object) -> None:
    assert value_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("double('1e999')", "type conversion error from 'string' to 'double'", id="a double out of range"),
        pytest.param(
            "double('\u0661')", "type conversion error from 'string' to 'double'", id="a digit of another script"
        ),
        pytest.param("-9223372036854775808 % -1", "integer overflow", id="the remainder that overflows"),
        pytest.param("duration(1)", "invalid duration argument", id="a number is not a duration"),
        pytest.param("timestamp(-62135596801)", "invalid timestamp argument", id="before the year 1"),
    ],
)
def test_invalid_calls_fail_as_in_kubernetes(text: str, want: str) -> None:
    with pytest.raises((CompileProblem, RunProblem), match=want):
        value_of(text)
