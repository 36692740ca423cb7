"""Values of ``--retain``."""

from __future__ import annotations

import pytest

from bayplan.app.retention_option import parse_retention
from bayplan.base.errors import InputError
from bayplan.live.decision_store import Retention

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", Retention(), id="no option keeps the defaults"),
        pytest.param("full=10", Retention(full=10), id="a number of full records"),
        pytest.param(
            "bytes=1Mi,age=90s", Retention(full_bytes=1 << 20, full_age_ns=90 * SECOND), id="bytes and an age"
        ),
        pytest.param(" summaries=5 , full=0 ", Retention(summaries=5, full=0), id="with spaces"),
    ],
)
def test_retention_limits_are_parsed(text: str, want: Retention) -> None:
    assert parse_retention(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("many", "--retain: expected summaries=N, .*, got 'many'; try 'full=10000", id="no limit"),
        pytest.param("full=few", "--retain full: expected an integer, got 'few'", id="a number in words"),
        pytest.param("bytes=x", "--retain bytes: expected .+, got 'x'", id="an invalid size"),
        pytest.param("bytes=-1", "--retain bytes: expected at least 0, got '-1'", id="a negative size"),
        pytest.param("age=soon", "--retain age: expected .+, got 'soon'", id="an invalid age"),
        pytest.param("summaries=0", "--retain summaries: expected at least 1, got '0'", id="no summaries"),
    ],
)
def test_invalid_retention_limits_are_refused(text: str, want: str) -> None:
    with pytest.raises(InputError, match=want):
        parse_retention(text)
