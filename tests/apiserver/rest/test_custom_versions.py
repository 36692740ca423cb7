"""Custom resources whose versions have different schemas and subresources: apply, field managers, Scales and dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.base.plain_data import Document
from tests.apiserver.client import APPLY, JSON_PATCH, MERGE, Client

GROUP = "example.com"
SPEC: Document = {
    "size": {"type": "integer"},
    "color": {"type": "string"},
    "mode": {"type": "string", "default": "auto"},
    "replicas": {"type": "integer"},
    "since": {"type": "string", "format": "date-time"},
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
}
SUBRESOURCES: Document = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
}


def version(name: str, fields: Document, subresources: Document, *, storage: bool = False) -> Document:
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}, "status": status}}
    found: Document = {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}
    return found | ({"subresources": subresources} if subresources else {})


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def client_with_gizmos(*, second: Document) -> Client:
    """Return a client of an API with gizmos in v1, which is stored, and in v2, which has these subresources."""
    client = Client()
    names = {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"}
    versions = [
        version("v1", SPEC, SUBRESOURCES, storage=True),
        version("v2", {**SPEC, "extra": {"type": "string"}}, second),
    ]
    spec: Document = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gizmos.{GROUP}"},
        "spec": spec,
    }
    assert client.post(DEFINITIONS, definition).status == 201
    return client


def path(name: str = "m", served: str = "v1") -> str:
    return f"/apis/{GROUP}/{served}/namespaces/default/gizmos/{name}"


def gizmo(spec: Document, served: str = "v1", **metadata: object) -> Document:
    return {"apiVersion": f"{GROUP}/{served}", "kind": "Gizmo", "metadata": {"name": "m", **metadata}, "spec": spec}


def owners(client: Client) -> dict[str, object]:
    """Return the field sets by manager, version and subresource."""
    entries = client.get(path()).at("metadata.managedFields")
    assert isinstance(entries, list)
    return {
        " ".join((each["manager"], each["apiVersion"].rpartition("/")[2], each.get("subresource", ""))).strip(): each[
            "fieldsV1"
        ]
        for each in entries
    }


def test_apply_in_another_version_removes_only_fields_that_nobody_else_owns() -> None:
    client = client_with_gizmos(second=SUBRESOURCES)
    client.patch(f"{path()}?fieldManager=one", gizmo({"size": 1, "color": "red"}), APPLY)
    client.patch(f"{path()}?fieldManager=two", gizmo({"color": "red", "tags": ["a"]}), APPLY)
    answer = client.patch(f"{path(served='v2')}?fieldManager=one", gizmo({}, "v2"), APPLY)
    assert answer.at("spec") == {"color": "red", "mode": "auto", "tags": ["a"]}


def test_apply_keeps_fields_that_are_owned_in_another_version() -> None:
    client = client_with_gizmos(second=SUBRESOURCES)
    client.patch(f"{path()}?fieldManager=one", gizmo({"size": 1, "color": "red"}), APPLY)
    client.patch(f"{path(served='v2')}?fieldManager=two", gizmo({"size": 1}, "v2"), APPLY)
    answer = client.patch(f"{path()}?fieldManager=one", gizmo({"color": "red"}), APPLY)
    assert answer.at("spec.size") == 1


def test_apply_names_the_step_that_cannot_convert_the_object() -> None:
    client = client_with_gizmos(second=SUBRESOURCES)
    client.patch(f"{path()}?fieldManager=other", gizmo({"color": "red"}), APPLY)
    client.patch(f"{path(served='v2')}?fieldManager=one", gizmo({"size": 1}, "v2"), APPLY)
    answer = client.patch(f"{path(served='v2')}?fieldManager=one", gizmo({"extra": "x"}, "v2"), APPLY)
    what = (
        "failed to prune fields: failed add back owned items: failed to convert merged object at version example.com/v1"
    )
    assert (answer.status, answer.at("message")) == (500, f"{what}: .spec.extra: field not declared in schema")


@pytest.mark.parametrize(
    ("second", "want"),
    [
        pytest.param(SUBRESOURCES, {"f:spec": {"f:size": {}}}, id="the version has a status"),
        pytest.param({}, None, id="the version has no status"),
    ],
)
def test_status_endpoint_protects_the_owners_of_versions_with_a_status(second: Document, want: object) -> None:
    client = client_with_gizmos(second=second)
    client.patch(f"{path(served='v2')}?fieldManager=one", gizmo({"size": 1}, "v2"), APPLY)
    change = {"spec": {"size": 2}, "status": {"replicas": 1}}
    assert client.patch(f"{path()}/status", change).at("spec.size") == 1
    assert owners(client).get("one v2") == want


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param({"metadata": {"managedFields": []}}, MERGE, id="merge patch"),
        pytest.param([{"op": "remove", "path": "/metadata/managedFields/0"}], JSON_PATCH, id="JSON patch"),
    ],
)
def test_an_empty_list_does_not_reset_the_field_managers(body: object, content_type: str) -> None:
    client = client_with_gizmos(second=SUBRESOURCES)
    client.patch(f"{path()}?fieldManager=one", gizmo({"size": 1}), APPLY)
    assert client.patch(path(), body, content_type).status == 200
    assert owners(client) == {"one v1": {"f:spec": {"f:size": {}}}}


def test_dry_runs_drop_fields_that_the_stored_version_lacks() -> None:
    client = client_with_gizmos(second=SUBRESOURCES)
    collection = f"/apis/{GROUP}/v2/namespaces/default/gizmos"
    created = client.post(f"{collection}?dryRun=All", gizmo({"size": 1, "extra": "x"}, "v2"))
    assert created.at("spec") == {"size": 1, "mode": "auto"}
    client.post(collection, gizmo({"size": 1}, "v2"))
    changed = client.patch(f"{path(served='v2')}?dryRun=All", {"spec": {"size": 2, "extra": "x"}})
    assert changed.at("spec") == {"size": 2, "mode": "auto"}


def test_a_scale_that_creates_the_spec_sets_its_defaults() -> None:
    client = client_with_gizmos(second=SUBRESOURCES)
    config = gizmo({})
    del config["spec"]
    client.patch(f"{path()}?fieldManager=one", config, APPLY)
    assert client.patch(f"{path()}/scale", {"spec": {"replicas": 2}}).status == 200
    assert client.get(path()).at("spec") == {"mode": "auto", "replicas": 2}


def test_a_scale_leaves_the_owners_of_versions_without_a_scale() -> None:
    client = client_with_gizmos(second={"status": {}})
    client.patch(f"{path(served='v2')}?fieldManager=one", gizmo({"replicas": 1}, "v2"), APPLY)
    client.patch(f"{path()}/scale", {"spec": {"replicas": 2}})
    assert owners(client) == {"one v2": {"f:spec": {"f:replicas": {}}}}


@pytest.mark.parametrize(
    ("method", "rest", "status"),
    [
        pytest.param("GET", "m/zip", 404, id="an unknown subresource"),
        pytest.param("DELETE", "m/status", 405, id="an unsupported verb"),
        pytest.param("PATCH", "", 400, id="no name"),
    ],
)
def test_errors_about_the_path_have_the_warning_of_a_deprecated_version(method: str, rest: str, status: int) -> None:
    client = client_with_gizmos(second={"status": {}})
    deprecated = [{"op": "add", "path": "/spec/versions/0/deprecated", "value": True}]
    assert client.patch(f"{DEFINITIONS}/gizmos.{GROUP}", deprecated, JSON_PATCH).status == 200
    answer = client.call(method, path(rest).rstrip("/"), {}, content_type=MERGE)
    assert answer.status == status
    want = f'299 - "{GROUP}/v1 Gizmo is deprecated; use {GROUP}/v2 Gizmo"'
    assert ("warning", want) in answer.headers


def test_further_segments_of_a_path_are_ignored() -> None:
    client = client_with_gizmos(second={"status": {}})
    client.post(f"/apis/{GROUP}/v1/namespaces/default/gizmos", gizmo({"size": 1}))
    assert client.get(f"{path()}/status/x").at("spec.size") == 1


@pytest.mark.parametrize(
    ("webhook", "status"),
    [
        pytest.param({}, 200, id="without values"),
        pytest.param({"clientConfig": {}}, 422, id="with an empty client"),
    ],
)
def test_a_webhook_of_a_definition_that_is_not_converted_by_it(webhook: Document, status: int) -> None:
    client = client_with_gizmos(second={"status": {}})
    answer = client.patch(f"{DEFINITIONS}/gizmos.{GROUP}", {"spec": {"conversion": {"webhook": webhook}}})
    assert answer.status == status
    assert client.get(f"{DEFINITIONS}/gizmos.{GROUP}").at("spec.conversion") == {"strategy": "None"}


def test_items_of_a_list_in_place_of_another_type_have_only_unknown_fields() -> None:
    client = client_with_gizmos(second={"status": {}})
    answer = client.post(f"/apis/{GROUP}/v1/namespaces/default/gizmos", gizmo({"size": [{"a": 1}], "color": {"b": 2}}))
    assert answer.status == 422
    assert [value for name, value in answer.headers if name == "warning"] == [
        f'299 - "unknown field \\"spec.{name}\\""' for name in ("color.b", "size[0].a")
    ]


def test_an_applied_text_with_a_format_must_be_a_scalar() -> None:
    client = client_with_gizmos(second={"status": {}})
    answer = client.patch(f"{path()}?fieldManager=me", gizmo({"since": [1]}), APPLY)
    assert str(answer.at("message")).endswith(".spec.since: expected any scalar, got &{[1]}")


@pytest.mark.parametrize("address", ["/apis", f"/apis/{GROUP}"])
def test_the_versions_of_a_group_are_listed_in_their_priority(address: str) -> None:
    """The order is that of kube-apiserver v1.36.3 for the same definition."""
    want = [
        "v10",
        "v3",
        "v2",
        "v10beta3",
        "v10beta2",
        "v11alpha2",
        "v1alpha10",
        "v1alpha9",
        "bar",
        "foo10",
        "v12gamma1",
        "v3beta",
    ]
    client = client_with_gizmos(second={})
    names = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    spec: Document = {"group": GROUP, "scope": "Namespaced", "names": names}
    spec["versions"] = [
        version(name, {}, {}, storage=name == "v2") for name in [*sorted(want), "v99999999999999999999"]
    ]
    definition: Document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    assert client.delete(f"{DEFINITIONS}/gizmos.{GROUP}").status == 200
    assert client.post(DEFINITIONS, definition | {"metadata": {"name": f"gears.{GROUP}"}, "spec": spec}).status == 201

    found: Any = client.get(address).document
    group = next(each for each in found.get("groups", [found]) if each["name"] == GROUP)
    assert [each["version"] for each in group["versions"]] == [*want, "v99999999999999999999"]
    assert group["preferredVersion"]["version"] == "v10"
