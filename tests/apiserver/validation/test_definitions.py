"""Validation of CustomResourceDefinitions, and warnings about their formats."""

from __future__ import annotations

import pytest

from tests.apiserver.client import Client, Document

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SCHEMA = "spec.validation.openAPIV3Schema"


def _definition(schema: Document | None, more: Document | None = None, **version: object) -> Document:
    shown: Document = {"name": "v1", "served": True, "storage": True, **version}
    if schema is not None:
        shown["schema"] = {"openAPIV3Schema": {"type": "object", **schema}}
    names = {"plural": "fires", "kind": "Fire"}
    spec: Document = {"group": "e.com", "scope": "Cluster", "names": names, "versions": [shown], **(more or {})}
    return {"metadata": {"name": "fires.e.com"}, "spec": spec}


def _object(**properties: Document) -> Document:
    return {"type": "object", "properties": properties}


_PAIR: Document = {**_object(n={"type": "integer", "maximum": 5}), "required": ["n"]}
_RULE: Document = {"rule": "self > 3", "message": "more"}
_UNTYPED: Document = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("definition", "want"),
    [
        pytest.param(
            _definition({"allOf": [{"properties": {"a": {"minLength": 1}}}]}),
            f"{_SCHEMA}.properties[a]: Required value: because it is defined in {_SCHEMA}.allOf[0].properties[a]",
            id="a restriction of an undeclared field",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "object", "default": {"b": 1}}}}),
            f'{_SCHEMA}.properties[a].default: Invalid value: {{"b":1}}: must not have unknown fields',
            id="a default with an unknown field",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "string", "dependencies": {}}}}),
            f"{_SCHEMA}.properties[a].dependencies: Forbidden: dependencies is not supported",
            id="empty dependencies",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "string"}}}, selectableFields=[{"jsonPath": "a"}]),
            'spec.selectableFields[0].jsonPath: Invalid value: "a": is an invalid path: expected [ or . but got: a',
            id="a path without a dot",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "string"}}}, selectableFields=[{"jsonPath": ".a[0]"}]),
            'spec.selectableFields[0].jsonPath: Invalid value: ".a[0]": is an invalid path: array notation is not allowed',
            id="a path with brackets",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "string"}}}, selectableFields=[{"jsonPath": ".a."}]),
            'spec.selectableFields[0].jsonPath: Invalid value: ".a.": is an invalid path: unexpected end of JSON path',
            id="a path that ends with a dot",
        ),
        pytest.param(
            _definition(
                _object(a={"type": "object", "additionalProperties": False}), selectableFields=[{"jsonPath": ".a.b"}]
            ),
            'spec.selectableFields[0].jsonPath: Invalid value: ".a.b": must point to a field of type string, boolean or '
            "integer. Enum string fields and strings with formats are allowed.",
            id="a path to a field that no value can have",
        ),
        pytest.param(
            _definition({"properties": {"a": {"$ref": "x"}, "b": {}}}),
            f"is invalid: {_SCHEMA}.properties[a].$ref: Forbidden: $ref is not supported",
            id="a reference, which hides errors of the structure",
        ),
        pytest.param(
            _definition({"$schema": "x", "properties": {"a": {"type": "string"}}}),
            f"is invalid: {_SCHEMA}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported",
            id="a version of JSON schema",
        ),
        pytest.param(
            _definition({"properties": {"a": {"x-kubernetes-preserve-unknown-fields": False}, "b": {}}}),
            f"is invalid: {_SCHEMA}.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or "
            "undefined",
            id="known fields, which hide errors of the structure",
        ),
        pytest.param(
            _definition({"properties": {"a": {"not": {"$schema": "x"}}, "b": {"uniqueItems": True}}}),
            f"is invalid: {_SCHEMA}.properties[b].uniqueItems: Forbidden: uniqueItems cannot be set to true "
            "since the runtime complexity becomes quadratic",
            id="another error, which hides a version of JSON schema and errors of the structure",
        ),
        pytest.param(
            _definition({"properties": {"metadata": {"type": "string", "title": "t"}}}),
            f'{_SCHEMA}.properties[metadata].type: Invalid value: "string": must be object, '
            f"{_SCHEMA}.properties[metadata]: Forbidden: must not specify anything other than name "
            "and generateName, but metadata is implicitly specified]",
            id="errors of the structure, sorted by their texts",
        ),
        pytest.param(
            _definition({"properties": {"metadata": {"type": "object", "$ref": "x", "not": {"default": 1}}}}),
            f"{_SCHEMA}.properties[metadata].$ref: Forbidden: $ref is not supported, "
            f"{_SCHEMA}.properties[metadata].not.default: Forbidden: must not be set in top-level metadata]",
            id="a default in a restriction of metadata",
        ),
        pytest.param(
            _definition({"definitions": {"a": {"uniqueItems": True}}}),
            f"{_SCHEMA}.definitions[a].uniqueItems: Forbidden: uniqueItems cannot be set to true "
            "since the runtime complexity becomes quadratic]",
            id="an error in a definition",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "string", "maxLength": -1, "default": "x"}}}),
            f"{_SCHEMA}.properties[a].default: Too long: value is too long",
            id="a negative length",
        ),
        pytest.param(
            _definition({"properties": {"a": {**_PAIR, "default": {}}}}),
            f"{_SCHEMA}.properties[a].default.n: Required value",
            id="a default without a required field",
        ),
        pytest.param(
            _definition({"properties": {"a": {**_PAIR, "default": {"n": 9}}}}),
            f"{_SCHEMA}.properties[a].default.n: Invalid value: 9: n in body should be less than or equal to 5",
            id="a default with a value beyond a limit",
        ),
        pytest.param(
            _definition({"properties": {"a": {"type": "integer", "default": 2, "x-kubernetes-validations": [_RULE]}}}),
            f"{_SCHEMA}.properties[a].default: Invalid value: 2: more",
            id="a default that breaks a rule",
        ),
        pytest.param(
            _definition({"properties": {"metadata": _object(name={"type": "string", "default": "x"})}}),
            f"{_SCHEMA}.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
            id="a default in the metadata",
        ),
        pytest.param(
            _definition({"enum": [{}]}, subresources={"status": {}}),
            "fields are allowed at the root of the schema if the status subresource is enabled",
            id="an enum at the root beside a status",
        ),
        pytest.param(
            _definition({"minProperties": 0}, subresources={"status": {}}),
            "fields are allowed at the root of the schema if the status subresource is enabled",
            id="a limit of 0 at the root beside a status",
        ),
        pytest.param(
            _definition({"default": {}}),
            f"[{_SCHEMA}.default.apiVersion: Required value, {_SCHEMA}.default.kind: Required value]",
            id="a default of the whole object without a type",
        ),
        pytest.param(
            _definition({"properties": {"a": {**_UNTYPED, "default": 2, "x-kubernetes-validations": [_RULE]}}}),
            f'{_SCHEMA}.properties[a].default: Invalid value: "": rule compiler initialization error: '
            f"failed to convert to declType for CEL validation rules",
            id="a default with rules, but no type",
        ),
    ],
)
def test_an_invalid_definition_is_refused(definition: Document, want: str) -> None:
    found = Client().post(_DEFINITIONS, definition)

    assert found.status == 422
    assert str(found.at("message")).endswith(want)


def test_defaults_require_pruning() -> None:
    schema: Document = {"properties": {"a": {"type": "string", "default": "x"}}}

    found = Client().post(_DEFINITIONS, _definition(schema, {"preserveUnknownFields": True}))

    assert "must be false in order to use defaults in the schema" in str(found.at("message"))


def test_errors_about_defaults_precede_those_of_versions() -> None:
    schema: Document = {"properties": {"a": {"type": "string", "default": "x"}}}
    definition = _definition(schema, {"preserveUnknownFields": True}, deprecationWarning="w")

    found = Client().post(_DEFINITIONS, definition)

    fields = [cause["field"] for cause in found.at("details.causes")]  # type: ignore[attr-defined]
    assert fields == ["spec.preserveUnknownFields", "spec.versions[0].deprecationWarning", "spec.preserveUnknownFields"]


def test_unrecognized_formats_cause_warnings_once() -> None:
    client = Client()
    schema: Document = {
        "properties": {"a": {"type": "integer", "format": "uuid"}, "b": {"type": "string", "format": "date-time"}}
    }

    created = client.post(_DEFINITIONS, _definition(schema))
    changed = client.patch(f"{_DEFINITIONS}/fires.e.com", {"metadata": {"labels": {"a": "b"}}})

    assert [value for name, value in created.headers if name == "warning"] == ['299 - "unrecognized format \\"uuid\\""']
    assert [value for name, value in changed.headers if name == "warning"] == []


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(
            {"text": "long"},
            [
                '"text" must not validate the schema (not)',
                "Too long: may not be more than 1 byte",
                'text in body must be of type date: "long"',
                "Unsupported value",
            ],
            id="alternatives, length, format, enum",
        ),
        pytest.param({"text": True}, ['must be of type date: ""', "Unsupported value"], id="another type"),
        pytest.param({"text": None}, ["Unsupported value: null"], id="null"),
        pytest.param({"number": 2}, ["should be less than 1"], id="a limit for a whole number"),
        pytest.param({"number": 0.5}, ["Unsupported value: 0.5"], id="a fraction that rounds to no enum value"),
    ],
)
def test_a_value_gets_all_errors_in_order(value: Document, want: list[str]) -> None:
    text = {
        "type": "string",
        "nullable": True,
        "maxLength": 1,
        "format": "date",
        "enum": ["k"],
        "not": {"enum": ["long"]},
    }
    number = {"type": "number", "maximum": 1.5, "exclusiveMaximum": True, "enum": [2]}
    client = Client()
    assert client.post(_DEFINITIONS, _definition({"properties": {"text": text, "number": number}})).status == 201

    found = client.post(
        "/apis/e.com/v1/fires", {"apiVersion": "e.com/v1", "kind": "Fire", "metadata": {"name": "f"}, **value}
    )

    message = str(found.at("message"))
    places = [message.find(each) for each in want]
    assert places == sorted(places)
    assert -1 not in places


def test_unchecked_defaults_are_accepted() -> None:
    numbers: Document = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}
    of_map: Document = {"type": "object", "additionalProperties": {"type": "integer", "default": "x"}}
    either: Document = {"x-kubernetes-int-or-string": True, "default": [True]}
    free: Document = {"type": "array", "items": {"type": "object"}, **_UNTYPED, "default": [{"x": 1}]}
    root: Document = {"default": {"apiVersion": "v1", "kind": "Fire", "metadata": {"x": 1}}}
    definition = _definition({**_object(a={**numbers, "default": [1, 1]}, b=of_map, c=either, d=free), **root})

    assert Client().post(_DEFINITIONS, definition).status == 201


def test_defaults_beyond_the_budget_of_a_schema_are_not_checked_by_its_rules() -> None:
    def status_with(levels: int) -> int:
        rule = {"rule": f"self > 5{' ' * 4000}"}
        schema: Document = {"type": "integer", "default": 2, "x-kubernetes-validations": [rule]}
        for _ in range(levels):
            schema = {**_object(a=schema), "default": {}}
        return Client().post(_DEFINITIONS, _definition(_object(a=schema))).status

    assert (status_with(14), status_with(20)) == (422, 201)


def test_selectable_fields_need_a_schema_of_their_own_version() -> None:
    definition = _definition(_object(a={"type": "string"}), selectableFields=[{"jsonPath": ".a"}])
    versions = definition["spec"]["versions"]  # type: ignore[index]
    versions.append({**versions[0], "name": "v2", "storage": False, "selectableFields": []})

    found = Client().post(_DEFINITIONS, definition)

    why = "may only be set when `version.schema.openAPIV3Schema` is not included"
    assert found.at("details.causes") == [
        {
            "reason": "FieldValueInvalid",
            "message": f'Invalid value: "": {why}',
            "field": "spec.versions[0].selectableFields",
        }
    ]
