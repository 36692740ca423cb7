"""The text format of Protocol Buffers, as far as the conformance tests use it."""

from __future__ import annotations

import pytest

from tests.cel.textproto import Message, Name, parse


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("# none\n", {}, id="a comment"),
        pytest.param("a: 1 b: -2.5e3 c: 0x1F", {"a": [1], "b": [-2500.0], "c": [31]}, id="numbers"),
        pytest.param("a: inf b: true", {"a": [float("inf")], "b": [Name("true")]}, id="words"),
        pytest.param("a: 'x' \"y\"\n'z'", {"a": [b"xyz"]}, id="strings side by side are one"),
        pytest.param(r'a: "\n\x41\101\u00e9\""', {"a": [b'\nAA\xc3\xa9"']}, id="escapes"),
        pytest.param("a { b: 1 } a < b: 2 >", {"a": [{"b": [1]}, {"b": [2]}]}, id="messages"),
        pytest.param("a: [1, 2], b: [{c: 1}]", {"a": [1, 2], "b": [{"c": [1]}]}, id="lists"),
        pytest.param("[x.y/z.T] { a: 1 }", {"[x.y/z.T]": [{"a": [1]}]}, id="an expanded Any"),
    ],
)
def test_text_format_messages_are_parsed(text: str, want: Message) -> None:
    assert parse(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: @", "line 1: can't read '@'"),
        ("a {", "expected the name of a field, got ''"),
        ("1: 2", "expected the name of a field, got '1'"),
        ("a: }", "expected a value, got '}'"),
    ],
)
def test_invalid_messages_are_refused(text: str, want: str) -> None:
    with pytest.raises(ValueError) as problem:
        parse(text)
    assert str(problem.value) == want
