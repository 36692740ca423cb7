"""Small writes that are answered as soon as their last byte arrives, without an asyncio task or ASGI messages.

Unless it calls webhooks, a write waits only for the disk. Uvicorn's task and events take up to a third of the time of a
create. All other requests use uvicorn's task: reads (large lists are sent in pieces), watches, long, chunked or YAML
bodies, mounted applications, and clients that do not read their responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Protocol

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE

from bayplan.apiserver.http.request_head import MAX_DIRECT_BYTES, RawHeaders, RequestHead
from bayplan.apiserver.rest.messages import Response
from bayplan.base.errors import InvariantError

METHODS = frozenset((b"POST", b"PUT", b"PATCH", b"DELETE"))
_BODIES = (b"application/json", b"application/merge-patch+json", b"application/strategic-merge-patch+json",
    b"application/json-patch+json", b"application/vnd.kubernetes.protobuf")  # fmt: skip
_OTHERS = frozenset((b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"))
_PHRASES = {code.value: code.phrase for code in HTTPStatus}
_HEADS = {code: f"HTTP/1.1 {code} {_PHRASES.get(code, '')}\r\n".encode() for code in range(100, 600)}
_log = logging.getLogger(__name__)


class DirectApplication(Protocol):
    """An application that can answer some requests without waiting."""

    @property
    def answers_now(self) -> bool:
        """Whether it can answer requests now without waiting."""

    def serves(self, head: RequestHead) -> bool:
        """Return whether the application handles a request."""

    def answer_write(self, head: RequestHead, body: bytes) -> Coroutine[object, object, Response]:
        """Return the response to a request; the coroutine must not wait."""

    def until_durable(self, response: Response) -> asyncio.Future[None] | None:
        """Return a future that is done when the response may be sent, or None if it already may."""

    def write_failed(self, problem: BaseException) -> Response:
        """Return the response to a write that did not become durable."""


class _NoEvent:
    """Stands in for uvicorn's event, which no task awaits for a direct request."""

    def set(self) -> None:
        """Do nothing."""


class DirectCycle:
    """One request that is answered directly. It has the attributes that uvicorn's protocol expects of a cycle.

    Args:
        head: the head of the request.
        transport: the transport to the client.
        application: the application that answers.
        default_headers: headers of all responses.
        keep_alive: whether the connection stays open after the response.
        on_response: called after the response is sent.
    """

    message_event = _NoEvent()

    def __init__(
        self,
        head: RequestHead,
        transport: asyncio.Transport,
        application: DirectApplication,
        default_headers: RawHeaders,
        *,
        keep_alive: bool,
        on_response: Callable[[], None],
    ) -> None:
        self.head = head
        self.transport = transport
        self.default_headers = default_headers
        self.keep_alive = keep_alive
        self.on_response = on_response
        self.body = bytearray()
        self.more_body = True
        self.response_complete = False
        self.disconnected = False
        self._application = application

    def answer(self) -> None:
        """Answer the request, whose body is complete, now or when its write is durable.

        On failure, close the connection: uvicorn's parser would treat an exception as a malformed request.
        """
        self.more_body = False
        try:
            response = _result(self._application.answer_write(self.head, bytes(self.body)))
            waiting = self._application.until_durable(response)
        except Exception:
            self._fail()
            return
        if waiting is None:
            self._send(response)
        else:
            waiting.add_done_callback(lambda done: self._until_durable(response, done))

    def _until_durable(self, response: Response, done: asyncio.Future[None]) -> None:
        problem = asyncio.CancelledError() if done.cancelled() else done.exception()
        self._send(response if problem is None else self._application.write_failed(problem))

    def _send(self, response: Response) -> None:
        try:
            self._write(response)
        except Exception:
            self._fail()

    def _fail(self) -> None:
        _log.exception("%s %s", self.head.scope["method"], self.head.scope["path"])
        self.response_complete = True
        self.transport.abort()

    def _write(self, response: Response) -> None:
        self.response_complete = True
        if self.disconnected:
            return
        body, pieces = response.body, [_HEADS[response.status]]
        for name, value in self.default_headers:
            pieces += (name, b": ", value, b"\r\n")
        for text, content in response.headers:
            name, value = text.encode("latin-1"), content.encode("utf-8")
            if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
                raise InvariantError(f"the header {text} has characters that are not allowed")
            pieces += (name, b": ", value, b"\r\n")
        if response.content_type:
            pieces += (b"content-type: ", response.content_type.encode(), b"\r\n")
        pieces.append(b"content-length: %d\r\n" % len(body))
        if not self.keep_alive:
            pieces.append(b"connection: close\r\n")
        pieces += (b"\r\n", body)
        self.transport.write(b"".join(pieces))
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _result(answering: Coroutine[object, object, Response]) -> Response:
    try:
        answering.send(None)
    except StopIteration as ended:
        response: Response = ended.value
        return response
    answering.close()
    raise InvariantError("a write that is answered directly has waited")


def is_direct(headers: RawHeaders) -> bool:
    """Return whether the headers announce a small write in a format that can be answered directly."""
    length, content_type = b"0", b""
    for name, value in headers:
        if name in _OTHERS:
            return False
        if name == b"content-length":
            length = value
        elif name == b"content-type":
            content_type = value
    if len(length) > 5 or not length.isdigit() or int(length) > MAX_DIRECT_BYTES:
        return False
    return content_type in _BODIES or not content_type
