"""YAML as kube-scheduler reads it: sorted keys, YAML 1.1 scalars, merges, repeated keys, go-yaml's error texts."""

from collections.abc import Iterator

import pytest

from bayplan.formats.json_tree import JsonObject, JsonValue, plain_value
from bayplan.formats.yaml_nodes import Event, compose_events, events, read_yaml
from bayplan.formats.yaml_tree import GoYamlError


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", None),
        ("a: [yes, off, y, ~, null, '']", {"a": [True, False, True, None, None, ""]}),
        ("a: [0x10, 010, 0o17, 08, 1_000, 0b11, -0b11, +7]", {"a": [16, 8, 15, 8, 1000, 3, -3, 7]}),
        ("a: [1e3, .5, 1.50, 16.0, 1e400, 1:30]", {"a": [1000, 0.5, 1.5, 16, "1e400", "1:30"]}),
        ("a: [18446744073709551615, 18446744073709551616]", {"a": [18446744073709551615, 18446744073709552000]}),
        ("a: [2001-01-01, '5', \"yes\", !!str 5]", {"a": ["2001-01-01", "5", "yes", "5"]}),
        ("a: [!!float 3, !!int 4, !own 7, !!binary YWJj]", {"a": [3, 4, "7", "abc"]}),
        ("on: 1\n2: x\n1.50: v\n.inf: z\n1e10: w", {"true": 1, "2": "x", "1.5": "v", ".inf": "z", "1e+10": "w"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("d: {c: 3, <<: {c: 4}}", {"d": {"c": 4}}),
        ("d: {<<: [{c: 1}, {c: 2, e: 5}]}", {"d": {"c": 1, "e": 5}}),
        ("d: {'<<': {c: 1}}", {"d": {"<<": {"c": 1}}}),
        ("a: 1\n---\na: [", {"a": 1}),
        ("%YAML 1.1\n---\na: 1\n", {"a": 1}),
        ("a:\tb", {"a": "b"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_yaml_values_match_kubectl(text: str, want: JsonValue) -> None:
    assert plain_value(read_yaml(text.encode())[0]) == want


def test_keys_are_sorted() -> None:
    tree = read_yaml(b"b: 1\na: 2\nZ: 3\n")[0]
    assert isinstance(tree, JsonObject)
    assert [key for key, _ in tree.pairs] == ["Z", "a", "b"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: 1\nb: 2", None),
        ("a: 1\na: 2", ['line 2: key "a" already set in map']),
        ("a: 1\na:\n  b: 1", ['line 3: key "a" already set in map']),
        ("a: {x: 1, x: 2}\na: 3", ['line 1: key "x" already set in map', 'line 2: key "a" already set in map']),
        ("1: a\n'1': b", None),
        ("1: a\n1: b\ntrue: c\nyes: d", ["line 2: key 1 already set in map", "line 4: key true already set in map"]),
        ("a: 1\n<<: {a: 2}", ['line 2: key "a" already set in map']),
        ("a: &x {p: 1}\nb: {<<: *x, p: 2}", ['line 2: key "p" already set in map']),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_duplicate_keys_are_reported(text: str, want: list[str] | None) -> None:
    complaint = read_yaml(text.encode())[1]
    assert complaint == (None if want is None else "yaml: unmarshal errors:\n  " + "\n  ".join(want))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: 1\nb: 2: 3", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: 1: 2", "yaml: mapping values are not allowed in this context"),
        ("a:\n  b: 1\n c: 2", "yaml: line 2: did not find expected key"),
        ("a:\n- b\nc", "yaml: line 4: could not find expected ':'"),
        ("a: [1,\nb: 2", "yaml: line 2: did not find expected ',' or ']'"),
        ("- a\nb: 1", "yaml: line 1: did not find expected '-' indicator"),
        ("a:\n\t- b", "yaml: line 2: found character that cannot start any token"),
        ("a: %x", "yaml: found character that cannot start any token"),
        ('a: "x\n', "yaml: line 2: found unexpected end of stream"),
        ('a: "\\q"', "yaml: found unknown escape character"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: -.inf", "json: unsupported value: -Inf"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: !!float yes", "yaml: cannot decode !!bool `yes` as a !!float"),
        ("a: !!timestamp x", "yaml: cannot decode !!str `x` as a !!timestamp"),
        ("a: !!binary '!'", "yaml: !!binary value contains invalid base64 data"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
        ("? [b, a]\n: c", 'yaml: invalid map key: []interface {}{"b", "a"}'),
        (
            "? {b: 1, a: [~]}\n: c",
            'yaml: invalid map key: map[interface {}]interface {}{"a":[]interface {}{interface {}(nil)}, "b":1}',
        ),
        ("%YAML 1.2\n---\na: 1", "yaml: found incompatible YAML document"),
        ("# c\n%YAML 1.2 # d\n%YAML 1.2\n---\na: 1", "yaml: line 1: found incompatible YAML document"),
        ("%YAML 1.2 x\n---\na: 1", "yaml: did not find expected comment or line break"),
        ("~: 1", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"),
        ("18446744073709551615: 1", "unsupported map key of type: uint64, key: 0xffffffffffffffff, value: 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_yaml_is_refused_with_the_messages_of_go_yaml(text: str, want: str) -> None:
    with pytest.raises(GoYamlError) as refused:
        read_yaml(text.encode())
    assert str(refused.value) == want


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_yaml_of_a_newer_version_is_refused_in_every_encoding(encoding: str) -> None:
    with pytest.raises(GoYamlError, match=r"^yaml: line 2: found incompatible YAML document$"):
        read_yaml("# c\n%TAG ! tag:example.com,2026:\n%YAML 1.2\n---\na: 1".encode(encoding))


def test_invalid_utf8_is_refused() -> None:
    with pytest.raises(GoYamlError, match=r"^yaml: invalid leading UTF-8 octet$"):
        read_yaml(b"a: \xff")


def test_excessive_aliasing_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(GoYamlError, match=r"^yaml: document contains excessive aliasing$"):
        read_yaml("\n".join(lines).encode())


def test_deeply_nested_yaml_is_refused() -> None:
    with pytest.raises(GoYamlError, match=r"^yaml: exceeded max depth of 10000$"):
        read_yaml(b"[" * 5000 + b"]" * 5000)


def test_parsing_stops_where_yaml_is_nested_too_deeply() -> None:
    taken: list[Event] = []

    def noted() -> Iterator[Event]:
        for event in events("? " * 30_000):
            taken.append(event)
            yield event

    with pytest.raises(RecursionError):
        list(compose_events(noted()))
    assert len(taken) < 10_010
