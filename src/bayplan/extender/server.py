"""Serves plugins as an HTTP extender: a Starlette application for `bayplan.extender.plugin_extender`.

Requests are handled one after another: kube-scheduler processes one pod at a time, and requests share the plugins'
state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bayplan.base.errors import BayplanError
from bayplan.base.web_origin import foreign_origin, form_type
from bayplan.extender.plugin_extender import PluginExtender, ScoringError

FILTER, PRIORITIZE, PREEMPT = "filter", "prioritize", "preempt"
JSON = "application/json"
MAX_REQUEST_BYTES = 256 << 20
"""A scheduler that caches no nodes for its extender sends whole nodes: 5,000 of them take about 50 MB."""

Answering: TypeAlias = Callable[[Mapping[str, object]], object]

OnRequest: TypeAlias = Callable[[str, Mapping[str, object], object], None]
"""Called for each request with the verb, the arguments and the response.

After a failure, the field `Error` of the response has the reason.
"""


def extender_application(extender: PluginExtender, *, on_request: OnRequest | None = None) -> Starlette:
    """Return the application: POST /filter, /prioritize and /preempt, GET /healthz.

    If filtering fails, the response contains the error, so that the pod's event shows it; other verbs fail with a
    status code.

    Args:
        extender: the extender.
        on_request: called for every request.
    """

    verbs: Mapping[str, Answering] = {
        FILTER: extender.filter,
        PRIORITIZE: extender.prioritize,
        PREEMPT: extender.preempt,
    }
    routes = [
        Route(f"/{verb}", _endpoint(verb, answer, on_request), methods=["POST"]) for verb, answer in verbs.items()
    ]
    return Starlette(routes=[*routes, Route("/healthz", _health)])


def _endpoint(verb: str, answer: Answering, on_request: OnRequest | None) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if origin := foreign_origin(request.headers):
            return PlainTextResponse(f"requests from web pages of other origins are refused, got {origin}", 403)
        if media_type := form_type(request.headers):
            return PlainTextResponse(f"content type: expected application/json, got {media_type}", 415)
        try:
            body = await _read_body(request)
        except ClientDisconnect:
            return PlainTextResponse("the client went away", 400)
        if body is None:
            return PlainTextResponse(f"the request is too large: expected at most {MAX_REQUEST_BYTES:,} bytes", 413)
        arguments = _arguments(body)
        if isinstance(arguments, str):
            return PlainTextResponse(arguments, 400)
        try:
            found = answer(arguments)
        except (BayplanError, ScoringError) as problem:
            failure = {"Error": str(problem)}
            if on_request is not None:
                on_request(verb, arguments, failure)
            if verb == FILTER:
                return _json(failure)
            return PlainTextResponse(failure["Error"], 500 if isinstance(problem, ScoringError) else 400)
        if on_request is not None:
            on_request(verb, arguments, found)
        return _json(found)

    return endpoint


async def _read_body(request: Request) -> bytes | None:
    """Return the body, or None if it is too large. Raises ClientDisconnect if the client does not send all of it."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_REQUEST_BYTES:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type=JSON)


async def _health(request: Request) -> Response:
    return PlainTextResponse("ok")


def _arguments(body: bytes) -> Mapping[str, object] | str:
    """Return the arguments in a request, or what is wrong with them."""
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        return f"the request is not JSON: {problem}"
    return value if isinstance(value, dict) else "the request is not a JSON object"
