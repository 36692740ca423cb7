"""The head of a request: its method, URL and headers.

Most writes of a connection have equal heads, such as creates of one kind in one namespace. Therefore, a connection keeps the head
of a write that was answered directly and arrived in one piece, with its access check and its route. A later request that arrives
in one piece and starts with the same bytes, apart from the Content-Length, needs no parser.
"""

from __future__ import annotations

import re

from bayplan.apiserver.rest.messages import Request
from bayplan.base.asgi import Scope

MAX_DIRECT_BYTES = 60_000
"""Maximum size of a body that is answered directly. At 64 KiB, uvicorn stops reading until the application receives."""

_MAX_BYTES = 8 * 1024
"""Maximum size of a head that a connection keeps, so that many connections do not take much memory."""

RawHeaders = list[tuple[bytes, bytes]]

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)


class RequestHead:
    """The head of one or more requests over the same connection.

    Args:
        method: the method, in upper case.
        scope: the ASGI scope of the first of these requests.

    Attributes:
        headers: the decoded headers by name.
        request: the request without a body, once access is checked; None before that.
    """

    __slots__ = ("_after", "_before", "headers", "method", "request", "scope")

    def __init__(self, method: bytes, scope: Scope) -> None:
        self.method = method
        self.scope = scope
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.request: Request | None = None
        # The bytes of the head before and after the value of Content-Length, set by `remember`.
        self._before = self._after = b""

    @classmethod
    def of(cls, scope: Scope) -> RequestHead:
        """Return the head of a request that uvicorn has parsed."""
        return cls(scope["method"].encode(), scope)

    def remember(self, data: bytes) -> bool:
        """Store the bytes of the head, given all bytes of a request with it; return False if the head can't be repeated."""
        end = data.find(b"\r\n\r\n") + 4
        found = _LENGTH.search(data, 0, end)
        if found is None or not data.startswith(self.method) or len(data) - end != int(found[1]) or end > _MAX_BYTES:
            return False
        self._before, self._after = data[: found.start(1)], data[found.end(1) : end]
        return True

    def body_in(self, data: bytes) -> bytes | None:
        """Return the body if `data` is exactly one request with this head, apart from the Content-Length, else None."""
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        end = data.find(b"\r\n", len(before), len(before) + 7)
        if not data.startswith(after, end):
            return None
        length, body = data[len(before) : end], data[end + len(after) :]
        return body if length.isdigit() and int(length) == len(body) <= MAX_DIRECT_BYTES else None
