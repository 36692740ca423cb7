"""Writes that a web page of another origin could send are refused by all routes, also kube-scheduler-simulator's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.base.web_origin import FORM_TYPES, SAFE_METHODS
from bayplan.http_api import kss_api
from bayplan.http_api.application import STREAM
from bayplan.http_api.operations import OPERATIONS, ROOT
from tests.http_api.server_fixture import ServerFixture, node, pod, run

PEER = "http://localhost:3000"

FOREIGN = {
    "another port of this machine": {"origin": PEER},
    "a sandboxed frame": {"origin": "null"},
    "what the browser calls another site": {"origin": "http://localhost", "sec-fetch-site": "same-site"},
    "another site without an origin": {"sec-fetch-site": "cross-site"},
}


def _writes() -> Iterator[tuple[str, str]]:
    """Yield method and path of every route that writes, from the tables of the routes themselves."""
    for operation in OPERATIONS:
        if operation.method not in SAFE_METHODS:
            yield operation.method, ROOT + re.sub(r"\{\w+\}", "x", operation.path)
    for name, methods in kss_api.OPERATIONS.items():
        for method in methods:
            if method not in SAFE_METHODS:
                yield method, f"{kss_api.ROOT}{name}"
    for verb in kss_api.VERBS:
        yield "POST", f"{kss_api.ROOT}extender/{verb}/0"


WRITES = sorted(_writes())


def test_writing_routes_are_listed() -> None:
    assert len(WRITES) > 20
    assert ("PUT", "/api/v1/reset") in WRITES


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_writes_from_foreign_origins_are_refused(headers: dict[str, str]) -> None:
    async def test(fixture: ServerFixture) -> None:
        before = fixture.server.backend.store.revision, fixture.server.setup
        for method, path in WRITES:
            for content_type in ("application/json", "text/plain"):
                answer = await fixture.client.request(
                    method, path, content="{}", headers={**headers, "content-type": content_type}
                )
                assert answer.status_code == 403, (method, path, answer.text)
                assert "access-control-allow-origin" not in answer.headers
        assert (fixture.server.backend.store.revision, fixture.server.setup) == before

    run(test, node("n1"), pod("a"))


@pytest.mark.parametrize("content_type", [*sorted(FORM_TYPES), ""])
def test_content_types_of_html_forms_are_refused(content_type: str) -> None:
    async def test(fixture: ServerFixture) -> None:
        before = fixture.server.backend.store.revision, fixture.server.setup
        # Without a content type, only requests from browsers are refused; with a form's content type, all requests are.
        headers = {"content-type": content_type} if content_type else {"origin": "http://localhost"}
        for method, path in WRITES:
            answer = await fixture.client.request(method, path, content="{}", headers=headers)
            assert answer.status_code == 415, (method, path, answer.text)
        assert (fixture.server.backend.store.revision, fixture.server.setup) == before

    run(test, node("n1"), pod("a"))


def test_writes_from_the_page_and_from_programs_are_accepted() -> None:
    async def test(fixture: ServerFixture) -> None:
        for headers in (
            {},
            {"origin": "http://localhost"},
            {"origin": "http://localhost", "sec-fetch-site": "same-origin"},
        ):
            answer = await fixture.client.put(f"{ROOT}/clock", json={"speed": 2}, headers=headers)
            assert answer.status_code == 200, answer.text
        assert (await fixture.client.post(f"{ROOT}/queue/flush")).status_code == 200

    run(test)


def test_a_refusal_names_the_option_that_allows_the_origin() -> None:
    async def test(fixture: ServerFixture) -> None:
        answer = await fixture.client.post(f"{ROOT}/reset", headers={"origin": PEER})
        assert f"--allow-origin {PEER}" in answer.json()["error"]["what"]

    run(test)


def test_an_allowed_origin_can_write_and_read() -> None:
    async def test(fixture: ServerFixture) -> None:
        origin = {"origin": PEER, "sec-fetch-site": "same-site"}
        asked = {**origin, "access-control-request-headers": "content-type", "access-control-request-method": "PUT"}
        answer = await fixture.client.request("OPTIONS", "/api/v1/reset", headers=asked)
        assert answer.headers["access-control-allow-origin"] == PEER
        assert answer.headers["access-control-allow-headers"] == "content-type"
        answer = await fixture.client.put("/api/v1/reset", headers=origin)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (202, PEER)
        answer = await fixture.client.get("/api/v1/export", headers={"origin": "http://localhost:4000"})
        assert "access-control-allow-origin" not in answer.headers

    run(test, allowed_origins=[PEER])


def test_a_websocket_from_a_foreign_origin_is_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        for origin, want in ((PEER, "websocket.close"), ("http://localhost", "websocket.accept")):
            sent: list[Any] = []
            messages = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])

            async def receive(messages: Iterator[Any] = messages) -> Any:
                return next(messages)

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            headers = [(b"host", b"localhost"), (b"origin", origin.encode())]
            scope = {"type": "websocket", "path": STREAM, "query_string": b"", "headers": headers, "subprotocols": []}
            await fixture.service(scope, receive, send)
            assert sent[0]["type"] == want

    run(test)
