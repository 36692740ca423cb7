"""Messages of the API, independent of HTTP: requests, responses and streams."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from urllib.parse import unquote_plus

import msgspec

from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.users import ADMIN, User
from bayplan.apiserver.rest.negotiation import Form


class Route(msgspec.Struct):
    """The target, response format and options of a request, derived from everything except its body.

    Attributes:
        changes: the `ResourceRegistry.changes` when the route was found; later changes make the route invalid.
        info: the target of the request.
        form: the format of the response.
        create_options: the options of a create, once they are read.
    """

    changes: int
    info: RequestInfo
    form: Form
    create_options: WriteOptions | None = None


class Request(msgspec.Struct):
    """One request.

    Attributes:
        method: the method, in upper case.
        path: the decoded path, without query.
        query: the parameters; of repeated parameters, the first value.
        headers: the headers, with names in lower case.
        body: the complete body.
        user: the user.
        parsed: the cached result of parsing a YAML body: the value, or the error.
        warnings: the warnings for the client, about the body and from hooks; error responses include them.
        waits: whether the caller can wait for webhooks. If not, a request that needs one gets a 503, and a repeated
            request finds the webhook's response.
        route: the route, once it is found; a caller may reuse it for a request that differs only in the body.
    """

    method: str
    path: str
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN
    parsed: object = None
    warnings: list[str] = msgspec.field(default_factory=list)
    waits: bool = True
    route: Route | None = None


class Response(msgspec.Struct):
    """One response.

    Attributes:
        status: the HTTP status code.
        body: the complete body.
        content_type: the media type; empty without a body.
        headers: additional headers.
        revision: the store's revision that must be durable before the response is sent.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = msgspec.field(default_factory=list)
    revision: int = 0


class Stream(msgspec.Struct):
    """A streaming response.

    Attributes:
        frames: the pieces of the body; the iterator ends with the watch.
        content_type: the media type of the frames.
        cut_off: set if the client reads too slowly and its buffer was dropped; None if that cannot happen.
        headers: additional headers.
    """

    frames: AsyncIterator[bytes]
    content_type: str = "application/json"
    cut_off: asyncio.Future[None] | None = None
    headers: list[tuple[str, str]] = msgspec.field(default_factory=list)


class Query(dict[str, str]):
    """The parameters of a query: a dictionary of the first values.

    Attributes:
        repeated: all values of those parameters that occur several times.
    """

    __slots__ = ("repeated",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.repeated: dict[str, list[str]] = {}


def values_of(query: Mapping[str, str], name: str) -> list[str]:
    """Return all values of a parameter in order; an empty list if it is absent."""
    repeated = query.repeated.get(name) if isinstance(query, Query) else None
    return repeated or ([query[name]] if name in query else [])


MALFORMED = re.compile("%(?![0-9a-fA-F]{2})")
"""Matches a percent sign of a URL that does not begin an escape."""


def is_malformed(raw_path: bytes) -> bool:
    """Return whether an encoded path has a percent sign that does not begin an escape."""
    return b"%" in raw_path and MALFORMED.search(raw_path.decode("latin-1")) is not None


def parse_query(text: str) -> Query:
    """Return the decoded parameters of a query string, without those that Go does not accept."""
    found = Query()
    if not text:
        return found
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name and ";" not in part and ("%" not in part or not MALFORMED.search(part)):
            name, value = unquote_plus(name), unquote_plus(value)
            if name in found:
                found.repeated.setdefault(name, [found[name]]).append(value)
            else:
                found[name] = value
    return found
