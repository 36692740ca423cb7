"""The API as an ASGI application: body size limits, access control, durable responses, and streams that end cleanly."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, cast
from urllib.parse import unquote

from bayplan.apiserver.http.access import WEBSOCKET, Access
from bayplan.apiserver.http.limits import RateLimit
from bayplan.apiserver.http.protocol import ABORT
from bayplan.apiserver.http.request_head import RequestHead
from bayplan.apiserver.http.watch_output import WatchBody, WatchMessages, WatchOutput, refusal_of_handshake
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.users import user_of
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.messages import Request, Response, Stream, is_malformed, parse_query
from bayplan.apiserver.rest.negotiation import PLAIN
from bayplan.apiserver.rest.rendering import render_error
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.base.asgi import Receive, Scope, Send
from bayplan.base.errors import InputError, InvariantError

MAX_BODY_BYTES = 3 * 1024 * 1024
_MIN_COMPRESSED_BYTES = 128 * 1024
_PIECE = 256 * 1024
_UNCACHED = ("cache-control", "no-cache, private")
"""The header of responses that set no other rule for caches."""

_log = logging.getLogger("bayplan.apiserver")


class Mount(Protocol):
    """An ASGI application that handles some of the requests."""

    def answers(self, scope: Scope) -> bool:
        """Return whether this application handles a request or WebSocket."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        ...


class Application:
    """The ASGI application of the API.

    Args:
        api: the API that handles the requests.
        token: the token that clients must send; empty allows every client.
        allowed_origins: see `Access`.
        recorder: the recorder that makes writes durable; None for a store in memory.
        rate_limit: the rate limit of each client; None for no limit.

    Attributes:
        mounts: other applications, which get each request first; they check access themselves.
        on_end: functions to call when streams must end, for the streams of mounted applications.
    """

    def __init__(
        self,
        api: Api,
        *,
        token: str = "",
        allowed_origins: Collection[str] = (),
        recorder: DurableRecorder | None = None,
        rate_limit: RateLimit | None = None,
    ) -> None:
        self._api = api
        self._access = Access(token, allowed_origins=allowed_origins)
        self._recorder = recorder
        self._rate_limit = rate_limit
        self.mounts: list[Mount] = []
        self.on_end: list[Callable[[], None]] = []
        self._ending: set[asyncio.Future[None]] = set()
        self._has_ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or WebSocket, or the server's lifespan protocol."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if self._rate_limit is not None and not self._rate_limit.take((scope.get("client") or ("",))[0]):
            await _send_too_many_requests(scope, send)
            return
        for mount in self.mounts:
            if mount.answers(scope):
                await mount(scope, receive, send)
                return
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._upgrade(scope, receive, send)

    async def _upgrade(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a watch as WebSocket messages, or respond to another WebSocket request with the error of its GET request."""
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        head = RequestHead.of({**scope, "method": "GET"})
        answer = await self._answer(head, b"")
        if isinstance(answer, Stream):
            status = refusal_of_handshake(head.headers.get("origin", ""), scope["subprotocols"])
            if not status:
                await self._stream(answer, WatchMessages(send, scope["subprotocols"]), scope, receive)
                return
            answer = Response(status, b"", "text/plain; charset=utf-8")
        fields = [(b"content-type", answer.content_type.encode()), (b"content-length", b"%d" % len(answer.body))]
        # Never send a success status: the client would treat the connection as upgraded.
        start = {"type": "websocket.http.response.start", "status": max(answer.status, 400), "headers": fields}
        await send(start)
        await send({"type": "websocket.http.response.body", "body": answer.body})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = RequestHead.of(scope)
        try:
            answer = await self._answer(head, receive)
        except _ClientGone:
            return
        if isinstance(answer, Stream):
            await self._stream(answer, WatchBody(send), scope, receive)
        else:
            await self._respond(answer, scope["method"], head.headers, send)

    # --- writes that are answered directly (`bayplan.apiserver.http.direct`) ------------------------------------------

    @property
    def answers_now(self) -> bool:
        """Whether no write has to wait for a rate limit or for webhooks."""
        return self._rate_limit is None and not self._api.backend.outgoing.is_on

    def serves(self, head: RequestHead) -> bool:
        """Return whether a write is for the API and not for a mounted application."""
        return not any(mount.answers(head.scope) for mount in self.mounts)

    async def answer_write(self, head: RequestHead, body: bytes) -> Response:
        """Return the response to a write of the API, before the write is durable."""
        answer = await self._answer(head, body)
        if isinstance(answer, Stream):
            raise InvariantError("a write has a stream as its response")
        if _is_compressed(answer, head.headers):
            answer.body = gzip.compress(answer.body, 1)
            answer.headers.append(("content-encoding", "gzip"))
        return answer

    def until_durable(self, response: Response) -> asyncio.Future[None] | None:
        """Return a future that is done when the revision of a response is durable, or None if it already is."""
        return None if self._recorder is None else self._recorder.until_durable(response.revision)

    def write_failed(self, problem: BaseException) -> Response:
        """Return the response 500 to a write that did not become durable."""
        refused = ApiError(500, f"the write was not stored: {problem}", details={})
        return Response(500, render_error(refused, PLAIN), headers=[_UNCACHED])

    async def _answer(self, head: RequestHead, body: Receive | bytes) -> Response | Stream:
        """Return the response to a request, given its body or the function that reads it."""
        answer = await self._handle(head, body)
        if not any(name == "cache-control" for name, _ in answer.headers):
            answer.headers.append(_UNCACHED)
        return answer

    async def _handle(self, head: RequestHead, body: Receive | bytes) -> Response | Stream:
        try:
            request = head.request
            if request is None:
                request = head.request = self._checked(head)
            if is_malformed(head.scope.get("raw_path") or b""):
                return Response(400, b"400 Bad Request", "text/plain; charset=utf-8")
            content = body if isinstance(body, bytes) else await _read_body(head.headers, body)
            complete = Request(
                request.method, request.path, request.query, request.headers, content, request.user, route=request.route
            )
            response = await self._api.handle(complete)
            request.route = complete.route
            return response
        except ApiError as problem:
            return Response(problem.code, render_error(problem, PLAIN), headers=list(problem.headers.items()))
        except _ClientGone:
            raise
        except Exception:
            _log.exception("%s %s", head.scope["method"], head.scope["path"])
            return Response(500, render_error(ApiError(500, "Internal error occurred", details={}), PLAIN))

    def _checked(self, head: RequestHead) -> Request:
        """Check the access of a client, and return its request without the body.

        Raises:
            ApiError: the client has no access, or its headers for a different user are incomplete.
        """
        scope = head.scope
        # The API rejects content types that forms send along with all other unsupported types.
        method = WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        self._access.check(head.headers, method=method, path=scope["path"], forms=True)
        raw_path = scope.get("raw_path")
        path = unquote(raw_path.decode("latin-1").partition("?")[0]) if raw_path else scope["path"]
        query = parse_query(scope["query_string"].decode("latin-1"))
        return Request(scope["method"], path, query, head.headers, user=user_of(scope["headers"]))

    async def _respond(self, answer: Response, method: str, headers: dict[str, str], send: Send) -> None:
        waiting = self.until_durable(answer)
        if waiting is not None:
            try:
                await waiting
            except InputError as problem:
                answer = self.write_failed(problem)
        body = answer.body
        fields = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in answer.headers]
        if _is_compressed(answer, headers):
            # A write must not await: its response has to be sent before controllers react.
            body = await asyncio.to_thread(gzip.compress, body, 1) if method == "GET" else gzip.compress(body, 1)
            fields.append((b"content-encoding", b"gzip"))
        if answer.content_type:
            fields.append((b"content-type", answer.content_type.encode()))
        fields.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": fields})
        if method == "HEAD":
            body = b""
        # Send a large list in chunks, so that other requests are served in between.
        at = 0
        while len(body) - at > _PIECE:
            await send({"type": "http.response.body", "body": body[at : at + _PIECE], "more_body": True})
            at += _PIECE
        await send({"type": "http.response.body", "body": body[at:] if at else body})

    async def _stream(self, answer: Stream, output: WatchOutput, scope: Scope, receive: Receive) -> None:
        """Send a watch until the watch ends, its client disconnects, or the server stops."""
        sending = asyncio.ensure_future(_send_frames(answer, output))
        gone = asyncio.ensure_future(_disconnected(receive))
        ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ending.add(ending)
        if self._has_ended:
            ending.set_result(None)  # Informers repeat a watch that ended, on a connection that is still open.
        try:
            await asyncio.wait(
                [each for each in (sending, gone, ending, answer.cut_off) if each is not None],
                return_when=asyncio.FIRST_COMPLETED,
            )
            if sending.done():
                sending.result()
            elif answer.cut_off is not None and answer.cut_off.done():
                # The client does not read, so a regular close would wait forever.
                cast("Callable[[], None]", scope.get(ABORT, _nothing))()
        finally:
            self._ending.discard(ending)
            for each in (sending, gone):
                each.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
        if ending.done() or not sending.cancelled():
            # If the server is stopping, the stream ends as if its timeout had passed.
            await output.end()

    def end_streams(self) -> None:
        """End all watches, and those that begin later, so that the server can stop without waiting for them."""
        self._has_ended = True
        for end in self.on_end:
            end()
        for ending in list(self._ending):
            if not ending.done():
                ending.set_result(None)


def _is_compressed(answer: Response, headers: Mapping[str, str]) -> bool:
    """Return whether to compress a response: it is large, and the client accepts gzip."""
    return len(answer.body) >= _MIN_COMPRESSED_BYTES and "gzip" in headers.get("accept-encoding", "")


async def _send_too_many_requests(scope: Scope, send: Send) -> None:
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1013})
        return
    body = b"Too many requests, please try again later.\n"
    fields = [(b"retry-after", b"1"), (b"content-type", b"text/plain; charset=utf-8")]
    fields += [(b"x-content-type-options", b"nosniff"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 429, "headers": fields})
    await send({"type": "http.response.body", "body": body})


class _ClientGone(Exception):
    """The client disconnected before it had sent the whole body."""


def _nothing() -> None:
    """Do nothing. Used with ASGI servers that cannot close a connection immediately."""


async def _send_frames(answer: Stream, output: WatchOutput) -> None:
    frames = answer.frames
    try:
        await output.begin(answer)
        async for piece in frames:
            await output.send(piece)
    finally:
        close = getattr(frames, "aclose", None)
        if close is not None:
            await close()


async def _disconnected(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] in ("http.disconnect", "websocket.disconnect"):
            return


async def _read_body(headers: dict[str, str], receive: Receive) -> bytes:
    """Return the whole body of a request.

    Raises:
        ApiError: the body is too large.
        _ClientGone: the client disconnected before the end of the body.
    """
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise _too_big()
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _ClientGone
    body = cast("bytes", message.get("body", b""))
    if message.get("more_body"):
        pieces, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientGone
            piece = cast("bytes", message.get("body", b""))
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise _too_big()
            pieces.append(piece)
        body = b"".join(pieces)
    return body


def _too_big() -> ApiError:
    return ApiError(413, f"Request entity too large: limit is {MAX_BODY_BYTES}", details={})
