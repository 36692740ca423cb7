"""Label and field selectors of requests: what they mean, and the errors of those that cannot be parsed."""

from __future__ import annotations

import pytest

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.selectors import parse_fields, parse_labels


def known(field: str) -> str:
    return "" if field in ("metadata.name", "a!b") else f"unknown field {field!r}"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a in (y,x,y)", [("a", "In", ("x", "y"))], id="values are sorted, each once"),
        pytest.param("a in ()", [("a", "In", ("",))], id="no values mean the empty value"),
        pytest.param("a in (,x)", [("a", "In", ("", "x"))], id="nothing before a comma"),
        pytest.param("a in (x,)", [("a", "In", ("", "x"))], id="nothing after a comma"),
        pytest.param("in in (in)", [("in", "In", ("in",))], id="keywords as names"),
        pytest.param("a=,!b", [("a", "In", ("",)), ("b", "DoesNotExist", ())], id="an empty value, and no label"),
        pytest.param(" ", [], id="nothing"),
    ],
)
def test_label_selectors_are_parsed(text: str, want: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert [(each.key, each.operator, each.values) for each in parse_labels(text)] == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("(a)", "found '(', expected: !, identifier, or 'end of string'", id="no key"),
        pytest.param("a=!x", "unable to parse requirement: found '!', expected: identifier", id="no value"),
        pytest.param("a in (x", "unable to parse requirement: found '', expected: ',' or ')'", id="an open list"),
        pytest.param("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", id="no list"),
        pytest.param(
            "a x", "unable to parse requirement: found 'x', expected: in, notin, =, ==, !=, gt, lt", id="word"
        ),
        pytest.param("a,", "found '', expected: identifier after ','", id="a comma at the end"),
    ],
)
def test_invalid_label_selectors_raise_the_errors_of_kubernetes(text: str, want: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_labels(text)
    assert caught.value.message == want


def test_an_invalid_number_reports_all_problems() -> None:
    with pytest.raises(ApiError) as caught:
        parse_labels("a>x-")
    text = caught.value.message
    assert text.startswith("unable to parse requirement: [values[0]: Invalid value: \"x-\": for 'Gt'")
    assert ', values[0][a]: Invalid value: "x-": a valid label must' in text


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("metadata.name==a,", [("metadata.name", "a", False)], id="empty terms are skipped"),
        pytest.param("metadata.name!=a\\,b", [("metadata.name", "a,b", True)], id="an escaped comma"),
        pytest.param("a!b=c", [("a!b", "c", False)], id="the first operator counts"),
        pytest.param("=", [], id="an operator alone selects everything"),
    ],
)
def test_field_selectors_are_parsed(text: str, want: list[tuple[str, str, bool]]) -> None:
    assert [(each.field, each.value, each.negated) for each in parse_fields(text, known)] == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\", id="a last backslash"),
        pytest.param("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'", id="name"),
        pytest.param("=a", "unknown field ''", id="no field"),
    ],
)
def test_invalid_field_selectors_raise_the_errors_of_kubernetes(text: str, want: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_fields(text, known)
    assert caught.value.message == want
