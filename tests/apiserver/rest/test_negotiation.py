"""Media types: the order of Accept headers, and which bodies are accepted in linear time."""

from __future__ import annotations

import pytest

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.rest.negotiation import error_form, input_type, negotiate, parse_accept


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


@pytest.mark.parametrize(
    ("header", "want"),
    [
        pytest.param("a/b;q=0.5, c/d", ["c/d", "a/b"], id="better quality first"),
        pytest.param("*/*, a/b;q=0.5", ["a/b", "*/*"], id="a wildcard that is followed by something worse comes later"),
        pytest.param("a/b;q=0.5, */*", ["*/*", "a/b"], id="a wildcard that follows something worse comes sooner"),
        pytest.param("a/*, a/b", ["a/b", "a/*"], id="any subtype last"),
        pytest.param("*", ["*/*"], id="a single asterisk is anything"),
        pytest.param("a, a/b/c, a/, d/e", ["d/e"], id="unreadable types"),
        pytest.param("a/b;q=x, c/d;q=0.1", ["c/d", "a/b"], id="an unreadable quality is 0"),
        pytest.param("a/b;q=0.1;q=, c/d;q=0.5", ["c/d", "a/b"], id="an empty quality is ignored"),
        pytest.param(", ".join([*["a/b;q=0.1"] * 12, "c/d"]), ["c/d", *["a/b"] * 12], id="more than twelve"),
    ],
)
def test_accept_headers_are_sorted_as_in_upstream(header: str, want: list[str]) -> None:
    assert [each.media_type for each in parse_accept(header)] == want


def test_parameters_without_a_value_or_with_two_are_ignored() -> None:
    assert parse_accept("a/b;as=;v= v1 ;g=x=y;charset")[0].parameters == {"v": "v1"}


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param("application/json;sv=v1;as=Table;g=meta.k8s.io;v=v1", "Table", id="the server's version"),
        pytest.param("application/json;sv=v2;as=Table;g=meta.k8s.io;v=v1, application/json", "", id="another version"),
    ],
)
def test_alternatives_for_other_server_versions_are_skipped(accept: str, want: str) -> None:
    assert negotiate(accept).kind == want


def test_errors_have_no_server_version() -> None:
    assert error_form("application/yaml;sv=v1, application/json", pretty=False).media_type == "application/json"
