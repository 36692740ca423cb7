"""JSON in responses: only the first value is read, and errors have the text of Go's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.go_text.json import GoJsonError, decode_first, json_problem


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            '{"a": [1, {"b": null}], "c": -1.5e+3} rest', {"a": [1, {"b": None}], "c": -1500.0}, id="what follows"
        ),
        pytest.param(" [] ]", [], id="an empty list"),
        pytest.param('{"a":{}}', {"a": {}}, id="containers that end together"),
        pytest.param("[[[]]]", [[[]]], id="nested lists"),
        pytest.param('"\\u00e9\\n"', "é\n", id="escapes"),
        pytest.param("01", 0, id="a number ends before the next"),
        pytest.param("true", True, id="a literal"),
    ],
)
def test_the_first_json_value_is_decoded_and_the_rest_ignored(text: str, want: object) -> None:
    assert decode_first(text.encode()) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", "EOF", id="nothing"),
        pytest.param(" \n", "EOF", id="space"),
        pytest.param("{", "unexpected EOF", id="an object is cut"),
        pytest.param("[1, 2", "unexpected EOF", id="a list is cut"),
        pytest.param('"abc', "unexpected EOF", id="a text is cut"),
        pytest.param("tru", "unexpected EOF", id="a literal is cut"),
        pytest.param("<html>", "invalid character '<' looking for beginning of value", id="a web page"),
        pytest.param("ä", "invalid character 'Ã' looking for beginning of value", id="Go looks at bytes"),
        pytest.param(
            '{"a":1,}', "invalid character '}' looking for beginning of object key string", id="a comma too many"
        ),
        pytest.param(
            "{1:2}", "invalid character '1' looking for beginning of object key string", id="a key that is not a string"
        ),
        pytest.param('{"a" 1}', "invalid character '1' after object key", id="no colon"),
        pytest.param('{"a":1 "b"}', "invalid character '\"' after object key:value pair", id="no comma between pairs"),
        pytest.param("[1 2]", "invalid character '2' after array element", id="no comma between elements"),
        pytest.param("[1,]", "invalid character ']' looking for beginning of value", id="a comma too many in a list"),
        pytest.param("trux", "invalid character 'x' in literal true (expecting 'e')", id="an invalid literal"),
        pytest.param("-x", "invalid character 'x' in numeric literal", id="a sign without a number"),
        pytest.param("1.x", "invalid character 'x' after decimal point in numeric literal", id="no decimals"),
        pytest.param("1e+x", "invalid character 'x' in exponent of numeric literal", id="no exponent"),
        pytest.param('"a\nb"', "invalid character '\\n' in string literal", id="a line break in a text"),
        pytest.param('"\\q"', "invalid character 'q' in string escape code", id="an unknown escape"),
        pytest.param('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape", id="a bad code"),
        pytest.param("'", "invalid character '\\'' looking for beginning of value", id="an apostrophe"),
    ],
)
def test_invalid_json_raises_the_errors_of_go(text: str, want: str) -> None:
    with pytest.raises(GoJsonError) as raised:
        decode_first(text.encode())
    assert str(raised.value) == want


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN, st.sampled_from(["", " tail", "\n{}"]))
def test_generated_values_are_decoded_despite_trailing_text(value: Any, tail: str) -> None:
    # After a number, a separator is needed; all other values end by themselves.
    assert decode_first((json.dumps(value) + tail).encode()) == value


@given(PLAIN.filter(lambda value: isinstance(value, list | dict | str)), st.data())
def test_truncated_json_fails_with_eof(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(GoJsonError, match="EOF"):
        decode_first(cut.encode())


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(' {"a": [1]} ', "", id="fine"),
        pytest.param("", "unexpected end of JSON input", id="nothing"),
        pytest.param('{"a": [1]', "unexpected end of JSON input", id="cut"),
        pytest.param("{} x", "invalid character 'x' after top-level value", id="trailing text"),
        pytest.param("{'a': 1}", "invalid character '\\'' looking for beginning of object key string", id="quotes"),
        pytest.param("[" * 10_001, "exceeded max depth", id="too deep"),
    ],
)
def test_json_problem_reports_the_error_of_unmarshal(text: str, want: str) -> None:
    assert json_problem(text) == want


def test_json_that_is_nested_deeper_than_go_allows_is_refused() -> None:
    with pytest.raises(GoJsonError, match="exceeded max depth"):
        decode_first(b"[" * 10_001 + b"]" * 10_001)


def test_json_that_is_nested_too_deeply_for_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit depends on Python's version: 3.11 refuses 1,000 nested lists, 3.13 accepts 9,000.
    def loads(text: str) -> object:
        raise RecursionError

    monkeypatch.setattr("json.loads", loads)
    with pytest.raises(GoJsonError, match="exceeded max depth"):
        decode_first(b"[[]]")
