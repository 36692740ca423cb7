"""Recorded exchanges with the real kube-apiserver compared with Bayplan's API: scenarios, replayed in virtual time.

An exchange depends on the exchanges before it, so the first request for one of them runs its whole scenario on a fresh
store, in process, through the ASGI application. The other requests use the results of that run. The clock of the event
loop jumps to the next timer instead of waiting, so that a watch of five seconds takes no time.
"""

from __future__ import annotations

import asyncio
import json
import re
import selectors
from collections.abc import Mapping
from datetime import datetime
from typing import cast
from urllib.parse import unquote

import msgspec

from bayplan.apiserver.admission.outgoing import Outgoing
from bayplan.apiserver.admission.targets import Targets
from bayplan.apiserver.http.application import Application
from bayplan.apiserver.http.hook_client import HookClient
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.listing import decode_continue, encode_continue
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.in_process import send

_COMPACTED = "etcd was compacted"
_WRITTEN = re.compile(r'"(?:time|creationTimestamp)":"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)"')
_TOKEN = re.compile(r"[?&]continue=([^&]+)")
_END = "\0"
_TOO_LARGE = 504
_EPOCH = 1_767_225_600.0
_LEAVE_SECONDS = 0.5
_runs: dict[int, tuple[object, dict[str, JsonObject]]] = {}


def answer_api_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a recorded exchange: ``{"id", "response"}``.

    Args:
        case: the exchange, with all exchanges of its scenario under ``scenario``.
    """
    scenario = cast("list[JsonObject]", case["scenario"])
    run = _runs.get(id(scenario))
    if run is None or run[0] is not scenario:
        # Caching one scenario is enough: cases of a file are consecutive.
        _runs.clear()
        run = _runs[id(scenario)] = (scenario, replay(scenario))
    return run[1][str(case["id"])]


def replay(
    scenario: list[JsonObject], *, targets: Targets | None = None, values: Mapping[str, str] | None = None
) -> dict[str, JsonObject]:
    """Run a scenario on a fresh store and return Bayplan's answers by id.

    Args:
        scenario: the exchanges of the scenario, in order.
        targets: the targets at which webhooks may be called, or None for no webhooks. With targets, the loop waits for
            them in real time, and the clock of the API advances only to the recorded times.
        values: the values of template variables that no response provides.
    """
    loop = VirtualLoop() if targets is None else asyncio.SelectorEventLoop()
    try:
        return loop.run_until_complete(_Replay(scenario, loop, targets, values or {}).run())
    finally:
        loop.close()


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that advances time immediately instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: it advances to the next timer without waiting."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual time, in seconds since the start."""
        return self._jumping.now


class _Replay:
    """One run of a scenario."""

    def __init__(
        self,
        scenario: list[JsonObject],
        loop: asyncio.AbstractEventLoop,
        targets: Targets | None,
        values: Mapping[str, str],
    ) -> None:
        self._scenario = scenario
        self._store = Store()
        # The clock jumps to the recorded times, because times order the managers of fields.
        self._recorded_start: float | None = None
        self._ahead = 0.0
        self._loop = loop
        self._targets = targets
        backend = Backend(self._store, clock=lambda: _EPOCH + self._elapsed() + self._ahead)
        bootstrap(backend)
        self._api = Api(backend)
        self._application = Application(self._api)
        self._captured = dict(values)
        self._answers: dict[str, JsonObject] = {}

    async def run(self) -> dict[str, JsonObject]:
        if self._targets is not None:
            backend = self._api.backend
            backend.outgoing = Outgoing(self._targets)
            self._api.calls = HookClient(backend.outgoing)
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
        if self._targets is not None:
            # TLS connections exchange closing messages first.
            await asyncio.sleep(_LEAVE_SECONDS)
        return self._answers

    def _elapsed(self) -> float:
        """Return the virtual time that has passed (s); 0 with webhooks, because real time varies between runs."""
        return self._loop.time() if self._targets is None else 0.0

    def _catch_up(self, exchange: JsonObject) -> None:
        """Set the clock to the latest write time in the recorded response."""
        text = msgspec.json.encode(exchange.get("response")).decode()
        times = [datetime.fromisoformat(found[1]).timestamp() for found in _WRITTEN.finditer(text)]
        if not times:
            return
        if self._recorded_start is None:
            self._recorded_start = min(times)
        passed = max(times) - self._recorded_start
        self._ahead = max(self._ahead, passed - self._elapsed())

    async def _exchange(self, exchange: JsonObject) -> None:
        self._catch_up(exchange)
        request = cast("JsonObject", exchange["request"])
        template = cast("JsonObject", exchange.get("template") or {})
        path = self._filled(str(template.get("path") or request["path"]))
        if _status(exchange) != _TOO_LARGE:
            path = _with_reached_revision(path, self._store.revision)
        body = template["body"] if template.get("body") is not None else request.get("body")
        # With the whitespace that the recorder sent: upstream compares the raw JSON in some objects byte by byte.
        data = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
        headers = cast("dict[str, str]", request.get("headers") or {})
        response = await send(
            self._application, str(request["method"]), path, headers, self._filled(data.decode()).encode()
        )
        for name, pointer in cast("dict[str, str]", exchange.get("captures") or {}).items():
            found = at_pointer(response.get("body"), pointer)
            self._captured[name] = "" if found is None else found if isinstance(found, str) else json.dumps(found)
        self._answers[str(exchange["id"])] = {"id": exchange["id"], "response": response}

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: self._captured.get(match[1], match[0]), text)


def _status(exchange: JsonObject) -> Json:
    response = exchange.get("response")
    return response.get("status") if isinstance(response, dict) else None


def _with_reached_revision(path: str, current: int) -> str:
    """Return a path whose continue token has the current revision if its own is ahead, as in a token of another cluster."""
    match = _TOKEN.search(path)
    if match is None:
        return path
    try:
        token = decode_continue(unquote(match[1]))
    except ApiError:
        return path
    if token.revision <= current:
        return path
    return f"{path[: match.start(1)]}{encode_continue(current, token.start.removesuffix(_END))}{path[match.end(1) :]}"


def at_pointer(document: Json, pointer: str) -> Json:
    """Return the value at a JSON pointer, or None if it does not exist.

    Raises:
        InputError: the text is not a JSON pointer.
    """
    if pointer and not pointer.startswith("/"):
        raise InputError("JSON pointer", got=repr(pointer), wanted="a pointer that starts with /")
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(token)
        elif isinstance(document, list) and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        else:
            return None
    return document
