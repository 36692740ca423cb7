"""Request bodies: JSON with repeated keys, Go's errors for broken JSON, YAML as Kubernetes reads it."""

from __future__ import annotations

import pytest

from bayplan.apiserver.codec import bodies
from bayplan.apiserver.codec.bodies import BodyError, parse_json, parse_yaml, summarize


def test_the_last_duplicate_json_key_wins_and_duplicates_are_reported() -> None:
    parsed = parse_json(b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":{"e":1,"e":2}}]}')
    assert parsed[:2] == (
        {"a": {"b": 2}, "c": [{"d": {"e": 2}}]},
        [f'duplicate field "{path}"' for path in ("a.b", "c[0].d", "c[0].d.e")],
    )
    assert isinstance(parsed.value, dict)
    assert type(parsed.value["a"]) is dict


@pytest.mark.parametrize("colon", ["\\u003a", "\\u003A"])
def test_duplicate_json_keys_with_an_escaped_colon_are_reported(colon: str) -> None:
    parsed = parse_json(f'{{"a{colon}b":1,"a{colon}b":2}}'.encode())
    assert parsed[:2] == ({"a:b": 2}, ['duplicate field "a:b"'])


def test_duplicate_yaml_keys_are_reported_with_lines() -> None:
    parsed = parse_yaml(b"a:\n  b: 1\n  b: 2\nc: 3\nc: 4\n")
    assert parsed.value == {"a": {"b": 2}, "c": 4}
    assert parsed.duplicates == [
        'yaml: unmarshal errors:\n  line 3: key "b" already set in map\n  line 5: key "c" already set in map'
    ]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: 1\n<<: {a: 2}", ['line 2: key "a" already set in map'], id="a merge key"),
        pytest.param("1: a\n'1': b", [], id="a number and a text, which only JSON cannot distinguish"),
        pytest.param("a: &x {p: 1, p: 2}\nb: *x", ['line 1: key "p" already set in map'] * 2, id="an alias"),
    ],
)
def test_only_keys_that_go_yaml_sets_twice_are_reported(text: str, want: list[str]) -> None:
    assert parse_yaml(text.encode()).duplicates == ["yaml: unmarshal errors:\n  " + "\n  ".join(want)][: len(want)]


def test_yaml_with_many_duplicate_keys_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(bodies, "read_yaml")
    assert parse_yaml(b"a: 1\n" * 3).value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", "unexpected end of JSON input", id="nothing"),
        pytest.param("{nope", "invalid character 'n' looking for beginning of object key string", id="a bare key"),
        pytest.param('{"a" 1}', "invalid character '1' after object key", id="no colon"),
        pytest.param('{"a":1 "b"}', "invalid character '\"' after object key:value pair", id="no comma"),
        pytest.param("[1 2]", "invalid character '2' after array element", id="no comma in a list"),
        pytest.param("{} x", "invalid character 'x' after top-level value", id="more after the value"),
        pytest.param("trux", "invalid character 'x' in literal true (expecting 'e')", id="a broken word"),
        pytest.param('"\\x"', "invalid character 'x' in string escape code", id="a bad escape"),
        pytest.param("NaN", "invalid character 'N' looking for beginning of value", id="not a number"),
        pytest.param('{"a":', "unexpected end of JSON input", id="cut short"),
    ],
)
def test_invalid_json_raises_the_error_message_of_go(text: str, want: str) -> None:
    with pytest.raises(BodyError) as caught:
        parse_json(text.encode())
    assert str(caught.value) == want


def test_yaml_keys_are_converted_to_strings_as_in_yaml_1_1() -> None:
    assert parse_yaml(b"{y: 'yes', 1: x}").value == {"true": "yes", "1": "x"}


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param(b"", "<empty>", id="nothing"),
        pytest.param(b"{nope", "{nope", id="what looks like JSON"),
        pytest.param(b"\x01\x02", "0102", id="bytes"),
        pytest.param(b"{" + b"a" * 2000, "{" + "a" * 29 + " ...", id="a long one"),
    ],
)
def test_summarize_shows_the_beginning_of_a_body(data: bytes, want: str) -> None:
    assert summarize(data) == want


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"a":[{"b":1,"b":2}]}',
        "[1e2,1.0,-0,-0.0,1e16,1e+16,0.1,1e999]",
        "[9223372036854775808,18446744073709551615,18446744073709551616]",
        '["\\u003c","é","\\ud800"]',
        '{"a":{"b":[true,null,"x"]}}',
        '{"a":{"b":[true,null,"x"]}}\n',
        ' {"a": 1}',
        '{"a": {"b": ":", "c" :[{"d":"\\u003c"}]}}',
        '{"a\\u003a": 1, "b": 2, "b": 3}',
        '{"a": ":", "a" : 1}',
    ],
)
def test_the_fast_json_parser_matches_the_full_one(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = parse_json(text.encode())
    monkeypatch.setattr(bodies, "_read_plain", lambda _: None)
    assert repr(short) == repr(parse_json(text.encode()))


def test_a_lone_surrogate_is_replaced() -> None:
    assert parse_json(b'{"a":["x\\ud800"],"\\uDC00":"\\ud83d\\ude00"}').value == {
        "a": ["x\ufffd"],
        "\ufffd": "\U0001f600",
    }
    assert parse_json(b'{"a":"\\ud800","a":1,"b":2}')[:2] == ({"a": 1, "b": 2}, ['duplicate field "a"'])


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"b":["c",null,true]}', '{"a":1.0}', '{"a":-2.5e3}', '{"a":12345678901234567890}',
     '{"a":"1.5","b":"x:1.5"}', '{"a":"\\u0041"}',
     '{"a":1,"a":2}', '{"a":\t1}', '{"y":"yes","n":"0x10"}', '{"a":1}\n', '{"a":}', '{"a":{"b":[]}, "c" : "é"}'],
)  # fmt: skip
def test_the_fast_path_for_json_in_yaml_matches_the_yaml_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> str:
        try:
            return repr(parse_yaml(text.encode()))
        except BodyError as problem:
            return repr(problem)

    short = read()
    monkeypatch.setattr(bodies, "_read_plain", lambda _: None)
    assert short == read()


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        pytest.param(b"[" * 10_001 + b"]" * 10_001, True, id="too deep"),
        pytest.param(b"[" + b"[]," * 10_001 + b"]", False, id="many lists"),
    ],
)
def test_yaml_whose_brackets_are_nested_too_deeply_is_refused(text: bytes, refused: bool) -> None:
    if refused:
        with pytest.raises(BodyError, match=r"^yaml: exceeded max depth of 10000$"):
            parse_yaml(text)
    else:
        assert parse_yaml(text).value == [[]] * 10_001
