"""The CEL rules of custom resources: when they run, the messages of refusals, and the limit of their cost."""

from __future__ import annotations

import pytest

from bayplan.apiserver.validation.schema_rules import SchemaRules
from bayplan.apiserver.validation.schema_types import escaped, schema_type
from bayplan.base.plain_data import Document
from tests.apiserver.client import Client

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
TEXT: Document = {"type": "string", "maxLength": 10}


def rule(text: str, **more: object) -> Document:
    return {"rule": text, **more}


def spec_schema(*rules: Document, **properties: Document) -> Document:
    fields = {"n": {"type": "integer"}, "s": TEXT, **properties}
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": list(rules)}
    return {"type": "object", "properties": {"spec": spec}}


def refusals(schema: Document, spec: Document, old: Document | None = None) -> list[str]:
    before = None if old is None else {"metadata": {"name": "a"}, "spec": old}
    causes, warned = SchemaRules(schema).check({"metadata": {"name": "a"}, "spec": spec}, before)
    return [f"{each.field}: {each.message}" for each in causes] + [f"warning: {each}" for each in warned]


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param(rule("self.n > 5"), "spec: Invalid value: failed rule: self.n > 5", id="no message"),
        pytest.param(rule("self.n > 5", message=" too few "), "spec: Invalid value: too few", id="a message"),
        pytest.param(
            rule("self.n > 5", messageExpression="'n is ' + self.s"),
            "spec: Invalid value: n is abc",
            id="a message expression",
        ),
        pytest.param(
            rule("self.n > 5", message="plain", messageExpression="'a\\nb'"),
            "spec: Invalid value: plain",
            id="a message expression with a line break",
        ),
        pytest.param(
            rule("self.n > 5", reason="FieldValueForbidden", fieldPath=".n"),
            "spec.n: Forbidden: failed rule: self.n > 5",
            id="a reason and a path",
        ),
        pytest.param(
            rule("self.n / 0 == 1"),
            'spec: Invalid value: "object": division by zero evaluating rule: self.n / 0 == 1',
            id="an error",
        ),
    ],
)
def test_a_failed_rule_reports_its_message_reason_and_path(written: Document, want: str) -> None:
    assert refusals(spec_schema(written), {"n": 1, "s": "abc"}) == [want]


def test_transition_rules_run_only_on_updates() -> None:
    schema = spec_schema(rule("self.n >= oldSelf.n", message="n may only grow"))
    assert refusals(schema, {"n": 1}) == []
    assert refusals(schema, {"n": 2}, {"n": 1}) == []
    assert refusals(schema, {"n": 1}, {"n": 2}) == ["spec: Invalid value: n may only grow"]


def test_a_rule_with_optional_old_self_runs_on_creates_too() -> None:
    schema = spec_schema(rule("oldSelf.hasValue() || self.n == 0", optionalOldSelf=True, message="begin with 0"))
    assert refusals(schema, {"n": 1}) == ["spec: Invalid value: begin with 0"]
    assert refusals(schema, {"n": 1}, {"n": 0}) == []


def test_an_unchanged_value_that_fails_a_rule_returns_a_warning() -> None:
    schema = spec_schema(rule("self.n > 5"))
    assert refusals(schema, {"n": 1}, {"n": 1}) == ["warning: spec: Invalid value: failed rule: self.n > 5"]
    assert refusals(schema, {"n": 2}, {"n": 1}) == ["spec: Invalid value: failed rule: self.n > 5"]


def test_list_map_items_are_correlated_by_key_for_old_self() -> None:
    keyed: Document = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "properties": {"k": TEXT, "v": {"type": "integer"}},
            "x-kubernetes-validations": [rule("self.v >= oldSelf.v", message="v may only grow")],
        },
    }
    schema = spec_schema(items=keyed)
    before: Document = {"items": [{"k": "a", "v": 3}, {"k": "b", "v": 1}]}
    assert refusals(schema, {"items": [{"k": "b", "v": 2}, {"k": "a", "v": 1}]}, before) == [
        "spec.items[1]: Invalid value: v may only grow"
    ]


def test_set_lists_are_equal_in_any_order() -> None:
    names: Document = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
    schema = spec_schema(rule("self.names == ['a', 'b']"), names=names)
    assert refusals(schema, {"names": ["b", "a"]}) == []
    assert refusals(schema, {"names": ["b"]}) == ["spec: Invalid value: failed rule: self.names == ['a', 'b']"]


def test_property_names_are_escaped_to_cel_identifiers() -> None:
    assert escaped("a-b.c/d") == "a__dash__b__dot__c__slash__d"
    assert escaped("x__y") == "x__underscores__y"
    assert escaped("namespace") == "__namespace__"
    assert escaped("1a") is None


def test_the_maximum_list_size_is_derived_from_the_schema() -> None:
    kind = schema_type({"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": TEXT}}})
    assert kind is not None
    assert kind.most == (3 * 1024 * 1024 - 2) // (2 + len("a") + 2 + 4 + 1)


# --- definitions ------------------------------------------------------------------------------------------------------


def definition(schema: Document) -> Document:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param(rule("self.nope == 1"), "undefined field 'nope'", id="an unknown field"),
        pytest.param(rule("self.n"), "cel expression must evaluate to a bool", id="not a condition"),
        pytest.param(rule("self.n == 'a'"), "found no matching overload", id="types that do not fit"),
        pytest.param(
            rule("self.n > 5", optionalOldSelf=True), "may not be set if oldSelf is not used in rule", id="no old value"
        ),
        pytest.param(
            rule("self.many.all(x, self.many.all(y, x == y))"),
            "estimated rule cost exceeds budget by factor of more than 100x",
            id="a rule that costs too much",
        ),
        pytest.param(
            rule("self.n > 5", messageExpression="self.n"),
            "messageExpression must evaluate to a string",
            id="a message",
        ),
    ],
)
def test_a_definition_with_an_invalid_rule_is_refused(written: Document, want: str) -> None:
    many: Document = {"type": "array", "items": {"type": "string"}}
    answer = Client().post(DEFINITIONS, definition(spec_schema(written, many=many)))
    assert answer.status == 422
    assert want in str(answer.at("message"))


def test_rules_are_enforced_through_the_api() -> None:
    client = Client()
    schema = spec_schema(rule("self.n < 100", message="n is large"))
    assert client.post(DEFINITIONS, definition(schema)).status == 201
    widget: Document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"n": 100}}
    answer = client.post(WIDGETS, widget)
    assert answer.status == 422
    assert answer.at("message") == 'Widget.example.com "a" is invalid: spec: Invalid value: n is large'
    assert client.post(WIDGETS, {**widget, "spec": {"n": 1}}).status == 201


def test_rules_are_skipped_for_objects_that_violate_their_schema() -> None:
    client = Client()
    client.post(DEFINITIONS, definition(spec_schema(rule("self.n < 100"))))
    widget: Document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"n": "x"}}
    message = str(client.post(WIDGETS, widget).at("message"))
    assert "some validation rules were not checked because the object was invalid" in message
