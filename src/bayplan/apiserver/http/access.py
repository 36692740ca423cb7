"""Access control of the server: tokens, host names, and requests from web pages of other origins."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from bayplan.apiserver.model.errors import ApiError
from bayplan.base.web_origin import FORM_TYPES, SAFE_METHODS, foreign_origin, form_type

LOOPBACK = ("127.0.0.1", "::1", "localhost")

PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
"""Paths that can be read without a token, as upstream's ClusterRole `system:public-info-viewer` allows."""

WEBSOCKET = "WEBSOCKET"
"""The method to pass for a WebSocket.

Browsers let any page open a WebSocket and read from it, so its origin is checked as for a write.
"""


class Access:
    """Checks every request.

    Args:
        token: the token that clients must send; empty allows every client on this machine.
        allowed_origins: the origins of web pages that may write, in addition to the server's own.
    """

    def __init__(self, token: str, *, allowed_origins: Collection[str] = ()) -> None:
        self._token = token.encode()
        self.allowed_origins = frozenset(allowed_origins)

    def check(
        self, headers: Mapping[str, str], *, method: str, path: str = "", shown: str = "", forms: bool = False
    ) -> None:
        """Raise unless a request is allowed.

        Args:
            headers: the headers of the request, with names in lower case.
            method: the method of the request, or `WEBSOCKET`.
            path: the path of the request: some paths need no token.
            shown: a token that the client sent outside the header ``Authorization``.
            forms: whether to accept content types that HTML forms can send, because the caller checks them.

        Raises:
            ApiError: the token is missing or wrong; without a token, the request names a different host; or a web page
                of another origin may have sent a write.
        """
        if self._token:
            self._check_token(headers, method, path, shown)
        else:
            self._check_is_local(headers)
        if method not in SAFE_METHODS:
            self._check_write(headers, forms=forms)

    def allows_origin(self, origin: str) -> bool:
        """Return whether the option `allowed_origins` contains this origin of a web page."""
        return origin in self.allowed_origins

    def _check_token(self, headers: Mapping[str, str], method: str, path: str, shown: str) -> None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else shown
        if method == "GET" and path in PUBLIC_PATHS and not scheme and not shown:
            return
        if not hmac.compare_digest(token.encode(), self._token):
            raise ApiError(401, "Unauthorized")

    def _check_is_local(self, headers: Mapping[str, str]) -> None:
        """Raise if a web page may have sent the request through a browser on this machine, which needs no token."""
        host, origin = headers.get("host"), headers.get("origin")
        foreign = origin is not None and not _is_local(origin) and origin not in self.allowed_origins
        if (host and not _is_local(f"//{host}")) or foreign:
            raise ApiError(
                403,
                "a server without a token accepts only requests from this machine, to a loopback address",
                reason="Forbidden",
            )

    def _check_write(self, headers: Mapping[str, str], *, forms: bool) -> None:
        origin = foreign_origin(headers, self.allowed_origins)
        if origin:
            text = f"only web pages of the server's own origin may write: got a request from {origin}"
            hint = f"; to allow it, start the server with --allow-origin {origin}" if "://" in origin else ""
            raise ApiError(403, text + hint, reason="Forbidden")
        if not forms:
            check_content_type(headers)


def check_content_type(headers: Mapping[str, str]) -> None:
    """Raise if an HTML form could have sent the request, judging by its content type.

    Raises:
        ApiError: forms can send the content type, or a browser sent a body without one.
    """
    media_type = form_type(headers)
    if media_type:
        refused = ", ".join(sorted(FORM_TYPES))
        text = f"content type of the request: expected the type of the body, such as application/json, got {media_type}"
        raise ApiError(415, f"{text}; requests that an HTML form could send are refused ({refused})")


@lru_cache(maxsize=256)
def _is_local(address: str) -> bool:
    try:
        return urlsplit(address).hostname in LOOPBACK
    except ValueError:
        return False
