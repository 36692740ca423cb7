"""JSON as Go's encoder writes it."""

import pytest

from bayplan.base.go_text.json import go_json, go_map


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}', id="keys are sorted, no spaces"),
        pytest.param({"é": 0, "z": 0, "Z": 0}, '{"Z":0,"z":0,"é":0}', id="keys are sorted by bytes"),
        pytest.param("a<b & c>d", r'"a\u003cb \u0026 c\u003ed"', id="HTML is escaped"),
        pytest.param("\u2028\u2029é", '"\\u2028\\u2029é"', id="line separators are escaped, other letters are not"),
        pytest.param('"\\/\t\n\x01\x7f', '"\\"\\\\/\\t\\n\\u0001\x7f"', id="control characters but DEL are escaped"),
        pytest.param({"<": "&"}, r'{"\u003c":"\u0026"}', id="keys are escaped too"),
    ],
)
def test_go_json_sorts_keys_and_escapes_like_go(value: object, want: str) -> None:
    assert go_json(value) == want


def test_whole_numbers_beyond_64_bits_are_printed_as_floats() -> None:
    assert go_map([-(2**63), 2**63]) == "[-9223372036854775808 9.223372036854776e+18]"
