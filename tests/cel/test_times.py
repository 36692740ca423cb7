"""Times in expressions: their fields in time zones, and their texts; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.cel.problems import RunProblem
from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("timestamp('2020-01-01T00:00:00Z').getHours('+24:00')", 0, id="an offset of a day"),
        pytest.param("timestamp('9999-12-31T23:59:59Z').getHours('+01:00')", 0, id="after the year 9999"),
        pytest.param(
            "timestamp('9999-12-31T23:59:59Z').getFullYear('Asia/Tokyo')", 10000, id="the year 10000 in a zone"
        ),
        pytest.param("timestamp('0001-01-01T00:00:00Z').getFullYear('US/Central')", 0, id="the year 0 in a zone"),
        pytest.param("timestamp('0001-01-01T00:00:00Z').getMinutes('US/Central')", 9, id="local mean time"),
        pytest.param("timestamp('0001-01-01T00:00:00Z').getDayOfYear('-1:00')", 365, id="the last day of a leap year"),
        pytest.param("timestamp('0001-01-01T00:00:00Z').getDayOfWeek('-1:00')", 0, id="a Sunday"),
        pytest.param("timestamp('0001-01-01T00:00:00Z').getFullYear('-1000000:00')", -114, id="years of offset"),
        pytest.param(
            "timestamp('0001-01-01T00:00:00Z').getFullYear('-100000000:00')", 284, id="an offset beyond 64 bits"
        ),
        pytest.param("timestamp('2020-01-01T00:00:00Z').getMinutes('+1:5')", 5, id="an offset with one digit"),
        pytest.param("timestamp('2020-01-01T00:00:00Z').getMinutes('+1:-5')", 55, id="minutes with a sign"),
        pytest.param("timestamp('2020-01-01T00:00:00Z').getHours('Local')", 0, id="the zone of the server"),
        pytest.param("timestamp('2024-07-01T12:00:00Z').getHours('Europe/Berlin')", 14, id="summer time"),
        pytest.param("timestamp('2024-02-29T00:00:00Z').getMonth()", 1, id="a month"),
        pytest.param("timestamp('2024-02-29T00:00:00Z').getDate()", 29, id="a day"),
        pytest.param(
            "string(timestamp('9999-12-31T00:00:00+20:00') + duration('27h'))",
            "10000-01-01T03:00:00+20:00",
            id="text of the year 10000",
        ),
        pytest.param(
            "string(timestamp('0001-01-01T00:00:00-23:00') - duration('23h'))",
            "0000-12-31T01:00:00-23:00",
            id="text of the year 0",
        ),
        pytest.param(
            "string(duration('1ns') + duration('1000000h'))", "3600000000s", id="a duration is rounded to a double"
        ),
        pytest.param("string(duration('-1.5s'))", "-1.5s", id="a negative duration"),
        pytest.param("duration('2500000h3599999999999ns').getHours()", 2500001, id="hours are rounded to a double"),
    ],
)
def test_fields_and_texts_of_times_are_those_of_kubernetes(text: str, want: object) -> None:
    assert value_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("timestamp(0).getHours(':5')", 'strconv.Atoi: parsing "": invalid syntax', id="no hours"),
        pytest.param("timestamp(0).getHours('1:x')", 'strconv.Atoi: parsing "x": invalid syntax', id="bad minutes"),
        pytest.param(
            "timestamp(0).getHours('99999999999999999999:0')",
            'strconv.Atoi: parsing "99999999999999999999": value out of range',
            id="too many hours",
        ),
        pytest.param("timestamp(0).getHours('../x')", "time: invalid location name", id="a path"),
        pytest.param("timestamp(0).getHours('Nope')", "unknown time zone Nope", id="an unknown zone"),
        pytest.param("timestamp(0) - duration('-9223372036854775808ns')", "integer overflow", id="a negated duration"),
    ],
)
def test_invalid_operations_on_times_fail_as_in_kubernetes(text: str, want: str) -> None:
    with pytest.raises(RunProblem) as failed:
        value_of(text)
    assert str(failed.value) == want
