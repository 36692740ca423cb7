"""Objects of custom resources, checked by their schema: each rule, its message, and what a change does not validate."""

from __future__ import annotations

import pytest

from bayplan.apiserver.validation.custom_values import validate_custom
from bayplan.apiserver.validation.value_formats import FORMATS, fits_format
from bayplan.base.plain_data import Document, part, parts
from tests.apiserver.client import Client

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def text_of(schema: Document, value: object, old: object = None) -> list[str]:
    before: object = None if old is None else {"x": old}
    causes = validate_custom({"type": "object", "properties": {"x": schema}}, {"x": value}, before)
    return [f"{each.field}: {each.message}" for each in causes]


INT: Document = {"type": "integer"}
TEXT: Document = {"type": "string"}
KEYED: Document = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": TEXT, "n": {**INT, "maximum": 3}}},
}


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        pytest.param(INT, "a", 'x: Invalid value: "string": x in body must be of type integer: "string"', id="a type"),
        pytest.param(INT, 2.0, "", id="a whole number with a point"),
        pytest.param(
            INT, True, 'x: Invalid value: "boolean": x in body must be of type integer: "boolean"', id="a boolean"
        ),
        pytest.param({"type": "number"}, 1, "", id="a whole number for a number"),
        pytest.param(TEXT, None, 'x: Invalid value: "null": x in body must be of type string: "null"', id="null"),
        pytest.param({**TEXT, "nullable": True}, None, "", id="an allowed null"),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            [],
            'x: Invalid value: "array": x in body must be of type integer,string: "array"',
            id="neither number nor text",
        ),
        pytest.param(
            {**TEXT, "enum": ["a", "b"]}, "c", 'x: Unsupported value: "c": supported values: "a", "b"', id="an enum"
        ),
        pytest.param(
            {**TEXT, "nullable": True, "enum": ["a", None]},
            None,
            'x: Unsupported value: null: supported values: "a", "null"',
            id="null in an enum",
        ),
        pytest.param(
            {"type": "array", "items": {}, "enum": [[True]]},
            [1],
            'x: Unsupported value: [1]: supported values: "[true]"',
            id="types in a list of an enum",
        ),
        pytest.param({"type": "array", "items": {}, "enum": [[True]]}, [True], "", id="a list of an enum"),
        pytest.param({**TEXT, "maxLength": 2}, "abc", "x: Too long: may not be more than 2 bytes", id="too long"),
        pytest.param(
            {**TEXT, "minLength": 2},
            "a",
            'x: Invalid value: "a": x in body should be at least 2 chars long',
            id="too short",
        ),
        pytest.param(
            {**TEXT, "pattern": "^[a-z]+$"},
            "A",
            "x: Invalid value: \"A\": x in body should match '^[a-z]+$'",
            id="a pattern",
        ),
        pytest.param({**TEXT, "pattern": "b"}, "abc", "", id="a pattern is looked for anywhere"),
        pytest.param(
            {**TEXT, "format": "date"}, "x", 'x: Invalid value: "x": x in body must be of type date: "x"', id="a format"
        ),
        pytest.param(
            {**INT, "minimum": 1},
            0,
            "x: Invalid value: 0: x in body should be greater than or equal to 1",
            id="too little",
        ),
        pytest.param(
            {**INT, "maximum": 5, "exclusiveMaximum": True},
            5,
            "x: Invalid value: 5: x in body should be less than 5",
            id="too much",
        ),
        pytest.param(
            {**INT, "multipleOf": 4}, 6, "x: Invalid value: 6: x in body should be a multiple of 4", id="no multiple"
        ),
        pytest.param(
            {**INT, "multipleOf": 2},
            2**53 + 1,
            "x: Invalid value: 9007199254740993: x in body should be a multiple of 2",
            id="no multiple, and more than a double holds",
        ),
        pytest.param(
            {"type": "number", "multipleOf": 1e-300},
            1e300,
            "x: Invalid value: 1e+300: x in body should be a multiple of 1e-300",
            id="a multiple that overflows",
        ),
        pytest.param({"type": "number", "multipleOf": 0.1}, 0.3, "", id="a multiple of a fraction"),
        pytest.param(
            {"type": "number", "multipleOf": -1.0},
            2.5,
            "x: Invalid value: -1: factor MultipleOf declared for x must be positive: -1",
            id="a factor that is not positive",
        ),
        pytest.param(
            {**INT, "format": "int32"},
            2**31,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x',
            id="too large for its format",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "minItems": 1},
            [],
            "x: Invalid value: 0: x in body should have at least 1 items",
            id="too few items",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "maxItems": 1},
            ["a", "b"],
            "x: Too many: 2: must have at most 1 item",
            id="many",
        ),
        pytest.param(
            {"type": "array", "items": INT},
            [1, "a"],
            'x[1]: Invalid value: "string": x[1] in body must be of type integer: "string"',
            id="an item",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            ["a", "a"],
            'x[1]: Duplicate value: "a"',
            id="twice in a set",
        ),
        pytest.param(KEYED, [{"name": "a"}, {"name": "a"}], 'x[1]: Duplicate value: {"name":"a"}', id="a key twice"),
        pytest.param({"type": "object", "required": ["a"]}, {}, "x.a: Required value", id="a field that is missing"),
        pytest.param(
            {"type": "object", "additionalProperties": INT, "maxProperties": 1},
            {"a": 1, "b": 2},
            "x: Too many: 2: must have at most 1 item",
            id="too many properties",
        ),
        pytest.param(
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 2},
            '<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
            id="two alternatives",
        ),
        pytest.param(
            {"not": {"required": ["a"]}},
            {"a": 1},
            '<nil>: Invalid value: "": "x" must not validate the schema (not)',
            id="a forbidden schema",
        ),
    ],
)
def test_values_are_validated_against_their_schema(schema: Document, value: object, want: str) -> None:
    assert text_of(schema, value) == ([want] if want else [])


def test_a_fraction_is_no_integer_and_is_still_compared_with_the_limits() -> None:
    assert text_of({**INT, "maximum": 1}, 1.5) == [
        'x: Invalid value: "number": x in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in x',
        "x: Invalid value: 1.5: x in body should be less than or equal to 1",
    ]


def test_unchanged_values_are_not_validated_on_update() -> None:
    assert text_of({**INT, "maximum": 3}, 5, 5) == []
    assert text_of({**INT, "maximum": 3}, 6, 5) != []
    old: list[object] = [{"name": "a", "n": 9}, {"name": "b", "n": 1}]
    assert text_of(KEYED, [{"name": "b", "n": 1}, {"name": "a", "n": 9}], old) == []
    assert len(text_of(KEYED, [{"name": "b", "n": 8}, {"name": "a", "n": 9}], old)) == 1


@pytest.mark.parametrize(
    ("kind", "fits", "not_fitting"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28 10:00:00"),
        ("duration", "1h30m", "soon"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:1b:44:11:3a:b7", "00:1b"),
        ("hostname", "a.example", "-a"),
        ("uri", "https://a.example/x", "x"),
        ("email", "a@b.example", "a"),
        ("uuid4", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "f47ac10b-58cc-1372-a567-0e02b2c3d479"),
        ("hexcolor", "#fff", "#ffff"),
        ("byte", "YQ==", "Y"),
        ("k8s-short-name", "a-b", "a.b"),
        ("ipv4", "010.0.0.1", "10.0.0"),
        ("ipv4", "::ffff:10.0.0.1", "10.0.0.1%eth0"),
        ("cidr", "010.0.0.0/8", "10.0.0.0/255.0.0.0"),
        ("mac", "00-1b-44-11-3a-b7-00-01", "00:1b-44:11-3a:b7"),
        ("mac", "001b.4411.3ab7", "001b:4411:3ab7"),
        ("hostname", "h-", "my-host"),
        ("hostname", "a.example", "a.b"),
        ("hostname", "ä.example", "a.example."),
        ("duration", "3 seconds", "3 fortnights"),
        ("email", "A B <a.b@c>", "a..b@c"),
        ("uri", "urn:x", "//a b:x%"),
        ("isbn", "0-306-40615-2", "0-306-40615-3"),
        ("isbn13", "978-0306406157", "0306406152"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "123-45 6789", "123456789"),
        ("rgbcolor", "rgb( 1,20,255 )", "rgb(1,20,256)"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77"),
        ("anything", "x", None),
    ],
)
def test_formats_accept_valid_values_and_reject_invalid_ones(kind: str, fits: str, not_fitting: str | None) -> None:
    assert fits_format(kind, fits)
    assert not_fitting is None or not fits_format(kind, not_fitting)


_LONG = 100_000


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        pytest.param(" " * _LONG + "<", set[str](), id="spaces"),
        pytest.param(" " * _LONG + "<a@b.example>", {"email"}, id="an address after spaces"),
        pytest.param("1" * _LONG, {"byte"}, id="digits"),
        pytest.param("1" * _LONG + " days", {"duration"}, id="a number with a unit"),
        pytest.param("1 " * _LONG, set[str](), id="separate digits"),
        pytest.param("10.0.0.0/" + "9" * _LONG, set[str](), id="a long prefix length"),
        pytest.param("10.0.0.0/" + "0" * _LONG + "8", {"cidr"}, id="a prefix length with leading zeros"),
        pytest.param("a" * _LONG, {"byte"}, id="letters"),
        pytest.param("a." * _LONG + "!", set[str](), id="labels"),
        pytest.param("::" * _LONG, set[str](), id="colons"),
        pytest.param('"a' * _LONG, set[str](), id="quotation marks"),
        pytest.param("/%41" * _LONG, {"uri"}, id="a long path"),
    ],
)
def test_every_format_checks_long_strings_in_linear_time(text: str, fitting: set[str]) -> None:
    assert {kind for kind in FORMATS if fits_format(kind, text)} == fitting


def test_numbers_beyond_a_float32_do_not_have_the_format_float() -> None:
    float32: Document = {"type": "number", "format": "float"}
    assert text_of(float32, 3.5e38) == [
        '<nil>: Invalid value: "": Checked value must be of type number with format float in x'
    ]
    assert text_of(float32, 3.4e38) == text_of({**float32, "format": "double"}, 3.5e38) == []


def test_repeated_items_are_named_once() -> None:
    found = text_of({"type": "array", "x-kubernetes-list-type": "set", "items": INT}, [1, 2, 2, 1, 1])
    assert found == ["x[2]: Duplicate value: 2", "x[3]: Duplicate value: 1"]
    assert text_of(KEYED, [5, {}, {}])[-1] == (
        "x[0]: Invalid value: 5: must be an object for an array of list-type map"
    )


def definition() -> Document:
    spec: Document = {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {**INT, "minimum": 1}, "mode": {**TEXT, "enum": ["fast", "safe"], "default": "safe"}},
    }
    status: Document = {"type": "object", "properties": {"phase": {**TEXT, "maxLength": 5}}}
    schema: Document = {"type": "object", "properties": {"spec": spec, "status": status}, "required": ["spec"]}
    version: Document = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    whole = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": whole}


def widget(spec: Document | None) -> Document:
    found: Document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    return found if spec is None else {**found, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(None, "spec: Required value", id="no spec"),
        pytest.param({"size": None}, "spec.size: Required value", id="null counts as missing"),
        pytest.param(
            {"size": "2"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer', id="type"
        ),
        pytest.param(
            {"size": 1, "mode": "x"}, 'spec.mode: Unsupported value: "x": supported values: "fast"', id="enum"
        ),
    ],
)
def test_invalid_custom_resources_are_refused_on_create(spec: Document | None, want: str) -> None:
    client = Client()
    assert client.post(DEFINITIONS, definition()).status == 201
    answer = client.post(WIDGETS, widget(spec))
    assert (answer.status, answer.at("reason")) == (422, "Invalid")
    assert str(answer.at("message")).startswith(f'Widget.example.com "w" is invalid: {want}')


def test_updates_and_statuses_of_custom_resources_are_validated() -> None:
    client = Client()
    client.post(DEFINITIONS, definition())
    assert client.post(WIDGETS, widget({"size": 2})).at("spec.mode") == "safe"
    assert client.patch(f"{WIDGETS}/w", {"spec": {"size": 0}}).status == 422
    assert client.patch(f"{WIDGETS}/w", {"spec": {"size": 3}}).at("metadata.generation") == 2
    assert client.patch(f"{WIDGETS}/w/status", {"status": {"phase": "too long"}}).status == 422
    assert client.patch(f"{WIDGETS}/w/status", {"status": {"phase": "fine"}}).at("status.phase") == "fine"


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param("text", 'Invalid value: "string":  in body must be of type object: "string"', id="text"),
        pytest.param(5, 'Invalid value: "integer":  in body must be of type object: "integer"', id="a number"),
        pytest.param([], 'Invalid value: "array":  in body must be of type object: "array"', id="a list"),
        pytest.param(True, 'Invalid value: "boolean":  in body must be of type object: "boolean"', id="true"),
        pytest.param({}, "Required value", id="without a required field"),
        pytest.param({"phase": "x"}, "", id="valid"),
    ],
)
def test_the_first_status_of_a_custom_resource_is_validated(status: object, want: str) -> None:
    client, found = Client(), definition()
    version = parts(part(found, "spec"), "versions")[0]
    part(version, "schema", "openAPIV3Schema", "properties", "status")["required"] = ["phase"]
    client.post(DEFINITIONS, found)
    client.post(WIDGETS, widget({"size": 2}))
    answer = client.patch(f"{WIDGETS}/w/status", {"status": status})
    assert (answer.status, answer.at("details.causes.0.message") or "") == (422 if want else 200, want)
