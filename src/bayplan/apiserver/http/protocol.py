"""Uvicorn's HTTP protocol with limits on clients, and with all data of one loop iteration sent in one system call.

Uvicorn writes the head and the body of a response separately, and uvloop passes each to the kernel immediately; a
system call takes up to a tenth of the time of a create. Uvicorn itself does not limit headers, slow clients or
trailers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from bayplan.apiserver.http.direct import METHODS, DirectApplication, DirectCycle, is_direct
from bayplan.apiserver.http.limits import ConnectionTable
from bayplan.apiserver.http.request_head import RequestHead
from bayplan.base.asgi import Scope

_MAX_WAITING = 64 * 1024
_SLOP = 4096
"""Number of bytes by which Go lets a header exceed the limit."""

_MAX_PARSED_URL = 60_000

_CHUNK_OVERHEAD = 16
_REFUSAL_SECONDS = 0.5
_TOO_LARGE = b"431 Request Header Fields Too Large"
_REFUSAL_HEADER = b"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
_NONE, _HEADER, _BODY = 0, 1, 2  # The part of a request that is being received.
ABORT = "bayplan.abort"
"""Key in the ASGI scope of the function that closes the request's connection immediately."""


class GatheringTransport(asyncio.Transport):
    """A transport that collects the data written in one loop iteration, and sends it at the end of the iteration.

    Args:
        transport: the transport to the client.
        loop: the event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes | bytearray | memoryview[Any]] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Buffer data. Send it immediately if the buffer is large, so that flow control notices a slow client."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _MAX_WAITING:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def close(self) -> None:
        """Send buffered data, and close the transport."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the transport immediately, without sending buffered data."""
        self._waiting, self._size = [], 0
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether the transport is closed or closing."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection, such as its peer."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Pause reading."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        self._transport.resume_reading()

    def release(self) -> asyncio.Transport:
        """Send buffered data, and return the inner transport."""
        self._flush()
        return self._transport


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's WebSocket protocol with a callback for lost connections; rejections are not logged as errors.

    Attributes:
        on_lost: called when the connection is lost.
    """

    on_lost: Callable[[], None] | None = None

    def handle_connect(self, event: Request) -> None:
        """Start the application, which can abort the connection."""
        super().handle_connect(event)
        if not self.close_sent:
            cast("dict[str, object]", self.scope)[ABORT] = self.transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the connection, and call `on_lost`."""
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    async def send(self, message: ASGISendEvent) -> None:
        """Send an ASGI message of the application."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            # Uvicorn would log a missing handshake, but a rejected connection needs none.
            self.handshake_complete = True


class LimitedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol over a buffering transport, with limits that apply before a request is authenticated.

    Args:
        args, options: uvicorn's arguments.
        table: the server's connections and limits.
        direct: the application that answers some requests without waiting, or None.
    """

    def __init__(self, *args: Any, table: ConnectionTable, direct: DirectApplication | None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._table = table
        self._direct = direct
        self._direct_cycle: DirectCycle | None = None
        # The head of the last write that was answered directly and arrived in one piece.
        self._head: RequestHead | None = None
        # The number of requests that have begun, and the head of the last one if it was parsed and answered directly.
        self._begun = 0
        self._answered: RequestHead | None = None
        self._limits = table.limits
        self._part = _NONE
        self._received = 0
        self._body_received = 0
        self._chunks = 0
        self._unfinished = 0
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._known = False
        self._refused = False
        self._is_rejection = False

    # --- connections --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection if the limits allow it; otherwise send a 503, or close it without a response."""
        super().connection_made(GatheringTransport(transport, self.loop))
        self._known = self._table.add(self)
        if not self._known:
            self._is_rejection = self._table.begin_rejection()
            if self._is_rejection:
                self._reject(b"503 Service Unavailable")
            else:
                self._refused = True
                self.transport.abort()
            return
        self._began = self.loop.time()
        self._timer = self.loop.call_later(self._limits.header_seconds, self._check_time)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, and remove the connection from the table."""
        self._end_request()
        self._leave_table()
        super().connection_lost(exc)

    def _end_request(self) -> None:
        self._stop_timer()
        self._set_unfinished(0)

    def _leave_table(self) -> None:
        if self._known:
            self._known = False
            self._table.discard(self)
        elif self._is_rejection:
            self._is_rejection = False
            self._table.end_rejection()

    def close_idle(self) -> None:
        """Close the idle connection to make room for a new one."""
        self.transport.close()

    def shutdown(self) -> None:
        """Close the connection: immediately if its request is incomplete, else after the response."""
        if self._part != _NONE:
            self.transport.abort()
        else:
            super().shutdown()

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the WebSocket protocol. It still counts towards the limit until it closes."""
        assert isinstance(self.transport, GatheringTransport)
        self._end_request()
        self._table.work(self)
        transport = self.transport = self.transport.release()
        super().handle_websocket_upgrade()
        protocol = transport.get_protocol()
        if isinstance(protocol, WebSocketProtocol):
            protocol.on_lost = self._leave_table
        else:
            self._leave_table()

    # --- receiving ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Receive a piece of a request, and check the limits if the request is still incomplete."""
        if self._refused:
            return
        head, before = self._head, self._part
        if head is not None and before == _NONE:
            body = head.body_in(data)
            if body is not None and self._can_answer():
                self._answer_repeated(head, body)
                return
        self._received += len(data)
        begun = self._begun
        super().data_received(data)
        if (
            before == _NONE
            and self._begun == begun + 1
            and self._answered is not None
            and self._answered.remember(data)
        ):
            self._head = self._answered
        if not isinstance(self.transport, GatheringTransport):
            # The connection was passed to the WebSocket protocol, which a timer of this protocol would close.
            return
        if self._part == _NONE:
            if self._timer is None and before == _NONE and self._answering():
                return
            if before != _NONE:
                self._set_unfinished(0)
            if self._answering():
                self._stop_timer()
            elif self._timer is None and self.timeout_keep_alive_task is None:
                # Only line breaks have arrived, which are allowed before a request.
                self._start_timer()
            return
        if self._timer is None or before == _NONE:
            self._start_timer()
        if self.transport.is_closing() or self._refused:
            return
        if self._part == _HEADER:
            self._set_unfinished(self._received)
            over = self._received > self._limits.header_bytes + _SLOP
            if over or self._table.unfinished_bytes > self._limits.unfinished_bytes:
                self._reject(_TOO_LARGE if over else b"503 Service Unavailable")
        elif self._received - self._body_received - _CHUNK_OVERHEAD * self._chunks > 2 * self._limits.header_bytes:
            # Trailers or chunk extensions are endless.
            self._reject(b"400 Bad Request")

    def on_message_begin(self) -> None:
        """Reset the counters for a new request."""
        super().on_message_begin()
        self._part = _HEADER
        self._begun += 1
        self._answered = None
        self._body_received = self._chunks = 0

    def on_headers_complete(self) -> None:
        """Start to handle a request, or reject it if its header is too large."""
        cast("dict[str, object]", self.scope)[ABORT] = self.transport.abort
        self._part = _BODY
        self._table.work(self)
        if self._received > self._limits.header_bytes and self._header_size() > self._limits.header_bytes + _SLOP:
            application, self.app = self.app, _too_large
            super().on_headers_complete()
            self.app = application
        elif len(self.url) > _MAX_PARSED_URL:
            self._with_long_url(super().on_headers_complete)
        elif not self._begin_direct():
            super().on_headers_complete()

    def _begin_direct(self) -> bool:
        """Start a request that is answered as soon as its body is complete; return False for one that is not."""
        direct = self._direct
        if direct is None or not self._can_answer() or self.parser.get_http_version() != "1.1":
            return False
        head = self._read_head(direct, self.parser.get_method())
        if head is None:
            return False
        self._direct_cycle = self._new_cycle(head, direct, keep_alive=self.parser.should_keep_alive())
        return True

    def _can_answer(self) -> bool:
        """Return whether a request can be answered now. If the client does not read, uvicorn waits until it does."""
        direct = self._direct
        return direct is not None and direct.answers_now and not self._answering() and not self.flow.write_paused

    def _new_cycle(self, head: RequestHead, direct: DirectApplication, *, keep_alive: bool) -> DirectCycle:
        self._table.direct += 1
        headers = self.server_state.default_headers
        on_response = self.on_response_complete
        cycle = DirectCycle(head, self.transport, direct, headers, keep_alive=keep_alive, on_response=on_response)
        self.cycle = cast("Any", cycle)
        return cycle

    def _answer_repeated(self, head: RequestHead, body: bytes) -> None:
        """Answer a request that arrived in one piece and repeats a head: there is nothing to parse."""
        assert self._direct is not None
        self._unset_keepalive_if_required()
        self._table.work(self)
        self._table.unparsed += 1
        self._end_request()
        cycle = self._new_cycle(head, self._direct, keep_alive=True)
        cycle.body += body
        cycle.answer()

    def _read_head(self, direct: DirectApplication, method: bytes) -> RequestHead | None:
        """Return the head of a request that can be answered directly; None for other requests."""
        if method not in METHODS or not is_direct(self.headers):
            return None
        url = httptools.parse_url(self.url)
        scope = self.scope
        scope["method"], scope["raw_path"], scope["query_string"] = method.decode("ascii"), url.path, url.query or b""
        path = url.path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        head = RequestHead(method, cast("Scope", scope))
        return head if direct.serves(head) else None

    def _with_long_url(self, complete: Callable[[], None]) -> None:
        # httptools stores positions in a URL with 16 bits, but Go allows URLs as long as the header.
        url, self.url = self.url, b"/"
        target = url if url.startswith(b"/") else b"/" + url.partition(b"://")[2].partition(b"/")[2]
        raw_path, _, query = target.partition(b"#")[0].partition(b"?")
        path = unquote(raw_path.decode("ascii"))
        complete()
        self.url = url
        self.scope["path"], self.scope["raw_path"], self.scope["query_string"] = path, raw_path, query

    def _header_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_chunk_header(self) -> None:
        """Count a chunk, and ignore the trailers after the last chunk."""
        if not self._chunks:
            # The request already holds the list of headers, so collect trailers in a new list.
            self.headers = []
        self._chunks += 1

    def on_body(self, body: bytes) -> None:
        """Receive a piece of the body."""
        self._body_received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete, and answer it if it is direct.

        Otherwise its response may still be in progress.
        """
        self._part = _NONE
        self._received = 0
        cycle, self._direct_cycle = self._direct_cycle, None
        if cycle is None:
            super().on_message_complete()
        else:
            self._end_request()
            cycle.answer()
            if cycle.keep_alive and cycle.head.request is not None:  # Without access, there is no request.
                self._answered = cycle.head

    def on_response_complete(self) -> None:
        """Mark the connection as idle unless another request is in progress."""
        super().on_response_complete()
        if self._known and not self._answering():
            self._table.wait(self)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- limits -------------------------------------------------------------------------------------------------------

    def _set_unfinished(self, size: int) -> None:
        self._table.unfinished_bytes += size - self._unfinished
        self._unfinished = size

    def _start_timer(self) -> None:
        self._stop_timer()
        self._began = self.loop.time()
        self._timer = self.loop.call_later(self._limits.header_seconds, self._check_time)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_time(self) -> None:
        """Close the connection of a slow client.

        A body gets more time for each received byte, and while reading is paused.
        """
        self._timer = None
        if self.transport.is_closing():
            return
        if self._part == _BODY:
            limits = self._limits
            allowed = limits.body_seconds + self._body_received / limits.body_bytes_per_second
            left = allowed - (self.loop.time() - self._began)
            if left > 0 or self.flow.read_paused:
                self._timer = self.loop.call_later(max(left, 1.0), self._check_time)
                return
        self.transport.abort()

    def _reject(self, status: bytes) -> None:
        """Send an error with Go's text, stop reading, and close the connection half a second later.

        If a response is in progress, close the connection immediately.
        """
        self._refused = True
        self._end_request()
        self._table.work(self)
        if self._answering():
            self.transport.abort()
            return
        self.transport.write(b"HTTP/1.1 %b%b%b" % (status, _REFUSAL_HEADER, status))
        self.loop.call_later(_REFUSAL_SECONDS, self.transport.close)


def limited_protocol(table: ConnectionTable, direct: DirectApplication | None = None) -> type[asyncio.Protocol]:
    """Return `LimitedProtocol` for uvicorn, with a server's connections and the application for direct requests."""
    return cast("type[asyncio.Protocol]", partial(LimitedProtocol, table=table, direct=direct))


async def _too_large(scope: Any, receive: Any, send: Any) -> None:
    fields = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    fields.append((b"content-length", b"%d" % len(_TOO_LARGE)))
    await send({"type": "http.response.start", "status": 431, "headers": fields})
    await send({"type": "http.response.body", "body": _TOO_LARGE})
