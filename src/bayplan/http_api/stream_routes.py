"""The stream over WebSocket and as server-sent events."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from bayplan.base.asgi import Receive, Scope, Send
from bayplan.http_api.errors import RequestError, document_of
from bayplan.http_api.query import Query
from bayplan.http_api.stream import Client, Stream

PROTOCOL = "bayplan.v1"
TOKEN_PROTOCOL = "bayplan.token."
_NORMAL, _GONE, _INTERNAL_ERROR, _TRY_AGAIN = 1000, 1006, 1011, 1013
"""Codes of the WebSocket protocol (RFC 6455, section 7.4, and IANA's registry)."""

_EVENTS = "text/event-stream"
_EVENT_HEADERS = {"cache-control": "no-cache"}
_EXAMPLE = '{"topics": ["overview"]}'


class Subscription(msgspec.Struct):
    """A message from a client: the topics to subscribe to, instead of the previous ones."""

    topics: list[str]


_decoder = msgspec.json.Decoder(Subscription)


def shown_token(socket: WebSocket) -> str:
    """Return the token in a subprotocol, where browsers put it because they can't set WebSocket headers; "" if there is none."""
    for name in socket.scope.get("subprotocols", ()):
        if name.startswith(TOKEN_PROTOCOL):
            text = name.removeprefix(TOKEN_PROTOCOL)
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    return ""


async def over_websocket(stream: Stream, socket: WebSocket) -> None:
    """Serve a WebSocket until either side closes it. The caller has checked access."""
    offered = socket.scope.get("subprotocols", ())
    await socket.accept(subprotocol=PROTOCOL if PROTOCOL in offered else None)
    try:
        client = stream.subscribe(())
    except RequestError as problem:
        with contextlib.suppress(WebSocketDisconnect):
            await _send_text(socket, _error(problem))
        await _close(socket, _TRY_AGAIN)
        return
    sending = asyncio.ensure_future(_send(client, socket))
    receiving = asyncio.ensure_future(_receive(stream, client, socket))
    try:
        await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stream.unsubscribe(client)
        for task in (sending, receiving):
            task.cancel()
        ended = await asyncio.gather(sending, receiving, return_exceptions=True)
    expected = (WebSocketDisconnect, asyncio.CancelledError)
    bugs = [each for each in ended if isinstance(each, BaseException) and not isinstance(each, expected)]
    await _close(socket, _INTERNAL_ERROR if bugs else _NORMAL)
    if bugs:
        raise bugs[0]


async def _send(client: Client, socket: WebSocket) -> None:
    async for frames in client.frames():
        for _, _, body in frames:
            await _send_text(socket, body.decode())


async def _receive(stream: Stream, client: Client, socket: WebSocket) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        text: str | None = message.get("text")
        try:
            if text is None:
                raise RequestError(400, "message", got="a binary one", wanted=_EXAMPLE)
            stream.follow(client, _decoder.decode(text).topics)
        except msgspec.DecodeError as problem:
            await _send_text(socket, _error(RequestError(400, "message", got=str(problem), wanted=_EXAMPLE)))
        except RequestError as problem:
            await _send_text(socket, _error(problem))


async def _send_text(socket: WebSocket, text: str) -> None:
    """Send a message.

    Raises:
        WebSocketDisconnect: the client is gone.
    """
    try:
        await socket.send_text(text)
    except RuntimeError:
        # Servers raise it if the connection ended between the last message received and this one.
        if socket.client_state is WebSocketState.DISCONNECTED:
            raise WebSocketDisconnect(_GONE) from None
        raise


async def _close(socket: WebSocket, code: int) -> None:
    """Close a WebSocket, unless it is already closed."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.close(code)


def _error(problem: RequestError) -> str:
    document = {"topic": "error", "data": document_of(problem, "").error}
    return msgspec.json.encode(document).decode()


def as_events(stream: Stream, request: Request, query: Query) -> Response:
    """Serve the stream as server-sent events. A HEAD request gets only the headers."""
    topics = [topic for topic in query.text("topics").split(",") if topic]
    if not topics:
        raise RequestError(
            400, "topics", got="none", wanted="topics, separated by commas", hint="?topics=overview,clock"
        )
    client = stream.subscribe(topics)
    if request.method == "HEAD":
        stream.unsubscribe(client)
        return Response(headers=_EVENT_HEADERS, media_type=_EVENTS)
    return _EventResponse(stream, client)


class _EventResponse(StreamingResponse):
    """A response with the frames of a client, which is unsubscribed when the response ends, even before its first event.

    Args:
        stream: the stream.
        client: the subscribed client.
    """

    def __init__(self, stream: Stream, client: Client) -> None:
        super().__init__(_events(client), headers=_EVENT_HEADERS, media_type=_EVENTS)
        self._stream, self._client = stream, client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.unsubscribe(self._client)


async def _events(client: Client) -> AsyncIterator[bytes]:
    async for frames in client.frames():
        if not frames:
            yield b": still here\n\n"
        for topic, sequence, body in frames:
            yield b"event: %s\nid: %d\ndata: %s\n\n" % (topic.encode(), sequence, body)
