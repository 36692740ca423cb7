"""Named formats; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        pytest.param("date", "2024-W01-1", False, id="a week"),
        pytest.param("date", "0000-02-29", True, id="the year 0"),
        pytest.param("date", "2023-02-29", False, id="no such day"),
        pytest.param("date", "2024-1-01", False, id="a month with one digit"),
        pytest.param("datetime", "2024-01-01t00:00:00z", True, id="small letters"),
        pytest.param("datetime", "2024-01-01T00:00:00+99:99", True, id="any offset"),
        pytest.param("datetime", "2024-01-01T00:00:00,5Z", True, id="any separator of the fraction"),
        pytest.param("datetime", "2024-01-01T24:00:00Z", False, id="no such hour"),
        pytest.param("datetime", "2024-01-01", False, id="no time"),
        pytest.param("byte", "", False, id="no bytes"),
        pytest.param("byte", "YQ==", True, id="padded bytes"),
        pytest.param("byte", "YQ", False, id="bytes without padding"),
        pytest.param("byte", "YW\\nJj", False, id="bytes on two lines"),
    ],
)
def test_named_formats_accept_what_kubernetes_accepts(name: str, text: str, want: bool) -> None:
    assert value_of(f"format.{name}().validate('{text}').hasValue()") is not want
