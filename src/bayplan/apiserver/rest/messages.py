"""What goes in and out of the API, without HTTP's machinery: requests, responses, streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import unquote_plus

import msgspec


class Request(msgspec.Struct):
    """One request.

    Attributes:
        method: in capitals.
        path: decoded, without query.
        query: parameters; the first value of each counts.
        headers: names in lower case.
        body: whole.
        user: who asks.
        parsed: the value in a long YAML body, if it is already parsed.
    """

    method: str
    path: str
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    user: str = "admin"
    parsed: object = None


class Response(msgspec.Struct):
    """One answer.

    Attributes:
        status: of HTTP.
        body: whole.
        content_type: empty where there is no body.
        headers: further ones.
        revision: of the store when the answer was made; it may be sent when that is durable.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = msgspec.field(default_factory=list)
    revision: int = 0


class Stream(msgspec.Struct):
    """An answer that goes on: frames as they come.

    Attributes:
        frames: pieces of the body; ends when the watch does.
        content_type: of the frames.
        cut_off: is set when the client has not read for so long that nothing is kept for it any more; None where that
            can't be.
    """

    frames: AsyncIterator[bytes]
    content_type: str = "application/json"
    cut_off: asyncio.Future[None] | None = None


def parse_query(text: str) -> dict[str, str]:
    """Return the parameters of a query; of repeated ones the first."""
    found: dict[str, str] = {}
    if not text:
        return found
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name:
            found.setdefault(unquote_plus(name), unquote_plus(value))
    return found
