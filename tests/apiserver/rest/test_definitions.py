"""Definitions of custom resources: their deletion, their versions, and objects of other kinds and versions."""

from __future__ import annotations

from typing import cast
from urllib.parse import quote

import pytest

from bayplan.apiserver.rest.loading import load_documents
from bayplan.formats.manifest import PlainObject
from tests.apiserver.client import APPLY, MERGE, Client, Document, names

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT: Document = {"type": "string"}


def version(name: str, *, storage: bool, **properties: Document) -> Document:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def widget(api_version: str, spec: Document | None = None, **metadata: object) -> Document:
    body: Document = {
        "apiVersion": f"example.com/{api_version}",
        "kind": "Widget",
        "metadata": {"name": "w", **metadata},
    }
    return body if spec is None else {**body, "spec": spec}


def path_of(api_version: str) -> str:
    return f"/apis/example.com/{api_version}/namespaces/default/widgets"


@pytest.fixture
def client() -> Client:
    client = Client()
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version("v1", storage=False, a=TEXT, b=TEXT), version("v2", storage=True, a=TEXT, c=TEXT)],
    }
    assert client.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec}).status == 201
    return client


def test_a_field_that_the_stored_version_lacks_is_dropped(client: Client) -> None:
    created = client.post(path_of("v1"), widget("v1", {"a": "1", "b": "2"}))
    assert created.at("spec") == {"a": "1"}
    assert client.get(f"{path_of('v2')}/w").at("spec") == {"a": "1"}
    client.patch(f"{path_of('v2')}/w", {"spec": {"c": "3"}}, MERGE)
    assert client.get(f"{path_of('v1')}/w").at("spec") == {"a": "1"}
    assert client.get(path_of("v1")).at("items.0.spec") == {"a": "1"}
    assert client.get(f"{path_of('v2')}/w").at("spec") == {"a": "1", "c": "3"}


def test_managers_of_another_version_lose_fields_and_cause_conflicts(client: Client) -> None:
    def applied(api_version: str, value: str, manager: str) -> Document:
        body = {
            "apiVersion": f"example.com/{api_version}",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"a": value},
        }
        return client.patch(f"{path_of(api_version)}/w?fieldManager={manager}", body, APPLY).document

    applied("v1", "1", "one")
    assert applied("v2", "2", "two")["reason"] == "Conflict"
    client.patch(f"{path_of('v2')}/w", {"spec": {"a": "3"}}, MERGE)
    entries = cast("list[Document]", client.get(f"{path_of('v2')}/w").at("metadata.managedFields"))
    assert [(each["manager"], each["apiVersion"]) for each in entries] == [("test", "example.com/v2")]


@pytest.mark.parametrize(
    ("api_version", "kind", "status", "message"),
    [
        pytest.param(
            "example.com/v1",
            "Gadget",
            422,
            'Gadget.example.com "w" is invalid: kind: Invalid value: "Gadget": must be Widget',
            id="another kind",
        ),
        pytest.param(
            "example.com/v2",
            "Widget",
            400,
            "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)",
            id="another version",
        ),
    ],
)
def test_an_object_of_another_kind_or_version_is_refused(
    client: Client, api_version: str, kind: str, status: int, message: str
) -> None:
    answer = client.post(path_of("v1"), {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}})
    assert (answer.status, answer.at("message")) == (status, message)


def test_a_deleted_definition_is_returned_as_terminating_and_takes_its_objects_along(client: Client) -> None:
    client.post(path_of("v2"), widget("v2"))
    tried = client.delete(f"{DEFINITIONS}/widgets.example.com?dryRun=All")
    deleted = client.delete(f"{DEFINITIONS}/widgets.example.com")
    for answer in (tried, deleted):
        assert answer.at("metadata.finalizers") == ["customresourcecleanup.apiextensions.k8s.io"]
        assert answer.at("status.conditions.2.reason") == "InstanceDeletionPending"
    assert client.get(f"{DEFINITIONS}/widgets.example.com").status == 404
    assert client.get(path_of("v2")).status == 404
    assert len(client.store.table("example.com/widgets")) == 0


def test_a_deleted_definition_stays_until_its_last_object_is_gone(client: Client) -> None:
    client.post(path_of("v2"), widget("v2", finalizers=["example.com/f"]))
    client.delete(f"{DEFINITIONS}/widgets.example.com")
    assert client.get(f"{DEFINITIONS}/widgets.example.com").status == 200
    client.patch(f"{path_of('v2')}/w", {"metadata": {"finalizers": None}}, MERGE)
    assert client.get(f"{DEFINITIONS}/widgets.example.com").status == 404


def test_a_status_without_stored_versions_gets_the_storage_version(client: Client) -> None:
    answer = client.patch(f"{DEFINITIONS}/widgets.example.com/status", {"status": {"storedVersions": []}}, MERGE)
    assert answer.at("status.storedVersions") == ["v2"]


def test_a_webhook_needs_unknown_fields_to_be_pruned() -> None:
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version("v1", storage=True), version("v1", storage=True)],
        "conversion": {"strategy": "Webhook"},
        "preserveUnknownFields": True,
    }
    answer = Client().post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    causes = [
        (each["field"], str(each["message"]).rpartition(": ")[2])
        for each in cast("list[Document]", answer.at("details.causes"))
    ]
    assert ("spec.conversion.strategy", "must be None if spec.preserveUnknownFields is true") in causes
    assert ("status.storedVersions", "must have the storage version v1") in causes


@pytest.fixture
def gadgets() -> Client:
    client = Client()
    spec_of: Document = {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "names": {"type": "array", "items": TEXT},
            "n": {"type": "number"},
            "inner": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    }
    schema = {
        "type": "object",
        "properties": {"spec": spec_of, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "First", "type": "string", "jsonPath": ".spec.names[0]"},
            {"name": "Last", "type": "string", "jsonPath": ".spec['names'][-1]"},
            {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
            {"name": "All", "type": "string", "jsonPath": ".spec.names"},
            {"name": "None", "type": "integer", "jsonPath": ".spec.names"},
        ],
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [version],
    }
    assert client.post(DEFINITIONS, {"metadata": {"name": "gadgets.example.com"}, "spec": spec}).status == 201
    return client


GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"


def gadget(**spec: object) -> Document:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def test_unknown_fields_are_sorted_and_whole_numbers_have_no_point(gadgets: Client) -> None:
    answer = gadgets.post(GADGETS, {**gadget(n=2.0, zzz=1), "aaa": 1})
    assert [value for name, value in answer.headers] == [
        f'299 - "unknown field \\"{each}\\""' for each in ("aaa", "spec.zzz")
    ]
    assert str(answer.at("spec.n")) == "2"


def test_columns_show_the_values_at_their_json_paths(gadgets: Client) -> None:
    gadgets.post(GADGETS, gadget(size=3, names=["a", "b"]))
    answer = gadgets.get(f"{GADGETS}/g", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert answer.at("rows.0.cells") == ["g", "a", "b", "3", '["a","b"]', None]


def test_the_status_endpoint_changes_no_labels(gadgets: Client) -> None:
    gadgets.post(GADGETS, gadget(size=3))
    change = {"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 1}}
    answer = gadgets.patch(f"{GADGETS}/g/status", change, MERGE)
    assert (answer.at("metadata.labels"), answer.at("status.replicas")) == (None, 1)


def test_a_change_of_metadata_or_status_does_not_increment_the_generation(gadgets: Client) -> None:
    gadgets.post(GADGETS, gadget(size=3))
    assert gadgets.patch(f"{GADGETS}/g", {"metadata": {"labels": {"a": "b"}}}, MERGE).at("metadata.generation") == 1
    assert gadgets.patch(f"{GADGETS}/g/status", {"status": {"replicas": 1}}, MERGE).at("metadata.generation") == 1
    assert gadgets.patch(f"{GADGETS}/g", {"spec": {"size": 4}}, MERGE).at("metadata.generation") == 2


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param(
            {"size": "x"},
            ".spec.size",
            "0: .spec.size accessor error: x is of the type string, expected int64",
            id="a text",
        ),
        pytest.param({"size": -1}, ".spec.size", "-1: should be a non-negative integer", id="negative"),
        pytest.param(
            {"size": 2**31}, ".spec.size", f"{2**31}: should be less than or equal to {2**31 - 1}", id="large"
        ),
    ],
)
def test_replicas_that_a_scale_cannot_represent_are_refused(
    gadgets: Client, spec: Document, field: str, message: str
) -> None:
    causes = cast("list[Document]", gadgets.post(GADGETS, gadget(**spec)).at("details.causes"))
    assert (field, f"Invalid value: {message}") in [(each["field"], each["message"]) for each in causes]


@pytest.mark.parametrize(
    ("inner", "status", "message"),
    [
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}},
            400,
            'Gadget in version "v1" cannot be handled as a Gadget: spec.inner.metadata: Invalid value: {"labels":{"a":1}}: '
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            id="metadata of the wrong type",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": ""},
            422,
            'Gadget.example.com "g" is invalid: spec.inner.kind: Invalid value: "": must not be empty',
            id="an empty kind",
        ),
        pytest.param(
            {"apiVersion": "v1"},
            422,
            'Gadget.example.com "g" is invalid: spec.inner.kind: Required value',
            id="no kind",
        ),
        pytest.param({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "x": 1}, 201, None, id="complete"),
    ],
)
def test_embedded_objects_are_validated(gadgets: Client, inner: Document, status: int, message: str | None) -> None:
    answer = gadgets.post(GADGETS, gadget(inner=inner))
    assert (answer.status, answer.at("message")) == (status, message)
    if status == 201:
        assert answer.at("spec.inner") == inner


def test_an_applied_field_must_be_declared(gadgets: Client) -> None:
    answer = gadgets.patch(f"{GADGETS}/g?fieldManager=m", gadget(nope=1), APPLY)
    problem = "failed to create typed patch object (/g; example.com/v1, Kind=Gadget): .spec.nope: field not declared in schema"
    assert (answer.status, answer.at("message")) == (500, problem)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"kind": None}, "Object 'Kind' is missing in", id="no kind"),
        pytest.param({"apiVersion": None}, "the API version in the data () does not match", id="no version"),
    ],
)
def test_an_object_without_kind_or_version_is_refused(gadgets: Client, change: Document, message: str) -> None:
    body = {name: value for name, value in (gadget() | change).items() if value is not None}
    answer = gadgets.post(GADGETS, body)
    assert answer.status == 400
    assert message in str(answer.at("message"))


def test_an_update_is_not_tracked_if_another_managers_version_lacks_a_field(client: Client) -> None:
    def applied(api_version: str, spec: Document, manager: str) -> Document:
        body = {"apiVersion": f"example.com/{api_version}", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
        return client.patch(f"{path_of(api_version)}/w?fieldManager={manager}", body, APPLY).document

    applied("v1", {"a": "1"}, "one")
    assert str(applied("v2", {"c": "2"}, "two")["message"]).endswith(" object: .spec.c: field not declared in schema")
    assert client.patch(f"{path_of('v2')}/w", {"spec": {"c": "2"}}, MERGE).at("metadata.managedFields") is None


def with_defaults(client: Client, selectable: list[dict[str, str]] | None = None, /, **properties: Document) -> None:
    """Replace the schema and the selectable fields of the stored version."""
    definition = client.get(f"{DEFINITIONS}/widgets.example.com").document
    spec = cast("Document", definition["spec"])
    stored = version("v2", storage=True, **properties) | ({"selectableFields": selectable} if selectable else {})
    spec["versions"] = [version("v1", storage=False, a=TEXT, b=TEXT), stored]
    assert client.call("PUT", f"{DEFINITIONS}/widgets.example.com", definition).status == 200


def test_a_later_default_is_set_when_an_older_object_is_read(client: Client) -> None:
    client.post(path_of("v2"), widget("v2", {"a": "1"}))
    with_defaults(client, a=TEXT, d={"type": "string", "default": "later"})

    one = f"{path_of('v2')}/w"
    assert client.get(one).at("spec") == {"a": "1", "d": "later"}
    assert client.get(path_of("v2")).at("items.0.spec") == {"a": "1", "d": "later"}
    labelled = client.patch(one, {"metadata": {"labels": {"l": "1"}}}, MERGE)
    assert (labelled.at("metadata.generation"), labelled.at("spec.d")) == (1, "later")


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param("spec.d=later", ["w"], id="the default"),
        pytest.param("spec.d!=later", [], id="all but the default"),
        pytest.param("spec.d=", [], id="no value"),
        pytest.param("spec.a=1,spec.d=later,metadata.name!=x", ["w"], id="with other fields"),
    ],
)
def test_field_selectors_match_a_later_default_of_an_older_object(
    client: Client, selector: str, want: list[str]
) -> None:
    client.post(path_of("v2"), widget("v2", {"a": "1"}))
    selectable = [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.d"}]
    with_defaults(client, selectable, a=TEXT, d={"type": "string", "default": "later"})

    query = f"fieldSelector={quote(selector)}"
    assert names(client.get(f"{path_of('v2')}?{query}")) == want
    events = client.get(f"{path_of('v2')}?watch=true&timeoutSeconds=1&{query}").body
    assert len(cast("list[object]", events)) == len(want)


def test_a_watch_cannot_start_before_the_definition_changed(client: Client) -> None:
    created = client.post(path_of("v2"), widget("v2", {"a": "1"}))
    since = f"{path_of('v2')}?watch=true&timeoutSeconds=1&resourceVersion={created.at('metadata.resourceVersion')}"
    assert client.get(since).body == []
    with_defaults(client, a=TEXT, d={"type": "string", "default": "later"})
    assert "too old resource version" in str(client.get(since).body)


def held(client: Client) -> None:
    """Delete the definition while an object with a finalizer exists."""
    client.post(path_of("v2"), widget("v2", finalizers=["example.com/hold"]))
    client.delete(f"{DEFINITIONS}/widgets.example.com")


def test_a_terminating_definition_reports_the_deletion_of_its_objects(client: Client) -> None:
    held(client)
    conditions = cast("list[Document]", client.get(f"{DEFINITIONS}/widgets.example.com").at("status.conditions"))
    last = conditions[-1]
    assert (last["type"], last["status"], last["reason"]) == ("Terminating", "True", "InstanceDeletionInProgress")
    client.patch(f"{path_of('v2')}/w", {"metadata": {"finalizers": None}}, MERGE)
    assert client.get(f"{DEFINITIONS}/widgets.example.com").status == 404


def test_a_definition_with_another_finalizer_reports_that_its_objects_are_gone(client: Client) -> None:
    client.patch(f"{DEFINITIONS}/widgets.example.com", {"metadata": {"finalizers": ["example.com/x"]}}, MERGE)
    client.delete(f"{DEFINITIONS}/widgets.example.com")
    found = client.get(f"{DEFINITIONS}/widgets.example.com")
    last = cast("list[Document]", found.at("status.conditions"))[-1]
    assert (last["status"], last["reason"]) == ("False", "InstanceDeletionCompleted")
    assert found.at("metadata.finalizers") == ["example.com/x"]


@pytest.mark.parametrize("dry_run", ["", "?dryRun=All"])
def test_no_object_of_a_terminating_definition_can_be_created(client: Client, dry_run: str) -> None:
    held(client)
    answer = client.post(path_of("v2") + dry_run, widget("v2") | {"metadata": {"name": "late"}})
    text = 'widgets.example.com "late" is forbidden: create not allowed while custom resource definition is terminating'
    assert (answer.status, answer.at("message")) == (403, text)


def test_objects_of_a_terminating_definition_can_be_imported(client: Client) -> None:
    held(client)
    loaded = load_documents(client.backend, [PlainObject(widget("v2") | {"metadata": {"name": "late"}}, "dump.yaml:1")])
    assert loaded.counts == {"Widget": 1}
    assert client.get(f"{path_of('v2')}/late").status == 200


def test_discovery_omits_writes_of_a_terminating_definition(client: Client) -> None:
    held(client)
    assert client.get("/apis/example.com/v2").at("resources.0.verbs") == [
        "delete",
        "deletecollection",
        "get",
        "list",
        "watch",
    ]
    assert client.patch(f"{path_of('v2')}/w", {"metadata": {"labels": {"a": "b"}}}, MERGE).status == 200


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param({"a": 5}, ".spec.a: expected string, got &value.valueUnstructured{Value:5}", id="a number"),
        pytest.param({"n": "5"}, ".spec.n: expected numeric (int or float), got string", id="a text"),
        pytest.param({"on": 1}, ".spec.on: expected boolean, got &{1}", id="a number for a boolean"),
        pytest.param({"tags": {"x": 1}}, ".spec.tags: expected list, got &{map[x:1]}", id="an object for a list"),
        pytest.param({"more": {"x": "1"}}, ".spec.more.x: expected numeric (int or float), got string", id="in a map"),
        pytest.param(
            {"inner": {"metadata": {"labels": {"x": 1}}}},
            ".spec.inner.metadata.labels.x: expected string, got &value.valueUnstructured{Value:1}",
            id="embedded metadata",
        ),
    ],
)
def test_an_applied_custom_resource_has_the_types_of_its_schema(value: Document, problem: str) -> None:
    client = typed_client()

    found = client.patch("/apis/example.com/v1/gears/g?fieldManager=m", gear(value), APPLY)

    text = "failed to create typed patch object (/g; example.com/v1, Kind=Gear): "
    assert (found.status, found.at("message")) == (500, text + problem)


def test_an_applied_null_stays_null_if_the_field_has_no_default() -> None:
    client = typed_client()
    path = "/apis/example.com/v1/gears/g"

    assert (
        client.patch(f"{path}?fieldManager=m", gear({"when": "2026-01-01T00:00:00Z", "d": None}), APPLY).status == 201
    )
    assert client.get(path).at("spec") == {"when": "2026-01-01T00:00:00Z", "d": "x"}
    found = client.patch(f"{path}?fieldManager=m", gear({"a": None}), APPLY)
    assert 'spec.a in body must be of type string: "null"' in str(found.at("message"))
    assert client.patch(path, {"spec": {"a": None}}, MERGE).status == 200


def test_a_number_in_place_of_a_text_with_a_format_is_named_by_its_format() -> None:
    found = typed_client().post("/apis/example.com/v1/gears", gear({"when": 5}))

    assert 'spec.when in body must be of type date-time: "int64"' in str(found.at("message"))


def test_cells_of_texts_dates_and_conditions() -> None:
    client = typed_client()
    body = {**gear({"a": "b"}), "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    client.post("/apis/example.com/v1/gears", body)

    found = client.get("/apis/example.com/v1/gears/g", accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    assert found.at("rows.0.cells") == ["g", "True", "<invalid>", "Gear"]


def gear(spec: Document) -> Document:
    return {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": spec}


def typed_client() -> Client:
    properties = {
        "a": TEXT,
        "d": {**TEXT, "default": "x"},
        "n": {"type": "integer"},
        "on": {"type": "boolean"},
        "when": {**TEXT, "format": "date-time"},
        "tags": {"type": "array", "items": TEXT},
        "more": {"type": "object", "additionalProperties": {"type": "number"}},
        "inner": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}, "status": status}}
    columns = [
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
        {"name": "When", "type": "date", "jsonPath": ".spec.a"},
        {"name": "Kind", "type": "string", "jsonPath": ".kind"},
    ]
    shown = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": [{**shown, "additionalPrinterColumns": columns}],
    }
    client = Client()
    assert client.post(DEFINITIONS, {"metadata": {"name": "gears.example.com"}, "spec": spec}).status == 201
    return client
