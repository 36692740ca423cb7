"""Messages of the API, independent of HTTP: requests, responses, streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import unquote_plus

import msgspec


class Request(msgspec.Struct):
    """One request.

    Attributes:
        method: the method, in upper case.
        path: the decoded path, without query.
        query: the parameters; for repeated parameters, the first value counts.
        headers: the headers, names in lower case.
        body: the complete body.
        user: the user of the request.
        parsed: the value in a YAML body, or the error in it, once it is parsed.
        warnings: the warnings about the decoded body, and those of hooks; error responses have them, too.
        waits: whether the caller can wait; otherwise a needed external call results in a 503, and the next attempt finds the
            response.
    """

    method: str
    path: str
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    user: str = "admin"
    parsed: object = None
    warnings: list[str] = msgspec.field(default_factory=list)
    waits: bool = True


class Response(msgspec.Struct):
    """One response.

    Attributes:
        status: the HTTP status code.
        body: the complete body.
        content_type: the media type; empty if there is no body.
        headers: additional headers.
        revision: the revision of the store when the response was created; send it once that revision is durable.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = msgspec.field(default_factory=list)
    revision: int = 0


class Stream(msgspec.Struct):
    """A streaming response: frames as they arrive.

    Attributes:
        frames: the pieces of the body; ends when the watch ends.
        content_type: the media type of the frames.
        cut_off: set when the client has not read for so long that its buffer is dropped; None if that cannot happen.
        headers: additional headers.
    """

    frames: AsyncIterator[bytes]
    content_type: str = "application/json"
    cut_off: asyncio.Future[None] | None = None
    headers: list[tuple[str, str]] = msgspec.field(default_factory=list)


class Query(dict[str, str]):
    """The parameters of a query; of repeated ones, the first value.

    Attributes:
        repeated: all values of parameters that are repeated.
    """

    __slots__ = ("repeated",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.repeated: dict[str, list[str]] = {}


def values_of(query: Mapping[str, str], name: str) -> list[str]:
    """Return all values of a parameter."""
    repeated = query.repeated.get(name) if isinstance(query, Query) else None
    return repeated or ([query[name]] if name in query else [])


def parse_query(text: str) -> Query:
    """Return the parameters of a query."""
    found = Query()
    if not text:
        return found
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name:
            name, value = unquote_plus(name), unquote_plus(value)
            if name in found:
                found.repeated.setdefault(name, [found[name]]).append(value)
            else:
                found[name] = value
    return found
