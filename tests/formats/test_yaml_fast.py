"""The fast YAML parser gives the same result as the slow one, or none at all."""

import importlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.formats import yaml_fast
from bayplan.formats.yaml_nodes import parse_slowly
from bayplan.formats.yaml_text import Parsed, YamlError, parse
from tests.formats.yaml_writer import DOCUMENTS, STYLES, Style, write

MANY = settings(max_examples=300, deadline=None)


def _outcome(text: str, *, slowly: bool) -> list[Parsed] | None:
    try:
        found = list(parse_slowly(text) if slowly else parse(text))
    except YamlError:
        return None
    return [Parsed(each.value, each.line, each.duplicates, each.item_lines) for each in found]


def _typed(value: object) -> object:
    """Make plain data compare by type as well: True is not 1, and 1 not 1.0."""
    if isinstance(value, dict):
        return [(key, _typed(item)) for key, item in value.items()]
    return [_typed(item) for item in value] if isinstance(value, list) else (type(value).__name__, value)


def check(text: str) -> None:
    fast, slow = _outcome(text, slowly=False), _outcome(text, slowly=True)
    assert fast == slow
    if fast is not None and slow is not None:
        assert _typed([each.value for each in fast]) == _typed([each.value for each in slow])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: b\nc: [1, x, true, ~, -5]\nd: {e: 'yes it is'}", True, id="a common document"),
        pytest.param("---\n# x\na: 10.131.1.140\nb: 1Gi\nc: 2024-01-01T00:00:00Z\n", True, id="addresses and times"),
        pytest.param("a: '965948204'\nimage: nginx:1.25\n", True, id="numbers in quotes, tags of images"),
        pytest.param("a: &x {b: 1}\nc: *x", True, id="aliases"),
        pytest.param("a: |\n  #!/bin/sh\n  x && y\n", True, id="scripts"),
        pytest.param("a: yes", False, id="words that are booleans to kubectl"),
        pytest.param("a: 'yes'", False, id="and what looks like them"),
        pytest.param("on: b", False, id="words as keys"),
        pytest.param("1: a\ntrue: b", False, id="keys that Python does not distinguish"),
        pytest.param("2: a\n2.0: b", False, id="equal numbers as keys"),
        pytest.param("a: 0777", False, id="octal"),
        pytest.param("a: 1_000", False, id="underscores"),
        pytest.param("a: 1.5", False, id="floats"),
        pytest.param("a: [1, 1e3]", False, id="exponents"),
        pytest.param("a: 9223372036854775808", False, id="past 64 bits"),
        pytest.param("1.5: a", False, id="floats as keys"),
        pytest.param("true: a", False, id="booleans as keys"),
        pytest.param("a: .inf", False, id="infinities"),
        pytest.param("a: !!str 5", False, id="tags"),
        pytest.param('{"a":!!str 5}', False, id="tags after a colon"),
        pytest.param("a: {<<: {b: 1}}", False, id="merge keys"),
        pytest.param("a: 1\na: 2", False, id="duplicates"),
        pytest.param("%YAML 1.1\n---\na: b", False, id="directives"),
        pytest.param("a: b\n---\nc: d", False, id="several documents"),
        pytest.param("# nothing", False, id="no document"),
        pytest.param("# nothing\n\n  # at all: ü\n", False, id="only comments"),
        pytest.param("# \x07\n", False, id="a character that YAML forbids in a comment"),
        pytest.param("a: [", False, id="broken"),
        pytest.param("[" * 200 + "]" * 200, False, id="deep"),
    ],
)
def test_the_fast_parser_accepts_only_unambiguous_documents(text: str, want: bool) -> None:
    assert (yaml_fast.parse(text) is not None) == want
    check(text)


PLAIN = st.one_of(
    st.text(alphabet="0123456789abefoxyYnNsSuUlLtTrReE+-._:~", max_size=8),
    st.text(alphabet="01789xXoObB_.eE+-", max_size=8),
    st.sampled_from(["yes", "Off", "null", "TRUE", "1:30", "0o17", "-0", "+5", "1e400", "9" * 19, "a b", "x#y", "é"]),
)
QUOTED = PLAIN.map(lambda text: f"'{text}'")
SCALAR = st.one_of(PLAIN, QUOTED)


@MANY
@given(st.lists(st.tuples(SCALAR, SCALAR), min_size=1, max_size=3), st.integers(0, 4))
def test_fast_and_slow_parser_agree_on_scalars(pairs: list[tuple[str, str]], form: int) -> None:
    if form == 0:
        text = "".join(f"{key}: {value}\n" for key, value in pairs)
    elif form == 1:
        text = "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
    elif form == 2:
        text = "{" + ", ".join(f'"{index}":{value}' for index, (_, value) in enumerate(pairs)) + "}"
    elif form == 3:
        text = "".join(f"- {value}\n- {key}\n" for key, value in pairs)
    else:
        text = "a:\n" + "".join(f"  - {key}: # {value}\n      {value}\n" for key, value in pairs)
    check(text)


@MANY
@given(DOCUMENTS, STYLES, st.sampled_from(["", "---\n", "# x\n\n--- # y\n"]))
def test_fast_and_slow_parser_agree_on_generated_documents(
    document: dict[str, object], style: Style, before: str
) -> None:
    check(before + write(document, style))


@MANY
@given(
    st.lists(st.sampled_from([*"{}[]:-?,&*!|>'\"%@#ax1 \n", "a: ", "- ", "&a ", "*a", "k: v\n", "\n  "]), max_size=30)
)
def test_fast_and_slow_parser_agree_on_arbitrary_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert _outcome(text, slowly=False) in (_outcome(text, slowly=True), _without_empty(text))


def _without_empty(text: str) -> list[Parsed] | None:
    found = _outcome(text, slowly=True)
    return None if found is None else [each for each in found if each.value is not None]


def test_the_slow_parser_is_used_without_ryaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ryaml", None)
    try:
        module = importlib.reload(yaml_fast)
        assert not module.IS_INSTALLED
        assert module.parse("a: b") is None
        assert [each.value for each in parse("a: b")] == [{"a": "b"}]
    finally:
        monkeypatch.undo()
        assert importlib.reload(yaml_fast).IS_INSTALLED
