"""The ways to send a watch to a client: as the body of a response, or as the messages of a WebSocket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from bayplan.apiserver.rest.messages import Stream
from bayplan.base.asgi import Send

_TEXT = "application/json"
_LENGTH_BYTES = 4


class WatchOutput(Protocol):
    """Sends the events of a watch to its client."""

    async def begin(self, answer: Stream) -> None:
        """Accept the request."""
        ...

    async def send(self, piece: bytes) -> None:
        """Send the frames of one or more events."""
        ...

    async def end(self) -> None:
        """End the watch, as after its timeout."""
        ...


class WatchBody:
    """Sends a watch as the body of a response."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def begin(self, answer: Stream) -> None:
        """Send the head of the response."""
        fields = [(b"content-type", answer.content_type.encode())]
        fields += [(name.encode(), value.encode("latin-1", "replace")) for name, value in answer.headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": fields})
        await self.send(b"")

    async def send(self, piece: bytes) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        """End the body."""
        await self._send({"type": "http.response.body", "body": b""})


class WatchMessages:
    """Sends each event of a watch as a message of a WebSocket: text for JSON, bytes for other formats.

    Args:
        send: sends an ASGI message to the client.
        subprotocols: the subprotocols that the client offers: at most one, which is accepted.
    """

    def __init__(self, send: Send, subprotocols: Sequence[str]) -> None:
        self._send = send
        self._subprotocol = subprotocols[0] if subprotocols else None
        self._is_text = True

    async def begin(self, answer: Stream) -> None:
        """Accept the WebSocket."""
        self._is_text = answer.content_type.startswith(_TEXT)
        await self._send({"type": "websocket.accept", "subprotocol": self._subprotocol})

    async def send(self, piece: bytes) -> None:
        """Send one message for each event."""
        if self._is_text:
            # Split bytes: a string would also be split at the line separators of Unicode.
            for line in piece.splitlines(keepends=True):
                await self._send({"type": "websocket.send", "text": line.decode()})
        else:
            for event in _without_lengths(piece):
                await self._send({"type": "websocket.send", "bytes": event})

    async def end(self) -> None:
        """Close the WebSocket normally."""
        await self._send({"type": "websocket.close", "code": 1000})


def refusal_of_handshake(origin: str, subprotocols: Sequence[str]) -> int:
    """Return the status with which the WebSocket of a watch is refused, or 0.

    Like upstream, this requires an origin, which need not be that of a web page, and accepts at most one subprotocol.

    Args:
        origin: the header `Origin`; empty if it is missing.
        subprotocols: the subprotocols that the client offers.
    """
    if len(subprotocols) > 1:
        return 400
    try:
        parts = urlsplit(origin)
    except ValueError:
        return 403
    return 0 if parts.scheme or origin.startswith("/") else 403


def _without_lengths(piece: bytes) -> Iterator[bytes]:
    """Yield the events of a piece in which each event follows its length."""
    at = 0
    while at < len(piece):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(piece[at:begin], "big")
        yield piece[begin:at]
