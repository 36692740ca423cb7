"""Warnings: each is sent once, without control characters, and truncated if all of them are too long."""

from __future__ import annotations

import pytest

from bayplan.apiserver.rest.warning_headers import warning_headers


@pytest.mark.parametrize(
    ("texts", "want"),
    [
        pytest.param(["a", "b", "a", ""], ['299 - "a"', '299 - "b"'], id="each once"),
        pytest.param(['say "x\\y"'], ['299 - "say \\"x\\\\y\\""'], id="quotes and backslashes"),
        pytest.param(['unknown field "a\x00"', "é\x85", "ok"], ['299 - "ok"'], id="control characters can't be sent"),
        pytest.param(["x" * 4096], [f'299 - "{"x" * 4096}"'], id="of the maximum length"),
        pytest.param(["x" * 4096, "y"], [f'299 - "{"x" * 256}"', '299 - "y"'], id="too long together"),
    ],
)
def test_warning_headers_are_unique_escaped_and_truncated(texts: list[str], want: list[str]) -> None:
    assert [value for _, value in warning_headers(texts)] == want


def test_the_last_of_too_many_warnings_are_omitted() -> None:
    found = warning_headers(f"{number:03}" + "x" * 300 for number in range(30))
    assert len(found) == 16
    assert found[-1][1].startswith('299 - "015')
