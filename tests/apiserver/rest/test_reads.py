"""Reads through the API: lists, pages, selectors, watches, tables, discovery, custom resources."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from bayplan.apiserver.rest.messages import Request, Stream, parse_query
from bayplan.apiserver.rest.negotiation import PLAIN, negotiate
from bayplan.base.plain_data import part, parts
from tests.apiserver.client import PODS, Client, Document, collect, names, pod

META = "meta.k8s.io/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def client() -> Client:
    made = Client()
    for number, labels in enumerate(({"app": "x"}, {"app": "y", "tier": "1"}, {})):
        document = pod(f"p{number}")
        document["metadata"]["labels"] = labels  # type: ignore[index]
        made.post(PODS, document)
    return made


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param("labelSelector=app=x", ["p0"], id="equal"),
        pytest.param("labelSelector=app!=x", ["p1", "p2"], id="not equal, also without the label"),
        pytest.param("labelSelector=app in (x,y),!tier", ["p0"], id="in, and without"),
        pytest.param("labelSelector=app notin (x)", ["p1", "p2"], id="not in"),
        pytest.param("labelSelector=tier>0", ["p1"], id="greater"),
        pytest.param("labelSelector=app", ["p0", "p1"], id="exists"),
        pytest.param("fieldSelector=metadata.name=p1", ["p1"], id="by name"),
        pytest.param("fieldSelector=metadata.name!=p1", ["p0", "p2"], id="by any other name"),
        pytest.param("fieldSelector=status.phase=Pending,spec.nodeName=", ["p0", "p1", "p2"], id="by fields"),
        pytest.param("fieldSelector=status.phase!=Pending", [], id="by a field with another value"),
        pytest.param("fieldSelector=metadata.namespace=other", [], id="of another namespace"),
    ],
)
def test_label_and_field_selectors_filter_lists(client: Client, query: str, want: list[str]) -> None:
    assert names(client.get(f"{PODS}?{query.replace('=', '%3D').replace('%3D', '=', 1)}")) == want


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/json, */*", id="as clients in Go request it"),
        pytest.param("application/yaml;q=0.5, application/json", id="rather than YAML"),
        pytest.param("*/*", id="anything"),
        pytest.param("", id="an empty Accept header"),
    ],
)
def test_json_is_returned_if_accepted(client: Client, accept: str) -> None:
    assert negotiate(accept) is PLAIN
    for path in (PODS, f"{PODS}/p1"):
        assert client.get(path, accept=accept) == client.get(path)


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(
            "labelSelector=a=b c",
            "found 'c', expected: ',' or 'end of string'",
            id="two values",
        ),
        pytest.param(
            "labelSelector=a in x", "unable to parse requirement: found 'x' expected: '('", id="no parenthesis"
        ),
        pytest.param(
            "fieldSelector=spec.image=x", "field label not supported: spec.image", id="a field that is not indexed"
        ),
    ],
)
def test_invalid_selectors_are_refused(client: Client, query: str, want: str) -> None:
    answer = client.get(f"{PODS}?{query}")
    assert (answer.status, answer.at("message")) == (400, want)


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param("!", "illegal base64 data at input byte 0", id="not base64"),
        pytest.param(
            {"v": "v1", "rv": 1, "start": "a"},
            "server does not recognize this encoded version v1",
            id="another version",
        ),
        pytest.param(
            {"v": META, "rv": 0, "start": "a"},
            f"incorrect encoded start resourceVersion (version {META})",
            id="no resource version",
        ),
        pytest.param({"v": META, "rv": 1, "start": ""}, f"encoded start key empty (version {META})", id="no start key"),
        pytest.param({"v": META, "rv": 1, "start": "../a"}, "../a", id="a start key outside the list"),
    ],
)
def test_malformed_continue_tokens_are_refused(client: Client, token: str | Document, want: str) -> None:
    text = (
        token if isinstance(token, str) else base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    )
    answer = client.get(f"{PODS}?limit=1&continue={text}")
    assert (answer.status, answer.at("message")) == (400, f"invalid continue token: continue key is not valid: {want}")


def test_all_pages_of_a_list_have_the_same_revision(client: Client) -> None:
    first = client.get("/api/v1/pods?limit=2")
    assert (names(first), first.at("metadata.remainingItemCount")) == (["p0", "p1"], 1)
    client.post(PODS, pod("p11"))
    client.delete(f"{PODS}/p2")
    second = client.get(f"/api/v1/pods?limit=2&continue={first.at('metadata.continue')}")
    assert names(second) == ["p2"]
    assert second.at("metadata.resourceVersion") == first.at("metadata.resourceVersion")
    assert second.at("metadata.continue") is None


def test_an_expired_continue_token_is_refused_with_a_new_token(client: Client) -> None:
    first = client.get(f"{PODS}?limit=1")
    client.post(PODS, pod("p3"))
    client.store.compact()
    refused = client.get(f"{PODS}?limit=1&continue={first.at('metadata.continue')}")
    assert refused.status == 410
    assert names(client.get(f"{PODS}?continue={refused.at('metadata.continue')}")) == ["p1", "p2", "p3"]


async def _watch(client: Client, query: str, *steps: tuple[str, str, object]) -> list[object]:
    plain, _, text = query.partition("?")
    stream = await client.api.handle(Request("GET", plain, parse_query(text)))
    assert isinstance(stream, Stream)
    task = asyncio.ensure_future(collect(stream))
    await asyncio.sleep(0.05)
    for method, path, body in steps:
        data = b"" if body is None else json.dumps(body).encode()
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        await client.api.handle(Request(method, path, {}, {"content-type": content_type}, data))
    return await task


def reported(events: list[object]) -> list[tuple[object, object]]:
    """Return the types of events with the names of their objects."""
    found = []
    for event in events:
        assert isinstance(event, dict)
        found.append((event["type"], event["object"]["metadata"].get("name")))
    return found


def test_a_watch_reports_objects_entering_and_leaving_its_selection(client: Client) -> None:
    version = client.store.revision
    query = f"{PODS}?watch=1&resourceVersion={version}&labelSelector=app%3Dx&timeoutSeconds=1"
    events = asyncio.run(
        _watch(
            client,
            query,
            ("PATCH", f"{PODS}/p1", {"metadata": {"labels": {"app": "x"}}}),
            ("PATCH", f"{PODS}/p1", {"metadata": {"labels": {"new": "1"}}}),
            ("PATCH", f"{PODS}/p0", {"metadata": {"labels": {"app": "z"}}}),
            ("DELETE", f"{PODS}/p2", None),
        )
    )
    assert reported(events) == [("ADDED", "p1"), ("MODIFIED", "p1"), ("DELETED", "p0")]
    left = events[2]
    assert isinstance(left, dict)
    assert left["object"]["metadata"]["labels"] == {"app": "x"}
    assert left["object"]["metadata"]["resourceVersion"] == str(version + 3)


def test_a_watch_with_a_negated_field_reports_the_other_objects(client: Client) -> None:
    query = f"{PODS}?watch=1&resourceVersion={client.store.revision}&fieldSelector=status.phase%21%3DRunning"
    change: Document = {"metadata": {"labels": {"new": "1"}}}
    events = asyncio.run(_watch(client, f"{query}&timeoutSeconds=1", ("PATCH", f"{PODS}/p1", change)))
    assert reported(events) == [("MODIFIED", "p1")]


def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    query = (
        "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    )
    events = asyncio.run(_watch(client, PODS + query, ("POST", PODS, pod("p9"))))
    assert [each for each, _ in reported(events)] == ["ADDED", "ADDED", "ADDED", "BOOKMARK", "ADDED"]
    bookmark = events[3]
    assert isinstance(bookmark, dict)
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_watching_from_a_compacted_revision_returns_an_expired_error(client: Client) -> None:
    client.store.compact()
    events = asyncio.run(_watch(client, f"{PODS}?watch=1&resourceVersion=1&timeoutSeconds=1"))
    [event] = events
    assert isinstance(event, dict)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_restoring_a_snapshot_ends_watches_with_an_expired_error(client: Client) -> None:
    snapshot = client.store.snapshot()

    async def run() -> list[object]:
        stream = await client.api.handle(
            Request("GET", PODS, {"watch": "1", "resourceVersion": str(client.store.revision)})
        )
        assert isinstance(stream, Stream)
        task = asyncio.ensure_future(collect(stream))
        await asyncio.sleep(0.05)
        client.store.restore(snapshot)
        return await task

    [event] = asyncio.run(run())
    assert isinstance(event, dict)
    assert event["object"]["reason"] == "Expired"


def test_tables_have_the_columns_and_cells_of_kubectl(client: Client) -> None:
    client.seconds += 125
    table = client.get(PODS, TABLE)
    columns = table.document["columnDefinitions"]
    assert isinstance(columns, list)
    assert [each["name"] for each in columns if each["priority"] == 0] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table.at("rows.0.cells") == ["p0", "0/1", "Pending", "0", "2m5s", "<none>", "<none>", "<none>", "<none>"]
    assert table.at("rows.0.object.kind") == "PartialObjectMetadata"


def test_discovery_lists_resources_and_openapi_describes_their_types(client: Client) -> None:
    apps = client.get("/apis/apps/v1").document
    resources = apps["resources"]
    assert isinstance(resources, list)
    assert "deployments/scale" in [each["name"] for each in resources]
    document = client.get("/openapi/v3/apis/apps/v1")
    assert document.at("components.schemas") is not None
    schemas = document.document["components"]["schemas"]  # type: ignore[index]
    assert schemas["io.k8s.api.apps.v1.DeploymentSpec"]["required"] == ["selector", "template"]
    assert client.get("/openapi/v2").at("swagger") == "2.0"


CRD: Document = {
    "metadata": {"name": "boxes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boxes", "singular": "box", "kind": "Box", "shortNames": ["bx"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}},
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


def test_custom_resources_are_pruned_defaulted_and_removed_with_their_definition(client: Client) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    boxes = "/apis/example.com/v1/namespaces/default/boxes"
    assert client.get(boxes).status == 404
    assert client.post(boxes, {}).status == 404
    defined = client.post(definitions, CRD)
    assert (defined.status, defined.at("status.conditions")) == (201, None)
    defined = client.get(f"{definitions}/boxes.example.com")
    assert (defined.at("status.conditions.1.type"), defined.at("status.conditions.1.status")) == ("Established", "True")
    assert defined.at("status.acceptedNames.listKind") == "BoxList"
    assert defined.at("status.storedVersions") == ["v1"]
    assert client.post(definitions, {**CRD, "metadata": {"name": "boxes"}}).status == 422
    head: Document = {"apiVersion": "example.com/v1", "kind": "Box"}
    body: Document = {**head, "metadata": {"name": "b"}, "spec": {"nope": 1}, "status": {"phase": "Full"}}
    created = client.post(boxes, body)
    assert created.status == 201
    assert (created.at("spec"), created.at("status")) == ({"size": 3}, None)
    assert client.patch(f"{boxes}/b/status", {"status": {"phase": "Full"}}).at("status.phase") == "Full"
    assert client.patch(f"{boxes}/b", {"spec": {"size": 5}}).at("metadata.generation") == 2
    for metadata in ("text", {"name": "x", "labels": {"a": 1}}):
        assert client.post(boxes, {**head, "metadata": metadata}).status == 400
    listed = client.get(boxes)
    assert listed.at("items.0.kind") == "Box"
    assert client.get(boxes, TABLE).at("rows.0.cells") == ["b", 5]
    assert client.get("/apis/example.com/v1").at("resources.1.name") == "boxes/status"
    strategic = client.patch(f"{boxes}/b", {"spec": {"size": 6}}, "application/strategic-merge-patch+json")
    assert strategic.status == 415
    client.delete(f"{definitions}/boxes.example.com")
    assert client.get(boxes).status == 404


def test_a_malformed_path_ends_the_columns_of_a_table(client: Client) -> None:
    column = {"type": "integer", "jsonPath": ".metadata.generation"}
    columns = [{**column, "name": "A"}, {**column, "name": "B", "jsonPath": ".a["}, {**column, "name": "C"}]
    [version] = parts(part(CRD, "spec"), "versions")
    spec = {**part(CRD, "spec"), "versions": [{**version, "additionalPrinterColumns": columns}]}
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {**CRD, "spec": spec})
    boxes = "/apis/example.com/v1/namespaces/default/boxes"
    client.post(boxes, {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}})

    table = client.get(boxes, TABLE)

    assert [each["name"] for each in parts(table.document, "columnDefinitions")] == ["Name", "A"]
    assert table.at("rows.0.cells") == ["b", 1]


def test_a_list_by_name_is_paged_across_namespaces_but_not_in_one() -> None:
    client = Client()
    for namespace in ("a", "b"):
        client.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        client.call("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "x"}})
    named = "?fieldSelector=metadata.name=x&limit=1"
    first = client.call("GET", f"/api/v1/configmaps{named}")
    second = client.call("GET", f"/api/v1/configmaps{named}&continue={first.at('metadata.continue')}")
    assert [first.at("items.0.metadata.namespace"), second.at("items.0.metadata.namespace")] == ["a", "b"]
    assert client.call("GET", f"/api/v1/namespaces/a/configmaps{named}").at("metadata.continue") is None


def test_discovery_writes_the_members_of_resources_in_upstream_order(client: Client) -> None:
    resources = parts(client.get("/apis/apps/v1").document, "resources")
    scale = next(each for each in resources if each["name"] == "deployments/scale")
    assert list(scale) == ["name", "singularName", "namespaced", "group", "version", "kind", "verbs"]
