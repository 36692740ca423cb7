"""Patterns of custom resources: Go's syntax and error messages, and a limit on the work of a request."""

from __future__ import annotations

import pytest

from tests.apiserver.client import Client, Document

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def definition(spec: Document, *others: Document) -> Document:
    versions: list[Document] = []
    for number, each in enumerate((spec, *others), 1):
        schema: Document = {"openAPIV3Schema": {"type": "object", "properties": {"spec": each}}}
        versions.append({"name": f"v{number}", "served": True, "storage": number == 1, "schema": schema})
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }


def made(spec: Document, value: object) -> tuple[int, str]:
    """Define a kind with this schema and create an object of it; return the status and the message."""
    client = Client()
    answer = client.post(DEFINITIONS, definition(spec))
    assert answer.status == 201, answer
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": value}
    answer = client.post(WIDGETS, widget)
    return answer.status, str(answer.at("message"))


def text(pattern: str) -> Document:
    return {"type": "string", "pattern": pattern}


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        pytest.param(text("("), ["properties[spec].pattern"], id="of the object itself"),
        pytest.param({"type": "object", "properties": {"b": text("("), "a": text("(")}},
                     ["properties[spec].properties[a].pattern", "properties[spec].properties[b].pattern"], id="of properties"),
        pytest.param({"type": "array", "items": text("(")}, ["properties[spec].items.pattern"], id="of items"),
        pytest.param({"type": "object", "additionalProperties": text("(")},
                     ["properties[spec].additionalProperties.pattern"], id="of values of a map"),
        pytest.param({"type": "string", "allOf": [{}, {"pattern": "("}], "not": {"pattern": "("}},
                     ["properties[spec].allOf[1].pattern", "properties[spec].not.pattern"], id="of alternatives"),
    ],
)  # fmt: skip
def test_a_definition_with_an_invalid_pattern_is_refused(schema: Document, fields: list[str]) -> None:
    answer = Client().post(DEFINITIONS, definition(schema))
    why = "must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"
    causes = answer.at("details.causes")
    assert answer.status == 422
    assert causes == [
        {
            "reason": "FieldValueInvalid",
            "message": f'Invalid value: "(": {why}',
            "field": f"spec.validation.openAPIV3Schema.{field}",
        }
        for field in fields
    ]


def test_an_error_names_the_version_if_schemas_differ() -> None:
    answer = Client().post(DEFINITIONS, definition(text("a"), text("a++")))
    assert answer.at("details.causes.0.field") == "spec.versions[1].schema.openAPIV3Schema.properties[spec].pattern"


@pytest.mark.parametrize("pattern", ["(?=a)", "a++", "(?<=a)", r"\Z", "[[:foo:]]"])
def test_python_only_regular_expressions_are_refused(pattern: str) -> None:
    assert Client().post(DEFINITIONS, definition(text(pattern))).status == 422


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        pytest.param("^[[:alpha:]]+$", "abc", True, id="classes have names"),
        pytest.param(r"^\Qa.b\E$", "axb", False, id="quoted text stands for itself"),
        pytest.param(r"^\d$", "٣", False, id="digits are those of ASCII"),
        pytest.param(r"^\w$", "é", False, id="words are of ASCII"),
        pytest.param("a$", "a\n", False, id="the end is the very end"),
        pytest.param("^(a+)+$", "a" * 40 + "!", False, id="nested repetitions take linear time"),
    ],
)
def test_patterns_match_as_in_go(pattern: str, value: str, fits: bool) -> None:
    status, message = made(text(pattern), value)
    assert status == (201 if fits else 422), message
    assert fits or message.endswith(f"should match '{pattern}'")


TOO_MUCH = "checking the object against its schema takes more work than a request may"


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        pytest.param(text("(a?){900}b"), "a" * 1_000_000, TOO_MUCH, id="a big pattern for a long text"),
        pytest.param({"type": "array", "items": {"type": "string", "enum": [f"v{n}" for n in range(20_000)]}},
                     ["x"] * 20_000, TOO_MUCH, id="a long enum for a long list"),
        pytest.param({"type": "array", "items": {"type": "string", "anyOf": [{"maxLength": n % 2} for n in range(5_000)]}},
                     ["xyz"] * 5_000, TOO_MUCH, id="many alternatives for a long list"),
        pytest.param({"type": "array", "items": {"type": "object", "required": [f"v{n}" for n in range(20_000)]}},
                     [{}] * 20_000, TOO_MUCH, id="many required names for a long list"),
        pytest.param({"type": "array", "items": {"type": "object", "properties": {
                          f"v{n}": {"type": "string", "default": "x"} for n in range(5_000)}}},
                     [{}] * 5_000, "the schema adds more than 500000 defaults to the object", id="many defaults for a long list"),
    ],
)  # fmt: skip
def test_schema_checks_have_a_work_limit(schema: Document, value: object, want: str) -> None:
    status, message = made(schema, value)
    assert status in (413, 422)
    assert message.endswith(want)


def test_a_definition_with_too_expensive_patterns_is_refused() -> None:
    properties = {f"p{number}": text(rf"{number}\pL{{150}}") for number in range(300)}
    answer = Client().post(DEFINITIONS, definition({"type": "object", "properties": properties}))
    assert answer.status == 422
    assert "take more work than a request may" in str(answer.at("message"))


def test_a_deeply_nested_object_is_stored_or_refused_without_a_failure() -> None:
    value: Document = {}
    for _ in range(400):
        value = {"a": value}
    client = Client()
    assert (
        client.post(DEFINITIONS, definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True})).status
        == 201
    )
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": value}
    answer = client.post(WIDGETS, widget)
    assert (answer.status, answer.at("message")) in ((201, None), (400, "the object is nested too deeply"))
