"""Plain scalars, keys and tags have the same meaning as in kubectl."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.formats.yaml_scalars import HINTS, KEYS, VALUES, Scalar, json_value, resolve, tagged_value
from bayplan.formats.yaml_text import YamlError, parse


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("yes", True, id="yes is true"),
        pytest.param("y", True, id="y is true"),
        pytest.param("Off", False, id="Off is false"),
        pytest.param("yEs", "yEs", id="mixed case is a string"),
        pytest.param("", None, id="nothing is null"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("0777", 511, id="a leading zero is octal"),
        pytest.param("0o17", 15, id="0o is octal"),
        pytest.param("08", 8, id="a digit outside octal makes a decimal"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("1_000", 1000, id="underscores are dropped"),
        pytest.param("1:30", "1:30", id="base 60 is a string"),
        pytest.param("190:20:30.15", "190:20:30.15", id="base 60 with a fraction is a string"),
        pytest.param("2001-12-14T21:59:43Z", "2001-12-14T21:59:43Z", id="a timestamp is a string"),
        pytest.param("2001-01-01", "2001-01-01", id="a date is a string"),
        pytest.param("1.5", 1.5, id="a float"),
        pytest.param("1.0", 1, id="a whole float is an integer"),
        pytest.param("1e3", 1000, id="an exponent makes a float, and it is whole"),
        pytest.param("1e400", "1e400", id="too large for a float: a string"),
        pytest.param(".5_0", 0.5, id="underscores after a point"),
        pytest.param("100m", "100m", id="a quantity"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the largest integer"),
        pytest.param("9223372036854775808", float(2**63), id="one more is a float"),
        pytest.param("-" + "9" * 30, -1e30, id="thirty digits"),
        pytest.param("9" * 5000, "9" * 5000, id="more digits than Python reads"),
        pytest.param("=", "=", id="the value tag of YAML 1.1 is a string"),
    ],
)
def test_plain_scalars_resolve_as_in_kubectl(text: str, want: Scalar) -> None:
    got = VALUES[text]
    assert (got, type(got)) == (want, type(want))


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".NAN"])
def test_infinities_and_nan_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_value(resolve(text))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("on", "true", id="on is the field true"),
        pytest.param("NO", "false", id="NO is the field false"),
        pytest.param("0x1f", "31", id="integers in decimal"),
        pytest.param("1.50", "1.5", id="floats without trailing zeros"),
        pytest.param("1e6", "1e+06", id="floats from a million on with an exponent"),
        pytest.param("0.1", "0.1", id="floats with the digits of a float32"),
        pytest.param("1e39", ".inf", id="floats past a float32"),
        pytest.param("app", "app", id="text unchanged"),
    ],
)
def test_keys_are_converted_to_strings_as_in_kubectl(text: str, want: str) -> None:
    assert KEYS[text] == want


@pytest.mark.parametrize("text", ["~", "", "null", "18446744073709551615"])
def test_keys_without_a_string_form_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="key"):
        KEYS[text]


@pytest.mark.parametrize(
    ("tag", "text", "want"),
    [
        pytest.param("str", "yes", "yes", id="str keeps the text"),
        pytest.param("int", "0x10", 16, id="int reads the text"),
        pytest.param("float", "3", 3, id="float of an integer is whole again"),
        pytest.param("binary", "aGVsbG8=", "hello", id="binary is base64"),
        pytest.param("binary", "aGVs\nbG8=", "hello", id="binary may have line breaks"),
        pytest.param("timestamp", "2001-01-01", "2001-01-01", id="timestamp keeps the text"),
        pytest.param("binary", "//79", "\ufffd\ufffd\ufffd", id="binary data that is not text"),
    ],
)
def test_explicit_tags_convert_values(tag: str, text: str, want: Scalar) -> None:
    assert json_value(tagged_value(f"tag:yaml.org,2002:{tag}", text)) == want


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("int", "x"),
        ("bool", "1"),
        ("null", "x"),
        ("binary", "***"),
        ("timestamp", "x"),
        ("float", "18446744073709551615"),
    ],
)
def test_values_that_do_not_match_their_tag_are_refused(tag: str, text: str) -> None:
    with pytest.raises(ValueError, match="!!"):
        tagged_value(f"tag:yaml.org,2002:{tag}", text)


def _same(ours: object, theirs: object) -> bool:
    """Compare plain data; integers that don't fit 64 bits are floats, which JSON text doesn't show."""
    if isinstance(theirs, dict):
        return (
            isinstance(ours, dict)
            and ours.keys() == theirs.keys()
            and all(_same(ours[key], item) for key, item in theirs.items())
        )
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(theirs, int) and not isinstance(theirs, bool) and not -(2**63) <= theirs < 2**63:
        return isinstance(ours, float) and ours == float(theirs)
    return type(ours) is type(theirs) and ours == theirs


RECORDED = json.loads((Path(__file__).parent / "data" / "yaml_answers.json").read_text())["cases"]

STRICTER = {"{a: 1}{b: 2}": "kubectl drops what follows the first document without a word"}
LAXER = {'a: "\\/"': "libyaml has learned JSON's escaped slash since it was ported"}


@pytest.mark.parametrize("case", RECORDED, ids=[case["text"] for case in RECORDED])
def test_parsed_yaml_matches_recorded_kubectl_results(case: dict[str, object]) -> None:
    text = str(case["text"])
    try:
        parsed = [each.value for each in parse(text)]
    except YamlError:
        assert "error" in case or text in STRICTER
        return
    assert "value" in case or text in LAXER
    if "value" in case:
        assert len(parsed) <= 1
        assert _same(parsed[0] if parsed else None, case["value"])


@settings(deadline=None)
@given(st.text(alphabet="0123456789abefoxyYnNsSuUlLtTrReE+-._:~", max_size=8))
def test_booleans_nulls_and_integers_match_yaml_1_1(text: str) -> None:
    """Every boolean, null and decimal integer of PyYAML's YAML 1.1 resolver has the same value here."""
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False)).removeprefix("tag:yaml.org,2002:")
    value = resolve(text)
    if tag == "bool":
        assert isinstance(value, bool)
        assert value is loader.construct_yaml_bool(yaml.ScalarNode("", text))
    elif tag == "null":
        assert value is None
    elif tag == "int" and ":" not in text and text.replace("_", "").lstrip("+-").isdigit():
        want = loader.construct_yaml_int(yaml.ScalarNode("", text))
        assert value == want
    elif tag == "str" and not any(character.isdigit() for character in text) and text not in ("y", "Y", "n", "N"):
        assert value == text or (isinstance(value, float) and not math.isfinite(value))


@settings(deadline=None)
@given(st.text(min_size=1))
def test_text_without_a_hinted_first_character_is_a_string(text: str) -> None:
    if text[0] not in HINTS:
        assert VALUES[text] == text
