"""YAML texts: structure, anchors and merge keys, duplicates, lines of errors, limits."""

from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.formats.yaml_nodes import _construct, compose
from bayplan.formats.yaml_text import MAX_DEPTH, Parsed, YamlError, parse
from tests.formats.yaml_writer import DATA, DOCUMENTS, STYLES, Style, write

DEEP = MAX_DEPTH + 10
FEW = settings(max_examples=60, deadline=None)


def one(text: str) -> Parsed:
    (parsed,) = parse(text)
    return parsed


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: {b: [1, two, 'no']}", {"a": {"b": [1, "two", "no"]}}, id="flow style"),
        pytest.param("a:\n- b: 1\n  c: x\n- 2", {"a": [{"b": 1, "c": "x"}, 2]}, id="a list at its parent's margin"),
        pytest.param("a: |\n  yes\n  no\n", {"a": "yes\nno\n"}, id="literal text"),
        pytest.param("a: >-\n  x\n  y", {"a": "x y"}, id="folded text"),
        pytest.param("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}, id="an alias"),
        pytest.param("a: &x 1\nb: *x\nc: &x 2\nd: *x", {"a": 1, "b": 1, "c": 2, "d": 2}, id="an anchor twice"),
        pytest.param("d:\n  <<: {b: 1, c: 2}\n  b: 3", {"d": {"b": 3, "c": 2}}, id="a merge key, then a field"),
        pytest.param("d:\n  b: 3\n  <<: {b: 1, c: 2}", {"d": {"b": 1, "c": 2}}, id="a field, then a merge key"),
        pytest.param(
            "p: &p {b: 1}\nq: &q {b: 2, c: 3}\nd: {<<: [*p, *q]}",
            {"p": {"b": 1}, "q": {"b": 2, "c": 3}, "d": {"b": 1, "c": 3}},
            id="of a merged list the first wins",
        ),
        pytest.param("d:\n  '<<': 1", {"d": {"<<": 1}}, id="a quoted merge key is a field"),
        pytest.param("on: yes\n'on': no", {"true": True, "on": False}, id="quotes distinguish on from true"),
        pytest.param("a: ! 5", {"a": "5"}, id="the tag ! makes a string"),
    ],
)
def test_flow_style_aliases_and_merge_keys_are_parsed(text: str, want: object) -> None:
    assert one(text).value == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: 1\na: 2", ({"a": 2}, [(1, "a")]), id="a field twice"),
        pytest.param("a: {b: 1, c: 2, b: 3}", ({"a": {"b": 3, "c": 2}}, [(0, "b")]), id="twice in flow style"),
        pytest.param("on: 1\n\n'true': 2", ({"true": 2}, [(2, "true")]), id="twice after resolution"),
        pytest.param("a: &x 1\na: *x", ({"a": 1}, [(1, "a")]), id="twice with an alias"),
        pytest.param("a: 1\n<<: {a: 2}", ({"a": 2}, []), id="a merge key is not a second time"),
    ],
)
def test_the_last_duplicate_key_wins_and_duplicates_are_reported(text: str, want: object) -> None:
    parsed = one(text)
    assert (parsed.value, parsed.duplicates) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: 1\nb: [1, 2\n", 1, id="a list that does not end"),
        pytest.param("a: 1\nb: 'x\nc: 2\nd: 3\n", 1, id="a quote that does not close"),
        pytest.param("a:\n\tb: c", 1, id="a tab"),
        pytest.param("a: b\nc: d: e", 1, id="two colons"),
        pytest.param("a: b\n  c: d", 1, id="a field below a value"),
        pytest.param("a: 1\nb: {{ .Values.x }}\n", 1, id="a template"),
        pytest.param("a: 1\n~: 2", 1, id="a null key"),
        pytest.param("a: 1\n\nb: .inf", 2, id="an infinity"),
        pytest.param("a: 1\n? [x]\n: 2", 1, id="a list as key"),
        pytest.param("a: 1\nb: *x", 1, id="an unknown alias"),
        pytest.param("a: 1\nb: !!int x", 1, id="a tag that does not fit"),
        pytest.param("a: 1\nb: &x [*x]", 1, id="an anchor inside itself"),
        pytest.param("a: 1\nb: &x [1]\nc:\n  <<: *x", 3, id="merging a list"),
        pytest.param("a: 1\nb: \x07", 1, id="a control character"),
    ],
)
def test_syntax_errors_have_the_correct_line(text: str, want: int) -> None:
    with pytest.raises(YamlError) as caught:
        list(parse(text))
    assert caught.value.line == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a:\n\tb: c", "spaces", id="tabs"),
        pytest.param("a: 1\nb: {{ .Values.x }}: 3\n", "template", id="templates"),
        pytest.param("a: b: c", "quotes", id="colons"),
    ],
)
def test_syntax_errors_have_a_hint(text: str, want: str) -> None:
    with pytest.raises(YamlError) as caught:
        list(parse(text))
    assert want in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="open lists"),
        pytest.param("[" * DEEP + "]" * DEEP, id="lists in lists"),
        pytest.param("{a: " * DEEP + "}" * DEEP, id="objects in objects"),
        pytest.param("- " * 100_000 + "a", id="block lists on one line"),
        pytest.param("? " * 50_000, id="complex keys"),
        pytest.param("\n".join(" " * depth + "a:" for depth in range(DEEP)), id="blocks"),
        pytest.param("".join(f"{' ' * depth}-\n{' ' * depth} a:\n" for depth in range(DEEP)), id="two levels a column"),
    ],
)
def test_nesting_has_a_limit(text: str) -> None:
    with pytest.raises(YamlError, match="nested more than 256 deep"):
        list(parse(text))


def test_nesting_up_to_the_limit_is_read() -> None:
    value: object = one("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
    for _ in range(MAX_DEPTH - 1):
        assert isinstance(value, list)
        (value,) = value
    assert value == []


def test_exponential_aliases_are_refused() -> None:
    rows = ["x0: &x0 [" + ", ".join(["lol"] * 10) + "]"]
    rows += [f"x{n}: &x{n} [" + ", ".join([f"*x{n - 1}"] * 10) + "]" for n in range(1, 10)]
    with pytest.raises(YamlError, match="mostly aliases"):
        list(parse("\n".join(rows)))


def test_several_documents_have_their_lines() -> None:
    parsed = list(parse("# first\na: 1\n---\n---\nb: 2\n...\n---\n- c\n"))
    assert [(each.value, each.line) for each in parsed] == [({"a": 1}, 1), (None, 3), ({"b": 2}, 4), (["c"], 7)]


def test_list_items_have_their_lines() -> None:
    assert one("kind: List\nitems:\n- a: 1\n  b: 2\n\n- a: 3\n").item_lines == [2, 5]


@FEW
@given(DOCUMENTS, STYLES)
def test_written_documents_are_read_back(document: dict[str, object], style: Style) -> None:
    assert one(write(document, style)).value == document


@FEW
@given(DATA, STYLES)
def test_careful_and_fast_composition_agree(value: object, style: Style) -> None:
    text = write({"a": value}, style)
    careful = [_construct(node, careful=True) for node in compose(text, careful=True)]
    assert [(each.value, each.duplicates) for each in careful] == [(one(text).value, [])]


@FEW
@given(DOCUMENTS, STYLES)
def test_the_document_structure_matches_pyyaml(document: dict[str, object], style: Style) -> None:
    """The pure Python parser of PyYAML, another implementation of the grammar, sees the same lists and fields."""
    text = write(document, style)
    theirs = yaml.load(text, Loader=yaml.BaseLoader)
    assert _shape(one(text).value) == _shape(theirs)


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()]
    if isinstance(value, list):
        return tuple(_shape(item) for item in value)
    return ""


@FEW
@given(
    st.lists(
        st.sampled_from([*"{}[]:-?,&*!|>'\"%@`#ax1 \n\t", "a: ", "- ", "&a ", "*a", "<<: ", "!!int "]), max_size=40
    )
)
def test_arbitrary_text_raises_only_yaml_error(parts: list[str]) -> None:
    with suppress(YamlError):
        list(parse("".join(parts)))
