"""Query parameters: their types, limits and defaults."""

from __future__ import annotations

import pytest

from bayplan.http_api.errors import RequestError
from bayplan.http_api.query import DEFAULT_ROWS, MAX_ROWS, Query


def query(**values: str) -> Query:
    return Query(values, [*values, "sort"])


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param({}, (0, DEFAULT_ROWS), id="the defaults"),
        pytest.param({"offset": "7", "limit": "1"}, (7, 1), id="the smallest page"),
        pytest.param({"limit": str(MAX_ROWS)}, (0, MAX_ROWS), id="the largest page"),
        pytest.param({"limit": ""}, (0, DEFAULT_ROWS), id="an empty limit"),
    ],
)
def test_a_page_has_an_offset_and_a_limit(values: dict[str, str], want: tuple[int, int]) -> None:
    assert query(**values).page() == want


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        pytest.param("limit", "0", f"a whole number from 1 to {MAX_ROWS}", id="an empty page"),
        pytest.param("limit", str(MAX_ROWS + 1), f"a whole number from 1 to {MAX_ROWS}", id="too large a page"),
        pytest.param("offset", "-1", "a whole number from 0", id="a negative offset"),
        pytest.param("offset", "1.5", "a whole number from 0", id="a fraction"),
        pytest.param("offset", "٣", "a whole number from 0", id="a digit outside ASCII"),
        pytest.param("offset", "9" * 20, "a whole number from 0", id="a number of 20 digits"),
    ],
)
def test_invalid_pages_are_refused(name: str, value: str, wanted: str) -> None:
    with pytest.raises(RequestError) as refused:
        query(**{name: value}).page()
    assert (refused.value.what, refused.value.got, refused.value.wanted) == (name, f"'{value}'", wanted)
