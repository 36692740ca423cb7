"""Codes, statuses and packed verdicts."""

from __future__ import annotations

import pytest

from bayplan.framework.status import (
    ERROR_BIT,
    MAX_PLUGIN_CODE,
    SKIP,
    SUCCESS,
    UNRESOLVABLE_BIT,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
    verdict_code,
)


@pytest.mark.parametrize(
    ("code", "text", "rejects"),
    [
        pytest.param(Code.SUCCESS, "Success", False, id="success"),
        pytest.param(Code.ERROR, "Error", False, id="an error is not a rejection"),
        pytest.param(Code.UNSCHEDULABLE, "Unschedulable", True, id="unschedulable"),
        pytest.param(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "UnschedulableAndUnresolvable", True, id="unschedulable altogether"
        ),
        pytest.param(Code.WAIT, "Wait", False, id="wait"),
        pytest.param(Code.SKIP, "Skip", False, id="skip"),
        pytest.param(Code.PENDING, "Pending", True, id="pending is a rejection"),
    ],
)
def test_code_texts_match_upstream(code: Code, text: str, rejects: bool) -> None:
    assert (code.text, code.rejects) == (text, rejects)


def test_code_values_match_upstream() -> None:
    assert [code.value for code in Code] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(SUCCESS, (Code.SUCCESS, True, ""), id="success without a message"),
        pytest.param(SKIP, (Code.SKIP, False, ""), id="skip is not ok"),
        pytest.param(unschedulable("a", "b"), (Code.UNSCHEDULABLE, False, "a, b"), id="reasons are joined by commas"),
        pytest.param(unresolvable("a"), (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, False, "a"), id="unresolvable"),
        pytest.param(error("a"), (Code.ERROR, False, "a"), id="error"),
    ],
)
def test_a_status_has_a_code_and_a_joined_message(status: Status, want: tuple[Code, bool, str]) -> None:
    assert (status.code, status.ok, status.message) == want


def test_by_returns_a_copy_with_the_plugin_name() -> None:
    original = unschedulable("a")
    assert original.by("P") == Status(Code.UNSCHEDULABLE, ("a",), "P")
    assert original.plugin == ""


@pytest.mark.parametrize(
    ("verdict", "want"),
    [
        pytest.param(0, Code.SUCCESS, id="0 passes"),
        pytest.param(1, Code.UNSCHEDULABLE, id="a plugin's own code rejects"),
        pytest.param(MAX_PLUGIN_CODE, Code.UNSCHEDULABLE, id="the largest plugin code rejects"),
        pytest.param(UNRESOLVABLE_BIT | 1, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, id="the bit of what can't be lifted"),
        pytest.param(UNRESOLVABLE_BIT, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, id="the unresolvable bit alone"),
        pytest.param(ERROR_BIT | 1, Code.ERROR, id="the bit of errors"),
        pytest.param(ERROR_BIT | UNRESOLVABLE_BIT, Code.ERROR, id="an error outweighs the other bit"),
    ],
)
def test_verdict_code_returns_the_code_of_a_packed_verdict(verdict: int, want: Code) -> None:
    assert verdict_code(verdict) is want


def test_verdict_bits_fill_16_bits_without_overlap() -> None:
    assert MAX_PLUGIN_CODE + UNRESOLVABLE_BIT + ERROR_BIT == 0xFFFF
    assert MAX_PLUGIN_CODE & UNRESOLVABLE_BIT == MAX_PLUGIN_CODE & ERROR_BIT == 0
