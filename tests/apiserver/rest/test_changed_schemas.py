"""Custom resources whose schema changed after they were stored (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import pytest

from tests.apiserver.client import APPLY, Answer, Client, Document
from tests.apiserver.rest.test_custom_requests import DEFINITIONS, GADGETS, gadget, make_client, schema

TEXT: Document = {"type": "string"}
INTEGER: Document = {"type": "integer"}
ANY: Document = {"x-kubernetes-preserve-unknown-fields": True}
KEYED: Document = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT}},
}
LABEL: Document = {"metadata": {"labels": {"a": "b"}}}


def change(client: Client, whole: Document | None = None, **properties: Document) -> None:
    """Replace the schema of `gadgets`."""
    versions = client.get(f"{DEFINITIONS}/gadgets.example.com").at("spec.versions")
    assert isinstance(versions, list)
    found = schema(size=INTEGER, **properties)
    versions[0]["schema"]["openAPIV3Schema"] = {**found, **(whole or {})}
    assert client.patch(f"{DEFINITIONS}/gadgets.example.com", {"spec": {"versions": versions}}).status == 200


def apply(client: Client, **spec: object) -> Answer:
    return client.patch(f"{GADGETS}/g?fieldManager=m&force=true", gadget("g", **spec), APPLY)


def test_an_object_that_no_longer_fits_cannot_be_applied() -> None:
    client = make_client(x=TEXT)
    client.post(GADGETS, gadget(x="a"))
    change(client, x=INTEGER)
    identity = "(default/g; example.com/v1, Kind=Gadget)"

    tracked = apply(client, x=1)
    assert (tracked.status, tracked.at("message")) == (
        500,
        f"failed to create typed live object {identity}: .spec.x: expected numeric (int or float), got string",
    )

    # An update does not track an object that does not fit.
    assert client.patch(f"{GADGETS}/g", LABEL).at("metadata.managedFields") is None
    untracked = apply(client, x=1)
    assert untracked.at("message") == (
        "failed to create manager for existing fields: failed to convert new object "
        f"{identity} to smd typed: .spec.x: expected numeric (int or float), got string"
    )


def test_a_scale_keeps_the_managers_of_an_object_that_no_longer_fits() -> None:
    client = make_client(x=TEXT)
    client.post(GADGETS, gadget(x="a", size=1))
    change(client, x=INTEGER)
    assert client.patch(f"{GADGETS}/g/scale", {"spec": {"replicas": 2}}).status == 200
    managers = client.get(f"{GADGETS}/g").at("metadata.managedFields")
    assert isinstance(managers, list)
    assert {each.get("subresource", "") for each in managers} == {"", "scale"}


def test_a_write_without_changes_drops_fields_that_the_schema_has_lost() -> None:
    client = make_client(x=TEXT)
    client.post(GADGETS, gadget(x="a"))
    change(client)
    before = client.get(f"{GADGETS}/g").at("metadata.resourceVersion")
    assert client.patch(f"{GADGETS}/g", {}).at("metadata.resourceVersion") != before
    change(client, x=TEXT)
    assert client.get(f"{GADGETS}/g").at("spec") == {}


def test_booleans_and_numbers_have_different_owners() -> None:
    client = make_client(x=ANY)
    client.post(GADGETS, gadget(x={"y": False}, size=1))
    found = apply(client, x={"y": 0}).at("metadata.managedFields")
    assert isinstance(found, list)
    assert found[1]["fieldsV1"]["f:spec"] == {".": {}, "f:size": {}, "f:x": {}}


@pytest.mark.parametrize(
    ("before", "spec", "after", "status"),
    [
        pytest.param(TEXT, {"x": "long"}, {**TEXT, "maxLength": 1}, 200, id="an unchanged text"),
        pytest.param(
            {"type": "object", "properties": {"y": TEXT}},
            {"x": {"y": "a"}},
            {"type": "object", "properties": {"y": TEXT, "z": TEXT}, "required": ["z"]},
            200,
            id="an unchanged object",
        ),
        pytest.param(
            {"type": "object", "properties": {"y": ANY}},
            {"x": {"y": {"a": 1}}},
            {"type": "object", "properties": {"y": ANY, "z": TEXT}, "required": ["z"]},
            422,
            id="an object with fields without a schema",
        ),
        pytest.param(KEYED, {"x": [{"k": "a"}, {"k": "b"}]}, {**KEYED, "maxItems": 1}, 200, id="a keyed list"),
        pytest.param(
            {"type": "array", "items": TEXT}, {"x": ["a", "b"]}, KEYED, 422, id="a list that has become a keyed list"
        ),
        pytest.param(
            {"type": "object", "properties": {"y": ANY, "z": TEXT}},
            {"x": {"y": {"a": 1}, "z": "a"}},
            {
                "type": "object",
                "properties": {"y": ANY, "z": TEXT},
                "x-kubernetes-validations": [{"rule": "self.z == 'b'"}],
            },
            422,
            id="a rule about an object with fields without a schema",
        ),
    ],
)
def test_unchanged_values_may_break_new_rules(before: Document, spec: Document, after: Document, status: int) -> None:
    client = make_client(x=before)
    assert client.post(GADGETS, gadget("g", **spec)).status == 201
    change(client, x=after)
    assert client.patch(f"{GADGETS}/g", LABEL).status == status


def test_new_required_fields_of_the_root_are_always_checked() -> None:
    client = make_client()
    client.post(GADGETS, gadget())
    change(client, {"required": ["status"]})
    assert client.patch(f"{GADGETS}/g", LABEL).status == 422


def test_managers_own_a_map_as_a_whole_after_it_became_atomic() -> None:
    client = make_client(x={"type": "object", "properties": {"a": TEXT, "b": TEXT}})
    apply(client, x={"a": "1", "b": "2"})
    change(client, x={"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": TEXT, "b": TEXT}})
    found = client.patch(f"{GADGETS}/g", LABEL).at("metadata.managedFields.0.fieldsV1")
    assert found == {"f:spec": {"f:x": {}}}


def test_a_scale_in_another_version_keeps_the_version_of_an_applied_number() -> None:
    client = make_client({"name": "v2"})
    apply(client, size=2)
    assert client.patch(f"{GADGETS.replace('v1', 'v2')}/g/scale", {"spec": {"replicas": 2}}).status == 200
    assert client.get(f"{GADGETS}/g").at("metadata.managedFields.0.apiVersion") == "example.com/v1"
