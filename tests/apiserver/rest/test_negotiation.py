"""Media types of bodies: which are accepted, and that reading them takes linear time."""

from __future__ import annotations

import pytest

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.rest.negotiation import input_type


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json;charset=utf-8",
        ' application/json ; a=b;c="d e" ; ',
    ],
)
def test_media_type_parameters_are_ignored(content_type: str) -> None:
    assert input_type(content_type) == "application/json"


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("text/plain", id="another type"),
        pytest.param("application/json;a", id="a parameter without a value"),
        # A regular expression that backtracks would take an hour.
        pytest.param("application/json;a=b" + " " * 500_000 + "x", id="half a million blanks"),
        pytest.param("application/json" + ";a=b " * 100_000 + '"', id="many parameters"),
    ],
)
def test_unknown_or_invalid_media_types_are_refused(content_type: str) -> None:
    with pytest.raises(ApiError, match="unknown format"):
        input_type(content_type)
