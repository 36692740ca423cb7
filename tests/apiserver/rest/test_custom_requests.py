"""Requests for custom resources (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

from typing import cast

import pytest

from bayplan.base.plain_data import part
from tests.apiserver.client import APPLY, MERGE, Client, Document

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"
INTEGER: Document = {"type": "integer"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"
SCALE: Document = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "g"}}


def schema(**properties: Document) -> Document:
    """Return the schema of an object with a spec with these properties and a status."""
    status = {"type": "object", "properties": {"replicas": INTEGER}}
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}, "status": status},
    }


def make_client(*versions: Document, **properties: Document) -> Client:
    """Return a client of an API with the resource `gadgets`."""
    shown: Document = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema(size=INTEGER, **properties)},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
        },
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [shown, *({**shown, "storage": False, **each} for each in versions)],
    }
    client = Client()
    assert client.post(DEFINITIONS, {"metadata": {"name": "gadgets.example.com"}, "spec": spec}).status == 201
    return client


def gadget(name: str = "g", **spec: object) -> Document:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("of_field", "value", "want"),
    [
        pytest.param({"x-kubernetes-int-or-string": True}, None, {}, id="a number or text"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, None, {}, id="a field of any type"),
        pytest.param(
            {"type": "array", "items": {**INTEGER, "default": 7}}, [None, 1], {"x": [7, 1]}, id="an item with a default"
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {**INTEGER, "default": 8}},
            {"a": None},
            {"x": {"a": 8}},
            id="a value of a map with a default",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": INTEGER}, {"a": None}, {"x": {}}, id="a value of a map"
        ),
    ],
)
def test_nulls_are_dropped_or_replaced_by_the_default(of_field: Document, value: object, want: Document) -> None:
    client = make_client(x=of_field)

    assert client.post(GADGETS, gadget(x=value)).at("spec") == want


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        pytest.param("PUT", GADGETS, 400, "name must be provided", id="an update without a name"),
        pytest.param("PATCH", GADGETS, 400, "name must be provided", id="a patch without a name"),
        pytest.param("POST", f"{GADGETS}/other", 201, None, id="a create ignores the name"),
        pytest.param(
            "DELETE",
            f"{GADGETS}/g/scale",
            405,
            'delete is not supported on resources of kind "gadgets.example.com"',
            id="a deletion of a scale",
        ),
        pytest.param(
            "OPTIONS",
            f"{GADGETS}/g",
            405,
            ' is not supported on resources of kind "gadgets.example.com"',
            id="another method",
        ),
        pytest.param("HEAD", f"{GADGETS}/g", 200, None, id="a HEAD is a GET"),
    ],
)
def test_the_method_alone_determines_the_verb(method: str, path: str, status: int, message: str | None) -> None:
    client = make_client()
    client.post(GADGETS, gadget(size=1))

    body = gadget("h") if method == "POST" else {} if method[0] == "P" else None
    answer = client.call(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")

    assert answer.status == status
    assert answer.at("message") == message
    assert status != 405 or answer.at("details") == {"group": "example.com", "kind": "gadgets"}


def test_an_unknown_format_is_refused_without_details() -> None:
    answer = make_client().get(GADGETS, accept="text/html")

    assert (answer.status, answer.at("details")) == (406, None)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        pytest.param([], "json: cannot unmarshal array into Go value of type v1.ObjectMeta", id="a list"),
        pytest.param("x", "json: cannot unmarshal string into Go value of type v1.ObjectMeta", id="a text"),
    ],
)
def test_metadata_of_another_type_cannot_be_decoded(metadata: object, problem: str) -> None:
    intro = 'Gadget in version "v1" cannot be handled as a Gadget: '
    inner: Document = {"type": "object", "x-kubernetes-embedded-resource": True}
    client = make_client(inner={**inner, "x-kubernetes-preserve-unknown-fields": True})

    found = client.post(GADGETS, {**gadget(), "metadata": metadata})
    assert found.at("message") == f"{intro}{problem}"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    shown = "[]" if isinstance(metadata, list) else '"x"'
    found = client.post(GADGETS, gadget(inner=pod))
    assert found.at("message") == f"{intro}spec.inner.metadata: Invalid value: {shown}: {problem}"


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        pytest.param({"kind": None}, 422, "Object 'Kind' is missing in '{\"apiVersion\"", id="no kind"),
        pytest.param(
            {"kind": 5}, 422, "json: cannot unmarshal number into Go struct field .kind of type string", id="a number"
        ),
        pytest.param({"apiVersion": None}, 500, "Object 'apiVersion' is missing in 'object has no", id="no version"),
        pytest.param({"apiVersion": "a/b/c"}, 422, "unexpected GroupVersion string: a/b/c", id="two slashes"),
        pytest.param({"kind": "Z", "apiVersion": "x/v1"}, 422, 'Z.x "g" is invalid: [kind: Invalid', id="other ones"),
    ],
)
def test_a_patch_keeps_kind_and_version(change: Document, status: int, message: str) -> None:
    client = make_client()
    client.post(GADGETS, gadget())

    answer = client.patch(f"{GADGETS}/g", change)

    assert answer.status == status
    assert message in str(answer.at("message"))


def test_a_patch_of_the_status_may_change_the_kind() -> None:
    client = make_client()
    client.post(GADGETS, gadget())

    answer = client.patch(f"{GADGETS}/g/status", {"kind": "Other", "status": {"replicas": 2}})

    assert (answer.status, answer.at("kind"), answer.at("status.replicas")) == (200, "Gadget", 2)


def test_an_unreadable_scale_of_a_custom_resource_is_refused_without_a_reason() -> None:
    client = make_client()
    client.post(GADGETS, gadget(size=1))

    answer = client.put(f"{GADGETS}/g/scale", {**SCALE, "spec": {"replicas": "x"}})

    why = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
    assert (answer.status, answer.at("message")) == (400, why)


@pytest.mark.parametrize(
    ("size", "replicas", "status", "message"),
    [
        pytest.param(1, 1, 200, None, id="nothing changes"),
        pytest.param(
            1, 2, 500, "failed to convert new object (/g; autoscaling/v1, Kind=Scale) to proper", id="a change"
        ),
        pytest.param(
            None,
            2,
            500,
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind",
            id="no manager",
        ),
    ],
)
def test_an_applied_scale_of_a_custom_resource_cannot_change_it(
    size: int | None, replicas: int, status: int, message: str | None
) -> None:
    client = make_client()
    client.post(GADGETS, gadget() if size is None else gadget(size=size))

    scale = {**SCALE, "spec": {"replicas": replicas}}
    answer = client.patch(f"{GADGETS}/g/scale?fieldManager=m&force=true", scale, APPLY)

    assert answer.status == status
    assert message is None or message in str(answer.at("message"))


def test_the_table_of_a_custom_scale_has_other_formats() -> None:
    client = make_client()
    client.post(GADGETS, gadget(size=1))

    answer = client.get(f"{GADGETS}/g/scale", accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    assert (answer.at("columnDefinitions.0.format"), answer.at("columnDefinitions.3.type")) == ("name", "date")


def test_undeclared_fields_of_atomic_maps_cannot_be_applied() -> None:
    atomic: Document = {"type": "object", "properties": {"a": INTEGER}, "x-kubernetes-map-type": "atomic"}
    client = make_client(inner=atomic)

    answer = client.patch(f"{GADGETS}/g?fieldManager=m", gadget(inner={"b": 1}), APPLY)

    assert str(answer.at("message")).endswith(".spec.inner.b: field not declared in schema")


def test_an_object_that_does_not_fit_its_schema_has_no_managers() -> None:
    answer = make_client().post(GADGETS, {**gadget(size=1), "status": 5})

    assert (answer.status, answer.at("metadata.managedFields")) == (201, None)


def test_errors_of_a_version_that_lacks_a_field_say_which_step_failed() -> None:
    client = make_client({"name": "v2", "schema": {"openAPIV3Schema": schema(size=INTEGER)}}, color=INTEGER)
    other: Document = {**gadget(size=1), "apiVersion": "example.com/v2"}
    path = GADGETS.replace("/v1/", "/v2/")
    assert client.patch(f"{path}/g?fieldManager=a", other, APPLY).status == 201

    answer = client.patch(f"{GADGETS}/g?fieldManager=b", gadget(color=1), APPLY)
    assert answer.at("message") == "failed to convert new object: .spec.color: field not declared in schema"
    answer = client.patch(f"{GADGETS}/g?fieldManager=a", gadget(color=1), APPLY)
    why = "failed to prune fields: failed to convert merged object to last applied version"
    assert answer.at("message") == f"{why}: .spec.color: field not declared in schema"


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        pytest.param({"a": {"b": 1}}, 5, {}, id="a number replaces a map"),
        pytest.param(5, {"a": {"b": 1}}, {".": {}, "f:a": {".": {}, "f:b": {}}}, id="a map replaces a number"),
    ],
)
def test_a_value_of_another_type_is_modified_as_a_whole(before: object, after: object, fields: Document) -> None:
    client = make_client(any={"x-kubernetes-preserve-unknown-fields": True})
    client.patch(f"{GADGETS}/g?fieldManager=m", gadget(any=before), APPLY)

    conflicts = isinstance(after, dict)
    path = f"{GADGETS}/g?fieldManager=n&dryRun=All"
    assert client.patch(path, gadget(any=after), APPLY).status == (409 if conflicts else 200)
    answer = client.patch(f"{GADGETS}/g", {"spec": {"any": after}})

    assert answer.at("metadata.managedFields.0.fieldsV1") == {"f:spec": {"f:any": fields}}


def test_a_definition_with_a_name_in_use_is_not_served_until_the_name_is_free() -> None:
    client = make_client()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "tools", "singular": "tool", "kind": "Gadget", "listKind": "ToolList", "shortNames": ["gadgets"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    client.post(DEFINITIONS, {"metadata": {"name": "tools.example.com"}, "spec": spec})
    path = f"{DEFINITIONS}/tools.example.com"

    found = client.get(path)
    assert found.at("status.conditions.0.reason") == "KindConflict"
    assert found.at("status.conditions.0.message") == '"Gadget" is already in use'
    assert found.at("status.conditions.1.message") == "not all names are accepted"
    accepted = {"plural": "tools", "singular": "tool", "kind": "", "listKind": "ToolList"}
    assert found.at("status.acceptedNames") == accepted
    assert client.get("/apis/example.com/v1/tools").status == 404
    client.delete(f"{DEFINITIONS}/gadgets.example.com")
    assert client.get("/apis/example.com/v1/tools").status == 200
    assert client.get(path).at("status.acceptedNames") == client.get(path).at("spec.names")


def test_booleans_are_not_numbers() -> None:
    client = make_client(any={"x-kubernetes-preserve-unknown-fields": True})
    assert client.post(GADGETS, gadget(any=0, size=0)).status == 201

    changed = client.patch(f"{GADGETS}/g", {"spec": {"any": False}})
    assert (changed.at("spec.any"), changed.at("metadata.generation")) == (False, 2)

    refused = client.patch(f"{GADGETS}/g", {"spec": {"size": False}})
    assert refused.status == 422
    assert "must be of type integer" in str(refused.at("message"))


def test_unknown_fields_of_embedded_metadata_are_reported_last() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    client = make_client(a=embedded)
    sent = gadget(a={"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}}, zz=1)
    sent["metadata"] = {"name": "g", "y": 1}
    sent["extra"] = 1
    answer = client.post(f"{GADGETS}?fieldValidation=Strict", sent)
    fields = [f'unknown field "{path}"' for path in ("metadata.y", "extra", "spec.zz", "spec.a.metadata.x")]
    assert str(answer.at("message")).endswith(f"strict decoding error: {', '.join(fields)}")


def test_repeated_items_in_a_map_are_shown_with_its_key() -> None:
    unique = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    client = make_client(m={"type": "object", "additionalProperties": unique})
    assert client.post(GADGETS, gadget(m={"k": ["a", "a"]})).at("details.causes.0.field") == "spec.m[k][1]"


def test_rules_are_not_checked_without_a_name() -> None:
    client = make_client(x={**INTEGER, "x-kubernetes-validations": [{"rule": "self > 0"}]})
    sent = {**gadget(), "metadata": {}, "spec": {"x": 0}}
    causes = client.post(GADGETS, sent).at("details.causes")
    assert isinstance(causes, list)
    assert [each["field"] for each in causes] == ["metadata.name", "<nil>"]


def test_lists_have_the_kind_of_the_definition() -> None:
    client = make_client()
    client.patch(f"{DEFINITIONS}/gadgets.example.com", {"spec": {"names": {"listKind": "Collection"}}})
    assert client.get(GADGETS).at("kind") == "Collection"
    assert client.delete(GADGETS).at("kind") == "Collection"


@pytest.mark.parametrize("method", ["POST", "HEAD", "DELETE"])
def test_discovery_of_a_custom_version_ignores_the_method(method: str) -> None:
    assert make_client().call(method, "/apis/example.com/v1", {}, accept="application/*").status == 200


def test_objects_in_a_map_of_any_values_lose_all_fields() -> None:
    client = make_client(any={"type": "object", "additionalProperties": True})
    sent = gadget(any={"a": 1, "b": {"c": 2}, "d": [{"e": 3}, 4]})
    answer = client.call("POST", f"{GADGETS}?dryRun=All", sent)
    assert answer.at("spec") == {"any": {"a": 1, "b": {}, "d": [{}, 4]}}
    warnings = [value for name, value in answer.headers if name == "warning"]
    assert [each.partition("field ")[2] for each in warnings] == ['\\"spec.any.b.c\\""', '\\"spec.any.d[0].e\\""']


def test_a_schema_can_restrict_the_name() -> None:
    client = make_client()
    versions = cast("list[Document]", client.get(f"{DEFINITIONS}/gadgets.example.com").at("spec.versions"))
    name = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^[a-z]$"}}}
    found = schema()
    found["properties"] = {**part(found, "properties"), "metadata": name}
    versions[0]["schema"] = {"openAPIV3Schema": found}
    client.patch(f"{DEFINITIONS}/gadgets.example.com", {"spec": {"versions": versions}})
    assert client.post(GADGETS, gadget("g")).status == 201
    refused = client.post(GADGETS, gadget("long"))
    want = "Invalid value: \"long\": metadata.name in body should match '^[a-z]$'"
    assert (refused.status, refused.at("details.causes.0.message")) == (422, want)


def test_a_status_may_contain_invalid_embedded_objects() -> None:
    embedded: Document = {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True}
    client = make_client()
    versions = cast("list[Document]", client.get(f"{DEFINITIONS}/gadgets.example.com").at("spec.versions"))
    found = schema()
    found["properties"] = {**part(found, "properties"), "status": {"type": "object", "properties": {"e": embedded}}}
    versions[0]["schema"] = {"openAPIV3Schema": found}
    client.patch(f"{DEFINITIONS}/gadgets.example.com", {"spec": {"versions": versions}})
    client.post(GADGETS, gadget("g"))
    value = {"apiVersion": "v1", "kind": "C", "metadata": {"labels": {"a": "b c"}}}
    assert client.patch(f"{GADGETS}/g/status", {"status": {"e": value}}).status == 200


def test_an_unsupported_value_and_the_supported_ones_are_shown_as_go_does() -> None:
    client = make_client(x={"type": "array", "items": {"type": "object", PRESERVE: True}, "enum": [[{"a": "b"}]]})
    refused = client.post(GADGETS, gadget(x=[{"d": 1, "c": 2}]))
    want = 'Unsupported value: [{"c":2,"d":1}]: supported values: "[{\\"a\\":\\"b\\"}]"'
    assert refused.at("details.causes.0.message") == want


def test_unknown_fields_inside_a_preserving_object_can_be_applied_and_are_owned() -> None:
    inner: Document = {"type": "object", "properties": {"b": INTEGER}}
    client = make_client(x={"type": "object", PRESERVE: True, "properties": {"a": inner}})
    answer = client.patch(f"{GADGETS}/g?fieldManager=m", gadget(x={"a": {"b": 1, "c": 2}}), APPLY)
    assert (answer.status, answer.at("spec")) == (201, {"x": {"a": {"b": 1}}})
    owned = answer.at("metadata.managedFields.0.fieldsV1")
    assert owned == {"f:spec": {"f:x": {"f:a": {"f:b": {}, "f:c": {}}}}}


_ITEM: Document = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "n": {"type": "object", "properties": {"b": INTEGER}}},
}


@pytest.mark.parametrize(
    ("of_field", "sent", "want"),
    [
        pytest.param({"items": _ITEM, "default": [{"a": "x", "z": 1}]}, {}, [{"a": "x", "z": 1}], id="a default"),
        pytest.param({"items": _ITEM}, {"x": [{"z": 1}]}, [{"z": 1}], id="an object"),
        pytest.param(
            {"items": _ITEM}, {"x": [{"n": {"b": 1, "z": 2}}]}, [{"n": {"b": 1}}], id="but not the fields within it"
        ),
        pytest.param(
            {"items": {"type": "array", "items": _ITEM}},
            {"x": [[{"z": 1}]]},
            [[{"z": 1}]],
            id="an object in a nested list",
        ),
    ],
)
def test_a_list_can_preserve_unknown_fields_of_its_objects(of_field: Document, sent: Document, want: object) -> None:
    client = make_client(x={"type": "array", PRESERVE: True, **of_field})
    assert client.post(GADGETS, {**gadget(), "spec": sent}).at("spec.x") == want
