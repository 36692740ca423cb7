"""Custom resources whose versions change after objects were stored (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

from bayplan.base.plain_data import Document
from tests.apiserver.client import APPLY, Client
from tests.apiserver.rest.test_custom_versions import DEFINITIONS, GROUP, path, version

NAME = f"{DEFINITIONS}/gizmos.{GROUP}"
TEXT: Document = {"type": "string"}
BOTH: Document = {"a": TEXT, "b": TEXT}
LABEL: Document = {"metadata": {"labels": {"x": "y"}}}


def versions(stored: str, **fields: Document) -> list[Document]:
    return [version(name, each, {}, storage=name == stored) for name, each in fields.items()]


def make_client(stored: str, **fields: Document) -> Client:
    """Return a client of an API with gizmos in versions with these fields."""
    client = Client()
    names = {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"}
    spec: Document = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions(stored, **fields)}
    metadata = {"name": f"gizmos.{GROUP}"}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    assert client.post(DEFINITIONS, {**head, "metadata": metadata, "spec": spec}).status == 201
    return client


def create(client: Client, served: str, spec: Document, **metadata: object) -> None:
    body = {"apiVersion": f"{GROUP}/{served}", "kind": "Gizmo", "metadata": {"name": "m", **metadata}, "spec": spec}
    assert client.post(path("", served).rstrip("/"), body).status == 201


def change(client: Client, found: list[Document]) -> None:
    assert client.patch(NAME, {"spec": {"versions": found}}).status == 200


def remove_version(client: Client, name: str) -> None:
    assert client.patch(f"{NAME}/status", {"status": {"storedVersions": [name]}}).status == 200
    change(client, versions(name, **{name: BOTH}))


def managers(client: Client, served: str) -> object:
    found = client.get(path("m", served)).at("metadata.managedFields")
    return [each["apiVersion"].rpartition("/")[2] for each in found] if isinstance(found, list) else None


def test_a_manager_of_a_removed_version_ends_tracking_in_updates_and_fails_applies() -> None:
    client = make_client("v1", v1=BOTH, v2=BOTH)
    create(client, "v2", {"a": "1"})
    remove_version(client, "v1")

    config = {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": {"name": "m"}, "spec": {"b": "2"}}
    applied = client.patch(f"{path()}?fieldManager=x", config, APPLY)
    text = f"request to convert CR to an invalid group/version: {GROUP}/v2"
    assert (applied.status, applied.at("message")) == (500, text)

    assert managers(client, "v1") == ["v2"]
    assert client.patch(path(), LABEL).status == 200
    assert managers(client, "v1") is None


def test_a_scale_drops_managers_of_removed_versions() -> None:
    scale: Document = {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    fields: Document = {"n": {"type": "integer"}, "a": TEXT}
    client = make_client("v1", v1=fields, v2=fields)
    create(client, "v2", {"n": 1})
    found = [version("v1", fields, scale, storage=True)]
    change(client, found)
    assert client.patch(f"{path()}/scale", {"spec": {"replicas": 2}}).status == 200
    assert managers(client, "v1") is None


def test_the_answer_to_a_scale_lacks_replicas_that_the_stored_version_does_not_have() -> None:
    client = make_client("v1", v1={"a": TEXT}, v2={"a": TEXT})
    create(client, "v1", {"a": "1"})
    scale: Document = {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    change(client, [*versions("v1", v1={"a": TEXT}), version("v2", {"a": TEXT, "n": {"type": "integer"}}, scale)])
    assert client.patch(f"{path('m', 'v2')}/scale", {"spec": {"replicas": 2}}).at("spec") == {}


def test_a_deleted_definition_without_served_versions_takes_its_objects_along() -> None:
    client = make_client("v1", v1=BOTH)
    create(client, "v1", {"a": "1"})
    found = versions("v1", v1=BOTH)
    found[0]["served"] = False
    change(client, found)
    assert client.delete(NAME).status == 200
    assert client.get(NAME).status == 404


def test_strict_validation_reports_no_unknown_fields_of_another_kind() -> None:
    client = make_client("v1", v1=BOTH)
    create(client, "v1", {"a": "1"})
    other = {"apiVersion": f"{GROUP}/v1", "kind": "Other", "metadata": {"name": "m"}, "spec": {"z": 1}}
    assert client.put(f"{path()}?fieldValidation=Strict", other).status == 422


def test_a_manager_of_a_version_that_is_no_longer_served_stays() -> None:
    client = make_client("v1", v1=BOTH, v2=BOTH)
    create(client, "v2", {"a": "1"})
    found = versions("v1", v1=BOTH, v2=BOTH)
    found[1]["served"] = False
    change(client, found)
    assert client.patch(path(), LABEL).status == 200
    assert managers(client, "v1") == ["v1", "v2"]


def test_discovery_has_no_hash_of_a_stored_version_that_is_not_served() -> None:
    found = versions("v1", v1=BOTH, v2=BOTH)
    client = make_client("v1", v1=BOTH, v2=BOTH)
    assert client.get(f"/apis/{GROUP}/v2").at("resources.0.storageVersionHash")
    found[0]["served"] = False
    change(client, found)
    assert client.get(f"/apis/{GROUP}/v2").at("resources.0.storageVersionHash") is None


def test_an_object_is_read_by_the_schema_of_the_version_in_which_it_is_stored() -> None:
    client = make_client("v1", v1=BOTH, v2=BOTH)
    create(client, "v1", {"a": "1", "b": "2"})
    change(client, versions("v2", v1=BOTH, v2=BOTH))
    # The first version loses a field, and gains one with a default.
    change(client, versions("v2", v1={"b": TEXT, "c": {"type": "string", "default": "d"}}, v2={**BOTH, "c": TEXT}))
    assert client.get(path("m", "v2")).at("spec") == {"b": "2", "c": "d"}

    # A write without changes stores the object in the current version.
    before = client.get(path("m", "v2")).at("metadata.resourceVersion")
    assert client.patch(path("m", "v2"), {}).at("metadata.resourceVersion") != before
    change(client, versions("v2", v1={}, v2={**BOTH, "c": TEXT}))
    assert client.get(path("m", "v2")).at("spec") == {"b": "2", "c": "d"}


def test_a_write_without_changes_drops_fields_that_the_version_of_the_request_lacks() -> None:
    client = make_client("v1", v1=BOTH, v2={"b": TEXT})
    create(client, "v1", {"a": "1", "b": "2"})
    assert client.patch(f"{path('m', 'v2')}?dryRun=All", {}).at("spec") == {"b": "2"}
    assert client.get(path()).at("spec") == {"a": "1", "b": "2"}
    version_before = client.get(path()).at("metadata.resourceVersion")
    assert client.patch(path("m", "v2"), {}).at("metadata.resourceVersion") != version_before
    assert client.get(path()).at("spec") == {"b": "2"}
    version_before = client.get(path()).at("metadata.resourceVersion")
    assert client.patch(path("m", "v2"), {}).at("metadata.resourceVersion") == version_before


def test_objects_can_be_created_again_when_only_other_finalizers_hold_a_deleted_definition() -> None:
    client = make_client("v1", v1=BOTH)
    create(client, "v1", {"a": "1"}, finalizers=["example.com/a"])
    assert client.patch(NAME, {"metadata": {"finalizers": ["example.com/f"]}}).status == 200
    assert client.delete(NAME).status == 200
    late = {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": {"name": "late"}}
    collection = path("").rstrip("/")
    assert client.post(collection, late).status == 403
    assert client.patch(path(), {"metadata": {"finalizers": None}}).status == 200
    assert client.post(collection, late).status == 201
    assert "create" in str(client.get(f"/apis/{GROUP}/v1").at("resources.0.verbs"))
