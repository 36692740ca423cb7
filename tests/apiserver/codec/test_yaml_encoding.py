"""YAML as go-yaml writes it: quoting, the order of keys, and line breaks."""

from __future__ import annotations

from typing import cast

import pytest

from bayplan.apiserver.codec.bodies import parse_yaml
from bayplan.apiserver.codec.yaml_encoding import encode_yaml


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("plain", "plain", id="plain text"),
        pytest.param("y", '"y"', id="a word that YAML 1.1 reads as true"),
        pytest.param("", '""', id="empty text"),
        pytest.param("0x1F", '"0x1F"', id="a hexadecimal number"),
        pytest.param("1_000", '"1_000"', id="a number with underscores"),
        pytest.param("12:30", '"12:30"', id="a number to base 60"),
        pytest.param("2026-01-31T12:00:00Z", '"2026-01-31T12:00:00Z"', id="a timestamp"),
        pytest.param("2026-13-01", "2026-13-01", id="text that looks like a date but is not valid"),
        pytest.param("<<", "<<", id="the merge key, which Go's hints don't know"),
        pytest.param("a: b", "'a: b'", id="text that plain style can't hold"),
        pytest.param("a\nb\n", "|\n  a\n  b", id="several lines"),
        pytest.param("a\n\n", "|+\n  a\n", id="line breaks at the end"),
        pytest.param("wait...", "wait...", id="text that ends like a document"),
        pytest.param("a\n...\n", "|\n  a\n  ...", id="a line like the end of a document"),
        pytest.param("a \nb", '"a \\nb"', id="lines that end in spaces"),
        pytest.param([], "[]", id="an empty list"),
        pytest.param({}, "{}", id="an empty map"),
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="true"),
        pytest.param(1.5, "1.5", id="a fraction"),
        pytest.param(2.0, "2", id="a whole number with a point"),
        pytest.param(1000000.0, "1000000", id="a large whole number"),
        pytest.param(1234567.5, "1.2345675e+06", id="a large fraction"),
        pytest.param(0.00001, "1e-05", id="a small fraction"),
    ],
)
def test_strings_are_quoted_only_if_ambiguous_and_numbers_are_formatted_as_in_go(value: object, want: str) -> None:
    assert encode_yaml({"k": value}).decode() == f"k: {want}\n"


@pytest.mark.parametrize(
    ("keys", "want"),
    [
        pytest.param(["b", "a"], ["a", "b"], id="letters"),
        pytest.param(["a10", "a2"], ["a2", "a10"], id="numbers by their size"),
        pytest.param(["ab", "a.b"], ["a.b", "ab"], id="letters after other characters"),
        pytest.param(["a01", "a1"], ["a1", "a01"], id="of equal numbers the shorter one first"),
        pytest.param(["a2", "a01"], ["a01", "a2"], id="leading zeros do not count"),
        pytest.param(
            ["a" + "2" * 5000, "a" + "1" * 5000], ["a" + "1" * 5000, "a" + "2" * 5000], id="very long numbers"
        ),
        pytest.param(["a100", "a10"], ["a10", "a100"], id="a zero after digits in common"),
        pytest.param(["a", "B"], ["B", "a"], id="upper case first"),
        pytest.param(["aa", "a"], ["a", "aa"], id="the shorter one first"),
    ],
)
def test_yaml_keys_are_sorted_naturally_as_in_go(keys: list[str], want: list[str]) -> None:
    assert list(cast("dict[str, object]", parse_yaml(encode_yaml(dict.fromkeys(keys, 1))).value)) == want


def test_encoded_yaml_parses_to_the_same_value() -> None:
    value = {"a": [{"b": "yes", "c": ["no", 1, None]}], 'k:{"name":"c"}': {".": {}}, "long": "word " * 60}
    assert parse_yaml(encode_yaml(value)).value == value
