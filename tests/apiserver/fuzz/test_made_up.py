"""Requests that Schemathesis generates are answered, in process; ``make test-fuzz-api`` sends ten thousand to a server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import unquote

import pytest

from bayplan.apiserver.rest.loading import load_documents
from bayplan.apiserver.rest.messages import Request, Response, Stream, parse_query
from bayplan.formats.manifest import PlainObject
from tests.apiserver.client import Client
from tests.apiserver.fuzz.expected import documents_of, problem_with, seeded
from tests.apiserver.fuzz.made_up import MadeUp, Source

_LONGEST = 0.5
"""Time for the first frame of a watch, in seconds."""


@pytest.mark.parametrize("version", ["apis/policy/v1", "apis/scheduling.k8s.io/v1"])
def test_generated_requests_get_valid_responses(version: str) -> None:
    client = Client()
    load_documents(client.backend, [PlainObject(each, "") for each in seeded()])
    source = Source([client.get(f"/openapi/v3/{version}").document], 1)

    async def ask(request: MadeUp) -> str:
        headers = {name.lower(): value for name, value in request.headers.items()} | {"user-agent": "fuzz/1"}
        plain = Request(request.method, unquote(request.path), parse_query(request.query), headers, request.body)
        answer = await client.api.handle(plain)
        if isinstance(answer, Stream):
            with suppress(TimeoutError):
                async with asyncio.timeout(_LONGEST):  # A watch of an unchanged object is silent.
                    async for _ in answer.frames:
                        break
            return ""
        assert isinstance(answer, Response)
        return problem_with(request, answer.status, answer.body)

    async def run() -> list[str]:
        return await asyncio.gather(*(ask(each) for each in source.requests(60, most_each=2)))

    assert [text for text in asyncio.run(run()) if text] == []
    client.store.check_invariants()


def test_requests_are_generated_from_all_groups_and_versions() -> None:
    paths = {path for document in documents_of(Client()) for path in document["paths"]}  # type: ignore[attr-defined]
    assert {"/api/v1/namespaces/{namespace}/pods", "/apis/apps/v1/namespaces/{namespace}/deployments"} <= paths
