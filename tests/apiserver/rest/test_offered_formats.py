"""The formats of responses: where protobuf gives way to JSON, and where it is refused."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from bayplan.apiserver.rest.messages import Request, Response, Stream, parse_query
from tests.apiserver.client import PODS, Client, Document, pod

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MAPS = "/api/v1/namespaces/default/configmaps"
BOXES = "/apis/example.com/v1/namespaces/default/boxes"
SCALES = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
DEFINITION: Document = {
    "metadata": {"name": "boxes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
        "versions": [
            {
                "name": "v1", "served": True, "storage": True, "subresources": {"scale": SCALES},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}  # fmt: skip


def answer(client: Client, path: str, accept: str, agent: str = "test/1") -> tuple[int, str, bytes]:
    """Return the status code, the media type and the body of a get, list or watch."""

    async def run() -> tuple[int, str, bytes]:
        plain, _, query = path.partition("?")
        request = Request("GET", plain, parse_query(query), {"accept": accept, "user-agent": agent}, b"")
        found = await client.api.handle(request)
        if isinstance(found, Stream):
            return 200, found.content_type, b"".join([piece async for piece in found.frames])
        assert isinstance(found, Response)
        return found.status, found.content_type, found.body

    return asyncio.run(run())


@pytest.fixture(scope="module")
def long_list() -> Client:
    client = Client()
    while len(answer(client, MAPS, JSON)[2].split(b'"uid"')) <= 501:
        client.post(MAPS, {"metadata": {"generateName": "c-"}})
    return client


@pytest.fixture
def boxes() -> Client:
    client = Client()
    assert client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION).status == 201
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "spec": {"size": 3}}
    assert client.post(BOXES, box).status == 201
    return client


@pytest.mark.parametrize(
    ("accept", "short", "long"),
    [
        pytest.param(PROTOBUF, PROTOBUF, PROTOBUF, id="only protobuf"),
        pytest.param(f"{PROTOBUF}, {JSON}", PROTOBUF, JSON, id="JSON as well"),
        pytest.param(f"{PROTOBUF}, application/yaml", PROTOBUF, PROTOBUF, id="YAML as well"),
        pytest.param(f"{PROTOBUF};{METADATA}, {JSON}", PROTOBUF, PROTOBUF, id="metadata, or complete objects as JSON"),
        pytest.param(f"{PROTOBUF};{METADATA}, {JSON};{METADATA}", PROTOBUF, JSON, id="metadata, as JSON as well"),
    ],
)
def test_a_list_of_more_than_500_objects_is_json_if_accepted(
    long_list: Client, accept: str, short: str, long: str
) -> None:
    for query, want in (("?limit=500", short), ("", long)):
        status, media_type, body = answer(long_list, MAPS + query, accept)
        assert (status, media_type) == (200, want)
        assert (b"PartialObjectMetadataList" in body) == ("as=" in accept)


def test_a_long_list_is_indented_for_curl(long_list: Client) -> None:
    accept = f"{PROTOBUF}, {JSON}"
    assert answer(long_list, MAPS, accept, "curl/8")[2] == answer(long_list, MAPS, JSON, "curl/8")[2]
    assert answer(long_list, MAPS, accept)[2] == answer(long_list, MAPS, JSON)[2]


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param(f"{PROTOBUF}, {JSON}", JSON, id="JSON as well"),
        pytest.param(f"{PROTOBUF};{METADATA}, {JSON}", f"{PROTOBUF};stream=watch", id="complete objects as JSON"),
    ],
)
def test_a_watch_is_json_only_of_the_requested_kind(accept: str, want: str) -> None:
    client = Client()
    query = f"?watch=1&timeoutSeconds=1&resourceVersion={client.store.revision}"
    client.post(PODS, pod("p"))
    assert answer(client, PODS + query, accept)[:2] == (200, want)


@pytest.mark.parametrize(
    ("path", "accept", "want"),
    [
        pytest.param("", f"{PROTOBUF}, {JSON}", (200, JSON), id="a list"),
        pytest.param("/b", f"{PROTOBUF}, {JSON}", (200, JSON), id="an object"),
        pytest.param("/b", PROTOBUF, (406, PROTOBUF), id="an object only as protobuf"),
        pytest.param("/b", f"{PROTOBUF}, application/yaml", (200, "application/yaml"), id="an object, YAML as well"),
        pytest.param("/b/scale", f"{PROTOBUF}, {JSON}", (200, JSON), id="a scale"),
        pytest.param("/b/scale", PROTOBUF, (406, PROTOBUF), id="a scale only as protobuf"),
        pytest.param(
            "/b/scale", f"{PROTOBUF};{METADATA.replace('List', '')}, {JSON}", (200, PROTOBUF), id="metadata of a scale"
        ),
        pytest.param("", f"{PROTOBUF};{METADATA}, {JSON};{METADATA}", (200, PROTOBUF), id="metadata of a list"),
        pytest.param("?watch=1&timeoutSeconds=1", PROTOBUF, (406, PROTOBUF), id="a watch only as protobuf"),
        pytest.param("?watch=1&timeoutSeconds=1", f"{PROTOBUF}, {JSON}", (200, JSON), id="a watch"),
    ],
)
def test_complete_custom_objects_are_never_protobuf(
    boxes: Client, path: str, accept: str, want: tuple[int, str]
) -> None:
    status, media_type, body = answer(boxes, BOXES + path, accept)
    assert (status, media_type) == want
    assert body.startswith(b"k8s\0") == (media_type == PROTOBUF)


def test_discovery_is_protobuf_for_clients_that_accept_it_first() -> None:
    client = Client()
    for path in ("/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"):
        status, media_type, body = answer(client, path, PROTOBUF)
        assert (status, media_type, body[:4]) == (200, PROTOBUF, b"k8s\0")
        assert client.get(path, accept=f"application/json, {PROTOBUF}").body == client.get(path).body


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_is_only_json(path: str) -> None:
    client = Client()
    binary = f"{PROTOBUF};{AGGREGATED}"
    assert answer(client, path, binary)[0] == 406
    status, media_type, body = answer(client, path, f"{binary},{JSON};{AGGREGATED},{JSON}")
    assert (status, media_type) == (200, f"{JSON};{AGGREGATED}")
    assert msgspec.json.decode(body)["kind"] == "APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "accept", "want"),
    [
        pytest.param(
            "/apis", f"{JSON};{AGGREGATED};q=0.1, {JSON}", (200, f"{JSON};{AGGREGATED}"), id="a worse quality"
        ),
        pytest.param("/api", f"{JSON}, {JSON};{AGGREGATED}", (200, f"{JSON};{AGGREGATED}"), id="after plain discovery"),
        pytest.param("/api", f"application/*;{AGGREGATED}", (406, JSON), id="a wildcard"),
        pytest.param("/apis", f"application/*;{AGGREGATED}", (200, f"{JSON};{AGGREGATED}"), id="a wildcard for groups"),
        pytest.param("/apis/", f"{JSON};{AGGREGATED}, {JSON}", (200, JSON), id="groups with a slash at the end"),
        pytest.param("/version", "application/*", (406, JSON), id="the version has a single type"),
        pytest.param("/statusz", PROTOBUF, (406, JSON), id="errors of operators' endpoints are not protobuf"),
    ],
)
def test_discovery_in_unusual_formats(path: str, accept: str, want: tuple[int, str]) -> None:
    assert answer(Client(), path, accept)[:2] == want


def test_control_characters_are_refused_in_yaml_also_in_errors() -> None:
    client = Client()
    document: Document = {"metadata": {"name": "m"}, "data": {"a": "\x7f"}}
    assert client.post(MAPS, document).status == 201

    for path, status in ((f"{MAPS}/m", 500), (f"{MAPS}/\x7f", 404)):
        answer = client.get(path, "application/yaml")
        assert (answer.status, "yaml: control characters are not allowed" in str(answer.body)) == (status, True)


@pytest.mark.parametrize(
    "path",
    [
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps/status",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.example.com/status",
    ],
)
def test_statuses_of_definitions_and_api_services_have_no_tables(boxes: Client, path: str) -> None:
    table = f"{JSON};as=Table;g=meta.k8s.io;v=v1"
    assert answer(boxes, path, table)[0] == 406
    assert b'"kind":"Table"' not in answer(boxes, path, f"{table},{JSON}")[2]
    assert b'"kind":"Table"' in answer(boxes, path.removesuffix("/status"), table)[2]
