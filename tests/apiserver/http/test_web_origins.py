"""Writes to the Kubernetes API that a web page of another origin could send: every route of every resource refuses them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from bayplan.apiserver.http.access import PUBLIC_PATHS
from bayplan.apiserver.http.application import Application
from bayplan.apiserver.model.resources import Resource
from bayplan.base.web_origin import FORM_TYPES
from tests.apiserver.client import Client, pod

METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}


def _writes(client: Client) -> Iterator[tuple[str, str]]:
    """Yield method and path of every route that writes, from the table of the resources."""
    for resource in client.backend.registry.all():
        collection = _collection(resource)
        for verb in resource.facts.verbs:
            if verb in METHODS:
                yield METHODS[verb], collection if verb in ("create", "deletecollection") else f"{collection}/x"
        for name, facts in resource.subresources.items():
            for verb in facts.verbs:
                if verb in METHODS:
                    yield METHODS[verb], f"{collection}/x/{name}"


def _collection(resource: Resource) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/namespaces/default/{resource.name}" if resource.namespaced else f"{root}/{resource.name}"


def _answers(headers: dict[str, str]) -> dict[tuple[str, str], int]:
    """Return the status of each write with some headers; nothing may be written."""
    client = Client()
    before = client.store.revision
    found = {}

    async def ask() -> None:
        transport = httpx.ASGITransport(app=Application(client.api))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser:
            for method, path in _writes(client):
                answer = await browser.request(method, path, content="{}", headers=headers)
                found[method, path] = answer.status_code

    asyncio.run(ask())
    assert client.store.revision == before
    return found


@pytest.mark.parametrize("origin", ["http://localhost:3000", "null", "https://evil.example"])
def test_every_write_route_refuses_other_origins(origin: str) -> None:
    found = _answers({"origin": origin, "content-type": "text/plain"})
    assert len(found) > 300
    assert [route for route, status in found.items() if status != 403] == []


@pytest.mark.parametrize("content_type", sorted(FORM_TYPES))
def test_every_write_route_refuses_form_content_types(content_type: str) -> None:
    # 404 and 405: the server reads no body if the object does not exist or the method is not allowed.
    found = _answers({"content-type": content_type})
    assert {route: status for route, status in found.items() if status not in (415, 404, 405)} == {}
    assert [status for (method, _), status in found.items() if method == "POST" and status == 415]


def test_only_public_paths_are_accessible_without_a_token() -> None:
    client = Client()
    client.post("/api/v1/namespaces/default/pods", pod("a"))
    got = {}

    async def ask() -> None:
        transport = httpx.ASGITransport(app=Application(client.api, token="secret"))
        async with httpx.AsyncClient(transport=transport, base_url="http://cluster.example") as anybody:
            for path in (*PUBLIC_PATHS, "/readyz?verbose", "/healthz/etcd", "/livez/ping", "/api", "/metrics", "/"):
                got[path] = (await anybody.get(path)).status_code
            got["HEAD"] = (await anybody.head("/healthz")).status_code
            got["POST"] = (await anybody.post("/healthz")).status_code
            wrong = {"authorization": "Bearer wrong"}
            got["wrong token"] = (await anybody.get("/healthz", headers=wrong)).status_code

    asyncio.run(ask())
    public = [*PUBLIC_PATHS, "/readyz?verbose"]
    assert [got.pop(path) for path in public] == [200] * len(public)
    assert set(got.values()) == {401}, got
