"""Indented JSON, which kube-apiserver sends to people: on request, to curl, Wget and browsers, and always for some errors."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.apiserver.rest.messages import Request, Response, parse_query
from tests.apiserver.client import Client

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
GROUPS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
DEFAULT = "/api/v1/namespaces/default"


def answer(path: str, agent: str = "test/1", accept: str = "", method: str = "GET") -> Response:
    """Return the response of a new API to a client."""
    headers = {"accept": accept, "user-agent": agent, "content-type": "application/json"}
    plain, _, query = path.partition("?")
    found = asyncio.run(Client().api.handle(Request(method, plain, parse_query(query), headers, b"")))
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize(
    ("path", "agent", "accept", "want"),
    [
        pytest.param(DEFAULT, "kubectl/v1.36.3", "", False, id="a client"),
        pytest.param(DEFAULT, "curl/8.5.0", "", True, id="curl"),
        pytest.param(DEFAULT, "Wget/1.21", "", True, id="Wget"),
        pytest.param(DEFAULT, "Mozilla/5.0 (X11; Linux x86_64)", "", True, id="a browser"),
        pytest.param(DEFAULT, "libcurl/8.5.0", "", False, id="another name that contains curl"),
        pytest.param(f"{DEFAULT}?pretty=false", "curl/8.5.0", "", False, id="curl declines"),
        pytest.param(f"{DEFAULT}?pretty=x", "curl/8.5.0", "", False, id="an invalid value counts as false"),
        pytest.param(f"{DEFAULT}?pretty=", "curl/8.5.0", "", True, id="an empty value counts as none"),
        pytest.param(f"{DEFAULT}?pretty=t", "test/1", "", True, id="a client requests it"),
        pytest.param(DEFAULT, "curl/8.5.0", TABLE, True, id="a table"),
        pytest.param("/apis", "curl/8.5.0", "", True, id="discovery"),
        pytest.param("/apis", "curl/8.5.0", GROUPS, True, id="aggregated discovery"),
        pytest.param("/apis", "test/1", GROUPS, False, id="aggregated discovery for a client"),
        pytest.param("/version", "test/1", "", True, id="the version, for every client"),
        pytest.param("/", "test/1", "", True, id="the paths, for every client"),
        pytest.param(f"{DEFAULT}s", "curl/8.5.0", "", True, id="an error of an unknown resource"),
        pytest.param("/api/v1/namespaces/none", "test/1", "", False, id="an error"),
        pytest.param("/api/v1/namespaces/none", "curl/8.5.0", "", True, id="an error for curl"),
        pytest.param(
            "/api/v1/namespaces/none", "test/1", TABLE, True, id="an error of a client that accepts only tables"
        ),
        pytest.param(
            "/api/v1/namespaces/none",
            "test/1",
            f"{TABLE},application/json",
            False,
            id="an error of one that accepts objects",
        ),
        pytest.param(DEFAULT, "test/1", GROUPS, True, id="the error 406"),
    ],
)
def test_json_is_indented_on_request_for_curl_and_browsers_and_in_not_acceptable_errors(
    path: str, agent: str, accept: str, want: bool
) -> None:
    body = answer(path, agent, accept).body
    assert body.startswith(b'{\n  "') is want, body[:40]
    assert body.startswith(b'{"') is not want
    assert body.endswith(b"}" if want else b"}\n"), "only JSON that is not indented ends with a line break"


def test_watches_are_never_indented() -> None:
    headers = {"accept": "", "user-agent": "curl/8.5.0"}
    query = parse_query("watch=1&timeoutSeconds=1")
    api = Client().api

    async def first_event() -> bytes:
        stream = await api.handle(Request("GET", "/api/v1/namespaces", query, headers, b""))
        assert not isinstance(stream, Response)
        async for piece in stream.frames:
            return piece
        return b""

    assert asyncio.run(first_event()).startswith(b'{"type":"ADDED","object":{"')


APPS = "/openapi/v3/apis/apps/v1"


@pytest.mark.parametrize(
    ("path", "accept", "method", "want"),
    [
        pytest.param(
            "/openapi/v3", "text/html", "GET", (200, "text/plain; charset=utf-8"), id="the index has one format"
        ),
        pytest.param("/openapi/v3/", "", "GET", (404, ""), id="the index with a slash"),
        pytest.param(APPS, "", "GET", (200, "application/json"), id="a document"),
        pytest.param(APPS, "", "POST", (200, "application/json"), id="the method is ignored"),
        pytest.param(APPS, "application/*;q=0.1", "GET", (200, "application/json"), id="any application type"),
        pytest.param(APPS, "text/html", "GET", (406, ""), id="an unknown format"),
        pytest.param(f"{APPS}/", "", "GET", (404, ""), id="a document with a slash"),
        pytest.param(f"{APPS}?hash=OLD", "", "GET", (301, "application/json"), id="an old document"),
    ],
)
def test_openapi_documents_are_served_as_by_kube_apiserver(
    path: str, accept: str, method: str, want: tuple[int, str]
) -> None:
    found = answer(path, accept=accept, method=method)
    assert (found.status, found.content_type) == want


def test_an_openapi_document_is_immutable_under_its_hash() -> None:
    assert "cache-control" not in dict(answer(APPS).headers)
    moved = dict(answer(f"{APPS}?hash=OLD").headers)["location"]
    assert ("cache-control", "public, immutable") in answer(moved).headers
