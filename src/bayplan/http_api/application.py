"""The service as an ASGI application: the routes, checks and errors of /bayplan/v1, mounted next to the Kubernetes API."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from http import HTTPStatus
from itertools import count
from typing import NamedTuple

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.websockets import WebSocket

from bayplan.apiserver.http.access import WEBSOCKET, Access
from bayplan.apiserver.model.errors import ApiError
from bayplan.base.asgi import Receive, Scope, Send
from bayplan.base.errors import EngineBusy, InputError, PluginFailure
from bayplan.http_api.answers import bytes_answer, json_answer
from bayplan.http_api.errors import RequestError, document_of, request_error_of
from bayplan.http_api.kss_api import KssApi, is_operation
from bayplan.http_api.openapi import openapi_document
from bayplan.http_api.operations import OPERATIONS, ROOT, Handler
from bayplan.http_api.query import Query
from bayplan.http_api.server_context import ServerContext
from bayplan.http_api.server_state import ServerState
from bayplan.http_api.stream import Stream
from bayplan.http_api.stream_routes import as_events, over_websocket, shown_token

STREAM = f"{ROOT}/stream"
OPENAPI = f"{ROOT}/openapi.json"

_log = logging.getLogger("bayplan.http_api")


class _Endpoint(NamedTuple):
    """A route with the names of its query parameters and its handler."""

    route: Route
    query: Sequence[str]
    handler: Handler


class Service:
    """Bayplan's own API of a running server, as an ASGI application.

    Args:
        server: the server.
        token: the token that clients must send; if empty, every client on this machine is allowed.
        allowed_origins: see `Access`.
        until_durable: given a revision of the store, returns an awaitable that completes when the revision is durable, or
            None if it already is. Responses to writes wait for it.
    """

    def __init__(
        self,
        server: ServerContext,
        *,
        token: str = "",
        allowed_origins: Collection[str] = (),
        until_durable: Callable[[int], Awaitable[None] | None] | None = None,
    ) -> None:
        self.state = ServerState(server)
        self._access = Access(token, allowed_origins=allowed_origins)
        self._until_durable = until_durable
        self._requests = count(1)
        self._stream: Stream | None = None
        self._kss = KssApi(self.state, self._access, self._until_stored)
        self._endpoints = [
            *(_endpoint(each.method, f"{ROOT}{each.path}", each.query, each.handler) for each in OPERATIONS),
            _endpoint("GET", STREAM, ("topics",), self._events),
            _endpoint("GET", OPENAPI, (), _openapi),
        ]

    def start(self) -> None:
        """Start the stream's background tasks on the running event loop; they end with it."""
        self._stream = Stream(self.state)
        self._stream.start()

    def end_streams(self) -> None:
        """End all streams, so that the server can stop without waiting for them."""
        self._kss.end_streams()
        if self._stream is not None:
            self._stream.stop()

    def close(self) -> None:
        """Stop the worker threads. Call once no request is in flight."""
        self.state.close()

    def answers(self, scope: Scope) -> bool:
        """Return whether this application handles the request: a path of this API, or a kube-scheduler-simulator operation."""
        path: str = scope["path"]
        return path.startswith(f"{ROOT}/") or path == ROOT or is_operation(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await self._websocket(WebSocket(scope, receive, send))
            return
        if scope["path"] == ROOT:
            scope = {**scope, "path": f"{ROOT}/"}
        request = Request(scope, receive, send)
        if not scope["path"].startswith(ROOT):
            response = await self._kss.answer(request)
            await response(scope, receive, send)
            return
        request_id = f"{self.state.server.instance}-{next(self._requests)}"
        response = await self._answer(request, request_id)
        try:
            await self._until_stored(request)
        except RequestError as problem:
            response = json_answer(request, document_of(problem, request_id), problem.status)
        response.headers["x-request-id"] = request_id
        await response(scope, receive, send)

    async def _until_stored(self, request: Request) -> None:
        """Wait until the writes of a request are durable.

        Raises:
            RequestError: storing them failed.
        """
        if self._until_durable is not None and request.method not in ("GET", "HEAD", "OPTIONS"):
            waiting = self._until_durable(self.state.server.backend.store.revision)
            if waiting is not None:
                try:
                    await waiting
                except InputError as problem:
                    status = HTTPStatus.INTERNAL_SERVER_ERROR
                    raise RequestError(status, "the write was not stored", got=str(problem)) from problem

    async def _websocket(self, socket: WebSocket) -> None:
        stream = self._stream
        try:
            self._access.check(socket.headers, method=WEBSOCKET, shown=shown_token(socket))
        except ApiError:
            stream = None
        if stream is None or socket.scope["path"] != STREAM:
            # Closing the connection before accepting it rejects the WebSocket.
            await socket.close(1008)
            return
        await over_websocket(stream, socket)

    async def _answer(self, request: Request, request_id: str) -> Response:
        try:
            self._access.check(request.headers, method=request.method)
            endpoint = self._endpoint_of(request)
            query = Query(request.query_params, endpoint.query)
            return await endpoint.handler(self.state, request, query)
        except ApiError as problem:
            error = RequestError(problem.code, problem.message)
        except EngineBusy as problem:
            error = RequestError(HTTPStatus.SERVICE_UNAVAILABLE, str(problem), hint="again in a moment")
        except PluginFailure as problem:
            error = RequestError(HTTPStatus.BAD_GATEWAY, str(problem))
        except InputError as problem:
            error = request_error_of(problem)
        except ClientDisconnect:
            # The client disconnected before it sent the whole body, so it never reads this response.
            error = RequestError(HTTPStatus.BAD_REQUEST, "body", got="an incomplete one", wanted="a complete body")
        except Exception:
            _log.exception("%s %s (%s)", request.method, request.scope["path"], request_id)
            error = RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the server's log has the details")
        answer = json_answer(request, document_of(error, request_id), error.status)
        if error.allowed:
            answer.headers["allow"] = ", ".join(error.allowed)
        return answer

    async def _events(self, state: ServerState, request: Request, query: Query) -> Response:
        if self._stream is None:
            raise RequestError(HTTPStatus.SERVICE_UNAVAILABLE, "the stream has not started", hint="again in a moment")
        return as_events(self._stream, request, query)

    def _endpoint_of(self, request: Request) -> _Endpoint:
        """Return the endpoint for a request, and set the request's path parameters.

        Raises:
            RequestError: no endpoint has this path, or none has this path with this method.
        """
        allowed: list[str] = []
        for endpoint in self._endpoints:
            match, child = endpoint.route.matches(request.scope)
            if match is Match.FULL:
                request.scope.update(child)
                return endpoint
            if match is Match.PARTIAL:
                allowed += sorted(endpoint.route.methods or ())
        if allowed:
            methods = tuple(dict.fromkeys(allowed))
            wanted = f"one of {', '.join(methods)}"
            raise RequestError(
                HTTPStatus.METHOD_NOT_ALLOWED, "method", got=request.method, wanted=wanted, allowed=methods
            )
        path = request.scope["path"]
        raise RequestError(HTTPStatus.NOT_FOUND, "path", got=f"'{path}'", wanted="a path listed at /bayplan/v1/")


def _endpoint(method: str, path: str, query: Sequence[str], handler: Handler) -> _Endpoint:
    return _Endpoint(Route(path, _unused, methods=[method]), query, handler)


async def _openapi(state: ServerState, request: Request, query: Query) -> Response:
    return bytes_answer(request, msgspec.json.encode(openapi_document()))


async def _unused(request: Request) -> Response:
    return Response(status_code=HTTPStatus.NOT_FOUND)
