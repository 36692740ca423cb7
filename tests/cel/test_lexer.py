"""Constants in expressions: what Kubernetes v1.36.3 accepts, and the first error otherwise."""

from __future__ import annotations

import pytest

from bayplan.cel.problems import CompileProblem
from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(r"'\u00ff\377\xff\?'", "\xff\xff\xff?", id="escapes of a string"),
        pytest.param(r"b'\377\xff\n'", b"\xff\xff\n", id="escapes of bytes"),
        pytest.param("b'\u00e9\U000f0041'", "\u00e9\U000f0041".encode(), id="characters in bytes"),
        pytest.param("'''a\r\nb\rc'''", "a\nb\nc", id="line ends are normalized"),
        pytest.param(r"r'\n'", "\\n", id="a raw string"),
        pytest.param(r"bR'\n'", b"\\n", id="raw bytes"),
        pytest.param("1e-400", 0.0, id="a double below the smallest one"),
    ],
)
def test_constants_have_the_values_of_kubernetes(text: str, want: object) -> None:
    assert value_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("\u0661", "Syntax error: token recognition error at: '\u0661'", id="a digit of another script"),
        pytest.param(
            r"'\u1_23'", r"Syntax error: token recognition error at: ''\u1_'", id="an underscore in an escape"
        ),
        pytest.param(r"'\x+1'", r"Syntax error: token recognition error at: ''\x+'", id="a sign in an escape"),
        pytest.param(r"'\uD800'", "invalid unicode code point", id="a surrogate"),
        pytest.param(r"'\U00110000'", "invalid unicode code point", id="beyond the last code point"),
        pytest.param(r"b'\u00ff'", "unable to unescape string", id="a character escape in bytes"),
        pytest.param(r"b'\ud800'", "unable to unescape string", id="a surrogate in bytes"),
        pytest.param(
            'rb"a"', "Syntax error: extraneous input '\"a\"' expecting <EOF>", id="prefixes in the wrong order"
        ),
        pytest.param('bB"a" == 1', "Syntax error: mismatched input '\"a\"' expecting <EOF>", id="a prefix twice"),
        pytest.param("1e400", "invalid double literal", id="a double out of range"),
        pytest.param("-1e400", "invalid double literal", id="a negative double out of range"),
        pytest.param("true & true", "Syntax error: token recognition error at: '& '", id="half of an operator"),
    ],
)
def test_invalid_constants_are_refused_as_in_kubernetes(text: str, want: str) -> None:
    with pytest.raises(CompileProblem) as refused:
        value_of(text)
    assert str(refused.value).split("\n")[0].split(": ", 2)[2].partition(": ")[2] == want
