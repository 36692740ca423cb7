"""JSON texts: single and multiple values, splitting of lists, line numbers, duplicate fields."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.formats.json_text import ItemList, JsonError, Value, duplicate_keys, parse

FEW = settings(max_examples=60, deadline=None)


def _values(text: str) -> list[tuple[object, int]]:
    parsed = parse(text.encode())
    values = parsed if isinstance(parsed, list) else parsed.items if isinstance(parsed, ItemList) else [parsed]
    return [(each.value, each.line) for each in values]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('{"a": 1}', [({"a": 1}, 0)], id="one object"),
        pytest.param('\n\n {"a": 1}\n', [({"a": 1}, 2)], id="white space around it"),
        pytest.param('{"a": 1}\n{"a": 2}\n\n{"a": 3}', [({"a": 1}, 0), ({"a": 2}, 1), ({"a": 3}, 3)], id="one a line"),
        pytest.param('{"a": 1} {"a":\n2}\n{"a": 3}', [({"a": 1}, 0), ({"a": 2}, 0), ({"a": 3}, 2)], id="however"),
        pytest.param(
            '{"kind": "PodList",\n"items": [\n{"a": 1},\n\n{"a":\n2}]}', [({"a": 1}, 2), ({"a": 2}, 4)], id="a list"
        ),
        pytest.param('{"kind": "Basket", "items": [1]}', [({"kind": "Basket", "items": [1]}, 0)], id="no list kind"),
        pytest.param('{"kind": "List", "items": null}', [({"kind": "List", "items": None}, 0)], id="no items"),
        pytest.param('{"kind": "List", "items": []}', [({"kind": "List", "items": []}, 0)], id="an empty list"),
    ],
)
def test_json_texts_are_parsed_into_values_with_lines(text: str, want: list[tuple[object, int]]) -> None:
    assert _values(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(b'{"a": 1,\n"b": }', (1, "invalid character"), id="a value that is missing"),
        pytest.param(b'{"a": [1,\n2', (1, "unexpected end of the text"), id="the end too early"),
        pytest.param(b'{"a": 1}\n{"a": x}', (1, "expecting value"), id="in the second of several"),
        pytest.param(b'{"a": 1}\n\n{"a": "\xff"}', (2, "UTF-8"), id="bytes that are not text"),
        pytest.param(b'{"a": NaN}', (0, "invalid character"), id="not a number"),
        pytest.param(b'{"a": 1} {"a": NaN}', (0, "NaN"), id="not a number, later"),
        pytest.param(b"[" * 100_000, (0, "deeply"), id="nested too deeply"),
        pytest.param(b'{"kind": "List", "items": [{"a": 1},\n{"a": 01}]}', (1, "number"), id="in an item"),
        pytest.param(b'{"a": 1e999}', (0, "out of range"), id="a number too large"),
    ],
)
def test_syntax_errors_have_the_correct_line(text: bytes, want: tuple[int, str]) -> None:
    with pytest.raises(JsonError, match=want[1]) as caught:
        parse(text)
    assert caught.value.line == want[0]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('{"a": 1, "b": {"a": 2}}', [], id="the same name in two objects"),
        pytest.param('{"a": 1, "b": 2, "a": 3}', ["a"], id="twice in one"),
        pytest.param('{"x": [{"a": 1, "a": 2, "a": 3}]}', ["a", "a"], id="three times"),
        pytest.param('{"a" : 1, "a"\n: 2}', ["a"], id="white space before the colon"),
        pytest.param('{"a": ":", "b": "\\":", "c": "x\\":y"}', [], id="colons in texts"),
        pytest.param('{"a": "\\u003ax", "b": 1, "b": 2}', ["b"], id="an escaped colon hides nothing"),
    ],
)
def test_duplicate_keys_are_found_with_unusual_spacing_and_escapes(text: str, want: list[str]) -> None:
    value = parse(text.encode())
    assert isinstance(value, Value)
    assert duplicate_keys(value, msgspec.json.encode(value.value)) == want


TEXTS = st.text(alphabet='ab":\\ \u00e9\n', max_size=5)
PAIRS = st.lists(st.tuples(TEXTS, st.one_of(TEXTS, st.integers(0, 9))), max_size=5)


@FEW
@given(PAIRS, st.sampled_from([":", ": ", " :"]))
def test_duplicate_keys_match_the_repeated_names(pairs: list[tuple[str, object]], colon: str) -> None:
    body = ", ".join(
        f"{msgspec.json.encode(key).decode()}{colon}{msgspec.json.encode(item).decode()}" for key, item in pairs
    )
    value = parse(f"{{{body}}}".encode())
    assert isinstance(value, Value)
    keys = [key for key, _ in pairs]
    want = [key for index, key in enumerate(keys) if key in keys[:index]]
    assert duplicate_keys(value, msgspec.json.encode(value.value)) == want


@pytest.mark.parametrize(
    ("item", "want"),
    [
        pytest.param(b'{"a": "b"}', {"a": "b"}, id="plain text"),
        pytest.param('{"a": "é"}'.encode(), {"a": "é"}, id="other letters"),
        pytest.param(b'{"a": "\\u00e9\\ud83d\\ude00"}', {"a": "é😀"}, id="escapes"),
        pytest.param(b'{"a": 1e300, "uid": "1e5f2e999"}', {"a": 1e300, "uid": "1e5f2e999"}, id="large numbers"),
    ],
)
def test_list_items_have_their_value_line_and_text(item: bytes, want: object) -> None:
    parsed = parse(b'{"kind": "List", "items": [\n' + item + b",\n" + item + b"]}")
    assert isinstance(parsed, ItemList)
    assert [(each.value, each.line, each.text) for each in parsed.items] == [(want, 1, item), (want, 2, item)]


@pytest.mark.parametrize(
    "item", [b'{"a": 1e999}', b'{"a": "\xff"}', b'{"a": "\\ud800"}'], ids=["no number", "no UTF-8", "half a letter"]
)
def test_invalid_list_items_are_refused_when_the_list_is_parsed(item: bytes) -> None:
    with pytest.raises(JsonError):
        parse(b'{"kind": "List", "items": [\n' + item + b"]}")
