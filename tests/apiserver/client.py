"""A client that calls the API in process, without sockets; the test sets the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import msgspec

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response, Stream, parse_query
from bayplan.apiserver.store.store import Store

Document = dict[str, object]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(slots=True)
class Answer:
    """An answer of the API: its status code, its document or text, and its headers."""

    status: int
    body: object
    headers: list[tuple[str, str]]

    @property
    def document(self) -> Document:
        assert isinstance(self.body, dict), self.body
        return self.body

    def at(self, path: str) -> object:
        """Return the value at a dotted path of the document, such as ``status.phase``, or None if there is none."""
        found: object = self.body
        for name in path.split("."):
            if isinstance(found, list):
                found = found[int(name)] if int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        return found


class Client:
    """An API server over a store in memory, and the requests that tests send to it.

    Attributes:
        store: The store that the API serves.
        seconds: The API server's time in seconds since 1970.
    """

    def __init__(self, store: Store | None = None) -> None:
        self.store = store if store is not None else Store()
        self.seconds = 1_767_225_600.0
        self.backend = Backend(self.store, clock=lambda: self.seconds)
        bootstrap(self.backend)
        self.api = Api(self.backend)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send a request and return the whole answer; the answer to a watch is read to its end."""
        plain, _, query = path.partition("?")
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": content_type, "accept": accept, "user-agent": "test/1"}
        request = Request(method, plain, parse_query(query), headers, data)
        return asyncio.run(self._answer(request))

    async def _answer(self, request: Request) -> Answer:
        answer = await self.api.handle(request)
        if isinstance(answer, Stream):
            return Answer(200, await collect(answer), [])
        assert isinstance(answer, Response)
        is_json = answer.content_type.startswith("application/json")
        body: object = msgspec.json.decode(answer.body) if is_json and answer.body else answer.body.decode()
        return Answer(answer.status, body, answer.headers)

    def get(self, path: str, accept: str = "application/json") -> Answer:
        return self.call("GET", path, accept=accept)

    def post(self, path: str, body: object) -> Answer:
        return self.call("POST", path, body)

    def put(self, path: str, body: object) -> Answer:
        return self.call("PUT", path, body)

    def patch(self, path: str, body: object, content_type: str = MERGE) -> Answer:
        return self.call("PATCH", path, body, content_type=content_type)

    def delete(self, path: str, body: object = None) -> Answer:
        return self.call("DELETE", path, body)


async def collect(stream: Stream) -> list[object]:
    """Return all events of a watch."""
    data = b"".join([piece async for piece in stream.frames])
    return [msgspec.json.decode(line) for line in data.splitlines() if line]


def pod(name: str, change: Callable[[Document], None] | None = None) -> Document:
    """Return the manifest of a pod with one container, after `change` has modified it."""
    spec: Document = {"containers": [{"name": "c", "image": "pause:3.10"}]}
    document: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    if change is not None:
        change(document)
    return document


def names(answer: Answer) -> list[str]:
    """Return the names of the items of a list answer."""
    items = cast("list[dict[str, dict[str, str]]]", answer.document["items"])
    return [item["metadata"]["name"] for item in items]


PODS = "/api/v1/namespaces/default/pods"
