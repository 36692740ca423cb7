"""Schedules of CronJobs: valid ones, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from bayplan.apiserver.validation.cron import schedule_problem


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("* * * * *", id="every minute"),
        pytest.param("*/5 0-12/3 1,15 jan-mar MON-fri", id="steps, ranges, lists and names in any case"),
        pytest.param("0 0 ? * ?", id="question marks, which mean any"),
        pytest.param("59 23 31 12 6", id="the last of everything"),
        pytest.param("@daily", id="a descriptor"),
        pytest.param("@every 1h30m", id="a duration"),
        pytest.param("TZ=Europe/Zurich 0 4 * * *", id="a time zone, which a different rule refuses"),
        pytest.param("CRON_TZ=UTC @hourly", id="a time zone before a descriptor"),
        pytest.param("5/15 * * * *", id="a step from a number on"),
    ],
)
def test_valid_schedules_are_accepted(text: str) -> None:
    assert schedule_problem(text) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("* * * *", "expected exactly 5 fields, found 4: [* * * *]", id="four fields"),
        pytest.param("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]", id="six fields"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="minute 60"),
        pytest.param("* 24 * * *", "end of range (24) above maximum (23): 24", id="hour 24"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="day 0"),
        pytest.param("* * * 13 *", "end of range (13) above maximum (12): 13", id="month 13"),
        pytest.param("* * * * 7", "end of range (7) above maximum (6): 7", id="Sunday as 7"),
        pytest.param("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1", id="a descending range"),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="a step of 0"),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="two hyphens"),
        pytest.param("1/2/3 * * * *", "too many slashes: 1/2/3", id="two slashes"),
        pytest.param("@never", "unrecognized descriptor: @never", id="an unknown descriptor"),
    ],
)
def test_invalid_schedules_are_refused(text: str, want: str) -> None:
    assert schedule_problem(text) == want
