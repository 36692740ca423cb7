"""Durations as Go reads them."""

import pytest

from bayplan.base.errors import InputError
from bayplan.cluster.go_duration import parse_go_duration


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("90s", 90_000_000_000, id="seconds"),
        pytest.param("1h30m", 5_400_000_000_000, id="hours and minutes"),
        pytest.param("1.5ms", 1_500_000, id="a fraction"),
        pytest.param(".5s", 500_000_000, id="a fraction without a whole"),
        pytest.param("1.s", 1_000_000_000, id="a point without a fraction"),
        pytest.param("0.0000000019s", 1, id="digits below a nanosecond are cut off"),
        pytest.param("2us", 2_000, id="microseconds"),
        pytest.param("2\u00b5s", 2_000, id="microseconds with the micro sign"),
        pytest.param("2\u03bcs", 2_000, id="microseconds with the Greek letter"),
        pytest.param("-1m", -60_000_000_000, id="a sign"),
        pytest.param("+1m1ns", 60_000_000_001, id="a plus"),
        pytest.param("0", 0, id="zero needs no unit"),
    ],
)
def test_durations(text: str, want: int) -> None:
    assert parse_go_duration(text) == want


@pytest.mark.parametrize("text", ["", "-", "90", "s", ".s", "1d", "1 s", "1s ", "1e3s", "3000000h", "1s-1s", "\u0663s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a duration with units"):
        parse_go_duration(text)
