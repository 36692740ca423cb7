"""Templates of scheduler_perf: values, functions, and templates that are refused."""

from __future__ import annotations

import pytest

from bayplan.base.errors import InputError
from bayplan.scenarios.go_templates import Value, render

VALUES: dict[str, Value] = {"Index": 7, "Count": 10, "perGroup": 3, "name": "gang", "text": "4"}
CASES = [
    ("a value", "a-{{.Index}}-b", "a-7-b"),
    ("spaces and trimmed whitespace", "{{ .Index }}{{- .name -}}", "7gang"),
    ("whole division cuts off", "{{DivideInt .Index .perGroup}}", "2"),
    ("a division with a fraction", "{{DivideFloat .Index 2}}", "3.5"),
    ("the remainder", "{{Mod .Index .perGroup}}", "1"),
    ("a function of a function", "{{AddInt 1 (MultiplyInt (Mod .Index 3) 5)}}", "6"),
    ("text that is a number", "{{SubtractInt .text 1}}", "3"),
    ("more than two numbers", "{{AddInt 1 2 3 4}}", "10"),
    ("a quoted text", '{{"x"}}', "x"),
]


@pytest.mark.parametrize(("template", "want"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_templates_render_as_in_go(template: str, want: str) -> None:
    assert render(template, VALUES, name="t") == want


WRONG = [
    (
        "a value that is not there",
        "\n{{.Nothing}}",
        ("t:2 template {{.Nothing}}: expected a number or one of .Index, .Count, "),
    ),
    (
        "a division by zero",
        "{{DivideInt 1 0}}",
        ("t:1 template {{DivideInt 1 0}}: expected two numbers, the second not 0, got 1 and 0"),
    ),
    ("a condition", "{{if .Index}}", "t:1 template {{if .Index}}: expected a number or one of"),
    (
        "an open parenthesis",
        "{{AddInt 1 (Mod 1 2}}",
        "t:1 template {{AddInt 1 (Mod 1 2}}: expected a value, got the end",
    ),
    ("text that is no number", '{{AddInt "a" 1}}', "t:1 template {{AddInt \"a\" 1}}: expected a number, got 'a'"),
    ("one argument", "{{AddInt 1}}", "t:1 template {{AddInt 1}}: expected at least two arguments of AddInt, got 1"),
    (
        "a second value",
        "{{.Index .Count}}",
        ("t:1 template {{.Index .Count}}: expected the end of the expression, got '.Count'"),
    ),
]


@pytest.mark.parametrize(("template", "message"), [pytest.param(*case[1:], id=case[0]) for case in WRONG])
def test_invalid_templates_are_refused(template: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        render(template, VALUES, name="t")
    assert str(caught.value).startswith(message)
