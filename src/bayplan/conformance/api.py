"""Recorded exchanges with the real kube-apiserver against our API: a scenario is replayed whole, in virtual time.

An exchange makes sense only after those before it, so the first one that is asked for runs its whole scenario on a fresh
store, in process, through the ASGI application; the others take their answers from that run. The clock of the event loop
jumps to the next timer instead of waiting, so that a watch of five seconds costs nothing.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import selectors
from typing import Any, cast

import msgspec

from bayplan.apiserver.http.application import Application
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.store.store import Store
from bayplan.base.asgi import Message
from bayplan.base.errors import InputError
from bayplan.conformance.cases import Json, JsonObject

_COMPACTED = "etcd was compacted"
_HEADERS = ("content-type", "warning", "retry-after", "allow", "etag")
_EPOCH = 1_767_225_600.0
_runs: dict[int, tuple[object, dict[str, JsonObject]]] = {}


def answer_api_case(case: JsonObject) -> JsonObject:
    """Return our answer to a recorded exchange: ``{"id", "response"}``.

    Args:
        case: the exchange, with all exchanges of its scenario under ``scenario``.
    """
    scenario = cast("list[JsonObject]", case["scenario"])
    run = _runs.get(id(scenario))
    if run is None or run[0] is not scenario:
        # One scenario at a time is enough: cases of a file come one after the other.
        _runs.clear()
        run = _runs[id(scenario)] = (scenario, replay(scenario))
    return run[1][str(case["id"])]


def replay(scenario: list[JsonObject]) -> dict[str, JsonObject]:
    """Run a scenario on a fresh store and return our answers by id."""
    loop = _VirtualLoop()
    try:
        return loop.run_until_complete(_Replay(scenario, loop).run())
    finally:
        loop.close()


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that lets time pass at once instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.now += timeout
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of its timers."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


class _Replay:
    """One run of a scenario."""

    def __init__(self, scenario: list[JsonObject], loop: _VirtualLoop) -> None:
        self._scenario = scenario
        self._store = Store()
        backend = Backend(self._store, clock=lambda: _EPOCH + loop.time())
        bootstrap(backend)
        self._application = Application(Api(backend))
        self._captured: dict[str, str] = {}
        self._answers: dict[str, JsonObject] = {}

    async def run(self) -> dict[str, JsonObject]:
        background: list[asyncio.Task[None]] = []
        for exchange in self._scenario:
            if _COMPACTED in str(exchange.get("note", "")):
                self._store.compact()
            if exchange.get("background"):
                background.append(asyncio.ensure_future(self._exchange(exchange)))
                await asyncio.sleep(0.01)
            else:
                await self._exchange(exchange)
        await asyncio.gather(*background)
        return self._answers

    async def _exchange(self, exchange: JsonObject) -> None:
        request = cast("JsonObject", exchange["request"])
        template = cast("JsonObject", exchange.get("template") or {})
        path = self._filled(str(template.get("path") or request["path"]))
        body = template["body"] if template.get("body") is not None else request.get("body")
        data = body.encode() if isinstance(body, str) else b"" if body is None else msgspec.json.encode(body)
        headers = cast("dict[str, str]", request.get("headers") or {})
        response = await self._send(str(request["method"]), path, headers, self._filled(data.decode()).encode())
        for name, pointer in cast("dict[str, str]", exchange.get("captures") or {}).items():
            found = at_pointer(response.get("body"), pointer)
            self._captured[name] = found if isinstance(found, str) else json.dumps(found)
        self._answers[str(exchange["id"])] = {"id": exchange["id"], "response": response}

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: self._captured.get(match[1], match[0]), text)

    async def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> JsonObject:
        """Send a request through the application, and return the response in the form of the recording."""
        sent: list[Message] = []
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if pending:
                return pending.pop()
            await asyncio.Event().wait()
            raise AssertionError("unexpected read after the request body")

        async def send(message: Message) -> None:
            sent.append(message)

        plain, _, query = path.partition("?")
        fields = {"user-agent": "conformance/1.0"} | {name.lower(): value for name, value in headers.items()}
        scope: dict[str, Any] = {
            "type": "http", "method": method, "path": plain, "raw_path": plain.encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        }  # fmt: skip
        await self._application(scope, receive, send)
        # Responses to requests with a parameter named watch were recorded as a list of JSON values.
        return _recorded(sent, is_watch="watch=" in query and sent[0]["status"] == 200)


def _recorded(sent: list[Message], *, is_watch: bool) -> JsonObject:
    start = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    headers: dict[str, str] = {}
    for raw_name, raw_value in start["headers"]:
        name, value = raw_name.decode(), raw_value.decode()
        if name in _HEADERS:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    response: JsonObject = {"status": start["status"], "headers": cast("Json", headers)}
    media_type = headers.get("content-type", "")
    if is_watch:
        response["stream"] = [msgspec.json.decode(line) for line in body.splitlines() if line]
    elif media_type.startswith("application/json") and body:
        response["body"] = msgspec.json.decode(body)
        response["text"] = body.decode()
    elif media_type.startswith("application/vnd.kubernetes.protobuf"):
        response["base64"] = base64.b64encode(body).decode()
    else:
        response["body"] = body.decode()
    return response


def at_pointer(document: Json, pointer: str) -> Json:
    """Return the value at a JSON pointer, None if there is nothing.

    Raises:
        InputError: it is no pointer.
    """
    if pointer and not pointer.startswith("/"):
        raise InputError("JSON pointer", got=repr(pointer), wanted="one that starts with /")
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(token)
        elif isinstance(document, list) and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        else:
            return None
    return document
