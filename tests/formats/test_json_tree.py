"""JSON without loss of information, and Go's error messages for invalid JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.go_text.json import GoJsonError
from bayplan.formats.json_tree import (
    JsonNumber,
    JsonObject,
    JsonValue,
    parse_json,
    plain_value,
)

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_parsing_preserves_duplicate_keys_order_and_number_text() -> None:
    assert parse_json('{"b": 1e3, "a": [1.0], "b": -0}') == JsonObject(
        [("b", JsonNumber("1e3")), ("a", [JsonNumber("1.0")]), ("b", JsonNumber("-0"))]
    )


def test_plain_value_uses_the_last_value_of_a_duplicate_key() -> None:
    assert plain_value(parse_json('{"a": 1, "a": 2.5}')) == {"a": 2.5}


@given(_VALUES)
def test_json_written_by_python_parses_to_the_same_value(value: JsonValue) -> None:
    assert plain_value(parse_json(json.dumps(value))) == value
    assert plain_value(parse_json(json.dumps(value, ensure_ascii=False, indent=1))) == value


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert parse_json(r'["\ud83d\ude00", "\ud83d", "\ude00x"]') == ["\U0001f600", "\ufffd", "\ufffdx"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a"', "unexpected end of JSON input"),
        ('{"a": "x', "unexpected end of JSON input"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b": 2}', "invalid character '\"' after object key:value pair"),
        ('{"a": 01}', "invalid character '1' after object key:value pair"),
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1]x", "invalid character 'x' after top-level value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("[\u00e9]", "invalid character '\u00c3' looking for beginning of value"),
        ("[-]", "invalid character ']' in numeric literal"),
        ("[-", "invalid character ' ' in numeric literal"),
        ("[1.]", "invalid character ']' after decimal point in numeric literal"),
        ("[1.", "invalid character ' ' after decimal point in numeric literal"),
        ("[1e]", "invalid character ']' in exponent of numeric literal"),
        ("[1e+", "invalid character ' ' in exponent of numeric literal"),
        ("[trux]", "invalid character 'x' in literal true (expecting 'e')"),
        ("[nul", "invalid character ' ' in literal null (expecting 'l')"),
        ('["\t"]', "invalid character '\\t' in string literal"),
        ('["\\q"]', "invalid character 'q' in string escape code"),
        ('["\\', "invalid character ' ' in string escape code"),
        ('["\\u12x4"]', "invalid character 'x' in \\u hexadecimal character escape"),
    ],
)
def test_invalid_json_is_refused_with_the_messages_of_go(text: str, want: str) -> None:
    with pytest.raises(GoJsonError) as refused:
        parse_json(text)
    assert str(refused.value) == want
