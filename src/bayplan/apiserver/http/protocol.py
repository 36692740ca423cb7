"""Uvicorn's HTTP protocol, with the writes of one turn of the loop sent as one.

Uvicorn writes the head and the body of an answer one after the other, and uvloop passes each to the kernel at once; a call
of the kernel costs as much as a tenth of a create. Nothing else of the protocol is changed.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_WAITING = 64 * 1024
ABORT = "bayplan.abort"
"""The key of a request's scope under which stands what closes its connection at once."""


class GatheringTransport(asyncio.Transport):
    """A transport that passes on at the end of a turn of the loop what was written in it.

    Args:
        transport: to the client.
        loop: whose turns count.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes | bytearray | memoryview[Any]] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Take data; what is a lot goes on at once, so that a slow client is noticed."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _MOST_WAITING:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def close(self) -> None:
        """Pass on what waits, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._waiting, self._size = [], 0
        self._transport.abort()

    def is_closing(self) -> bool:
        """Say whether it is closed or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Read no more for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def release(self) -> asyncio.Transport:
        """Pass on what waits, and return the transport itself."""
        self._flush()
        return self._transport


class GatheringProtocol(HttpToolsProtocol):
    """Uvicorn's protocol over such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(GatheringTransport(transport, self.loop))

    def on_headers_complete(self) -> None:
        """Begin a request, which may close the connection at once."""
        cast("dict[str, object]", self.scope)[ABORT] = self.transport.abort
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the protocol of WebSockets, as it came."""
        assert isinstance(self.transport, GatheringTransport)
        self.transport = self.transport.release()
        super().handle_websocket_upgrade()
