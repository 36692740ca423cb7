"""Requests with several mistakes: the API checks them in kube-apiserver's order (compared with v1.36.3)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
import yaml

from bayplan.apiserver.rest.messages import Request, Response, parse_query
from tests.apiserver.client import APPLY, JSON_PATCH, MERGE, Client, Document

DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
TIMEOUT = 'invalid timeout specified in the request URL - time: unknown unit "x" in duration "1x"'
NOT_ALLOWED = "the server does not allow this method on the requested resource"
NOT_FOUND = "the server could not find the requested resource"
UNKNOWN_BODY = "the body of the request was in an unknown format"
TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
FRAMEWORK_406 = f"406: Not Acceptable\n\nAvailable representations: {TYPES}"
HANDLER_406 = f"only the following media types are accepted: {TYPES}"
BAD_NAME = "Name parameter invalid: \".\": may not be '.'"
LONG_MANAGER = f"fieldManager={'x' * 129}"
CBOR = "application/cbor"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def send(
    method: str, path: str, body: bytes = b"", content_type: str = "application/json", accept: str = "application/json"
) -> Response:
    """Return the response of a new API."""
    plain, _, query = path.partition("?")
    headers = {"content-type": content_type, "accept": accept, "user-agent": "test/1"}
    found = asyncio.run(Client().api.handle(Request(method, plain, parse_query(query), headers, body)))
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "accept", "want"),
    [
        pytest.param("PUT", f"{PODS}?timeout=1x", b"", "", "", (400, TIMEOUT), id="a timeout before the method"),
        pytest.param("GET", "/api/v1/none?timeout=1x", b"", "", "", (400, TIMEOUT), id="a timeout before the resource"),
        pytest.param("GET", "/version?timeout=1x", b"", "", "", (400, TIMEOUT), id="a timeout of the version"),
        pytest.param("POST", "/api/v1/watch/pods", b"{}", "", "", (405, NOT_ALLOWED), id="only GET below watch"),
        pytest.param(
            "GET",
            "/api/v1/watch/namespaces/default/pods/a/status",
            b"",
            "",
            "",
            (404, NOT_FOUND),
            id="no subresource below watch",
        ),
        pytest.param(
            "GET", "/api/v1/bindings", b"", "", "", (404, NOT_FOUND), id="what can't be listed has no common path"
        ),
        pytest.param("GET", f"{DEFAULT}/bindings", b"", "", "", (405, NOT_ALLOWED), id="a method of a namespaced path"),
        pytest.param(
            "PATCH",
            f"{PODS}/.",
            b"{}",
            "text/plain",
            CBOR,
            (415, "415: Unsupported Media Type"),
            id="a patch's type first",
        ),
        pytest.param("PATCH", f"{PODS}/.", b"{}", MERGE, CBOR, (406, FRAMEWORK_406), id="the format before the name"),
        pytest.param(
            "PATCH", f"{PODS}/.", b"{}", JSON_PATCH, "", (400, BAD_NAME), id="a patch's name before its content"
        ),
        pytest.param(
            "GET",
            f"{PODS}/.",
            b"",
            "",
            "application/json;as=None;g=a;v=v1",
            (406, HANDLER_406),
            id="a get's format before its name",
        ),
        pytest.param(
            "GET",
            f"{PODS}/.?resourceVersion=99999999",
            b"",
            "",
            "",
            (400, BAD_NAME),
            id="a get's name before its version",
        ),
        pytest.param(
            "DELETE", f"{PODS}/.", b"{}", "text/plain", "", (415, UNKNOWN_BODY), id="a deletion's body before its name"
        ),
        pytest.param(
            "DELETE", PODS, b"{}", "", CBOR, (406, FRAMEWORK_406), id="a deletion of many has no types of watches"
        ),
        pytest.param(
            "DELETE",
            f"{PODS}?fieldSelector=spec.none=1",
            b"x",
            "text/plain",
            "",
            (400, "field label not supported: spec.none"),
            id="a selector before the body",
        ),
        pytest.param(
            "POST",
            f"{PODS}?{LONG_MANAGER}",
            b"{}",
            JSON_PATCH,
            "",
            (415, UNKNOWN_BODY),
            id="a body's type before options",
        ),
        pytest.param(
            "POST",
            f"{REVIEWS}?{LONG_MANAGER}",
            b"{}",
            JSON_PATCH,
            "",
            (415, UNKNOWN_BODY),
            id="a review's type before options",
        ),
        pytest.param("POST", REVIEWS, b"{}", "", TABLE, (406, HANDLER_406), id="no table of what is not stored"),
        pytest.param(
            "GET",
            f"{PODS}?labelSelector=a+in&resourceVersionMatch=Exact",
            b"",
            "",
            "",
            (400, "unable to parse requirement: found '' expected: '('"),
            id="a selector before conflicting options",
        ),
        pytest.param(
            "GET",
            f"{PODS}?labelSelector=a+in&fieldSelector=spec.none=1",
            b"",
            "",
            "",
            (400, "unable to parse requirement: found '' expected: '('"),
            id="labels before fields",
        ),
        pytest.param("GET", f"{PODS}/./status", b"", "", "", (400, BAD_NAME), id="a subresource's name"),
        pytest.param(
            "GET", f"{DEFAULT}/replicationcontrollers/./scale", b"", "", "", (400, BAD_NAME), id="a scale's name"
        ),
        pytest.param(
            "POST", f"{PODS}/a/exec?dryRun=All", b"", "", "", (400, "dryRun is not supported"), id="a dry run of exec"
        ),
        pytest.param(
            "POST",
            f"{DEFAULT}/configmaps",
            b'{"metadata":{"name":"a"}}',
            "",
            METADATA_LIST,
            (406, "you requested PartialObjectMetadataList, but the requested object is not a list"),
            id="a list of one created object",
        ),
        pytest.param(
            "GET",
            "/api/v1/watch/pods?fieldSelector=metadata.name",
            b"",
            "",
            "application/yaml",
            (400, "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
            id="a watch's options before its format",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods?limit=x&resourceVersionMatch=Exact",
            b"",
            "",
            "",
            (400, 'strconv.ParseInt: parsing "x": invalid syntax'),
            id="a number before conflicting options",
        ),
    ],
)
def test_only_the_first_of_several_mistakes_is_reported(
    method: str, path: str, body: bytes, content_type: str, accept: str, want: tuple[int, str]
) -> None:
    found = send(method, path, body, content_type or "application/json", accept)
    code, message = want
    assert found.status == code
    assert yaml.safe_load(found.body)["message"].startswith(message)


def test_a_null_body_counts_as_no_delete_options() -> None:
    assert send("DELETE", f"{DEFAULT}/configmaps/none", b"null").status == 404
    assert send("DELETE", f"{DEFAULT}/configmaps", b"null").status == 200


@pytest.mark.parametrize(
    ("path", "accept", "field"),
    [
        pytest.param(PODS, METADATA_LIST, "items", id="metadata of no objects"),
        pytest.param(
            "/apis/storage.k8s.io/v1/csistoragecapacities", TABLE, "rows", id="a table without columns of its own"
        ),
    ],
)
def test_empty_metadata_lists_and_some_empty_tables_are_null(path: str, accept: str, field: str) -> None:
    document = msgspec.json.decode(send("GET", path, accept=accept).body)
    assert document[field] is None


def test_deleted_objects_and_scales_are_not_shown_as_lists_but_changed() -> None:
    client = Client()
    client.post(f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "a"}})
    template: Document = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    controllers = f"{DEFAULT}/replicationcontrollers"
    client.post(controllers, {"metadata": {"name": "a"}, "spec": {"selector": {"a": "b"}, "template": template}})
    deleted = client.call("DELETE", f"{DEFAULT}/serviceaccounts/a", accept=METADATA_LIST)
    scale: Document = {"metadata": {"name": "a"}, "spec": {"replicas": 3}}
    scaled = client.call("PUT", f"{controllers}/a/scale", scale, accept=METADATA_LIST)
    for answer, kind in ((deleted, "core.ServiceAccount"), (scaled, "autoscaling.Scale")):
        text = f"you requested PartialObjectMetadataList, but the requested object is not a list (*{kind})"
        assert (answer.status, answer.at("message")) == (406, text)
    assert client.get(f"{DEFAULT}/serviceaccounts/a").status == 404
    assert client.get(f"{controllers}/a").at("spec.replicas") == 3


def test_reviews_can_be_reduced_to_their_metadata() -> None:
    document = msgspec.json.decode(send("POST", REVIEWS, b"{}", accept=METADATA_LIST.replace("List", "")).body)
    assert document["kind"] == "PartialObjectMetadata"
    assert "status" not in document


def test_errors_after_negotiation_include_the_deprecation_warning() -> None:
    def warned(path: str, accept: str, content_type: str = "application/json") -> bool:
        return "warning" in dict(send("POST", path, b"{}", content_type, accept).headers)

    endpoints = f"{DEFAULT}/endpoints"
    assert warned(endpoints, "application/json", "text/plain")
    assert not warned(endpoints, CBOR)
    assert not warned(f"{endpoints}?timeout=1x", "application/json")


@pytest.mark.parametrize("path", [f"{DEFAULT}/services/web", f"{DEFAULT}/services/web/status"])
def test_a_new_object_cannot_be_applied_without_its_name(path: str) -> None:
    body = b'{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":80}]}}'
    found = send("PATCH", f"{path}?fieldManager=m", body, APPLY)
    assert found.status == 400
    assert "was undeterminable" in msgspec.json.decode(found.body)["message"]


@pytest.mark.parametrize("name", ["apiVersion", "kind"])
def test_a_patch_cannot_change_the_type_of_version_or_kind(name: str) -> None:
    patch = b'[{"op":"replace","path":"/%s","value":true}]' % name.encode()
    message = msgspec.json.decode(send("PATCH", DEFAULT, patch, JSON_PATCH).body)["message"]
    assert message.endswith(f"cannot unmarshal bool into Go struct field .{name} of type string")


def test_metadata_of_an_event_is_checked_once() -> None:
    document = msgspec.json.decode(send("POST", EVENTS, b'{"metadata":{"labels":{"a b":"c"}}}').body)
    fields = [each["field"] for each in document["details"]["causes"]]
    assert fields == ["metadata.name", "metadata.labels", "eventTime", "type"]
