"""Detects requests that a page from another origin may have sent: by headers, and by bodies that forms can send."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from bayplan.base.errors import InputError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods without side effects: any page may send them, and the browser decides whether it may read the response."""

FORM_TYPES = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
"""Content types that a page may send to any server without a preflight request (CORS calls these simple requests)."""

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def foreign_origin(headers: Mapping[str, str], allowed: Collection[str] = ()) -> str:
    """Return the origin of the page that sent a request; `""` if no page did, or if it is this server's or allowed.

    Like Go's `net/http.CrossOriginProtection`, this uses `Sec-Fetch-Site` if the browser sends it, or else compares the
    host in `Origin` with `Host`. Programs other than browsers send neither.

    Args:
        headers: the headers of the request, with names in lower case.
        allowed: the allowed origins.
    """
    origin = headers.get("origin")
    if origin is not None and origin in allowed:
        return ""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return "" if site in ("same-origin", "none") else origin or f"a page of another site ({site})"
    if origin is None or _authority(origin) == _authority(f"//{headers.get('host', '')}"):
        return ""
    return origin


def form_type(headers: Mapping[str, str]) -> str:
    """Return the content type of a request that an HTML form could have sent, or `""`.

    A page can also send a body without a content type; unlike other programs, its browser then sends `Origin` or
    `Sec-Fetch-Site`. The result is then `none`.
    """
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type:
        return media_type if media_type in FORM_TYPES else ""
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    from_browser = "origin" in headers or "sec-fetch-site" in headers
    return "none" if has_body and from_browser else ""


def check_origins(origins: Collection[str], option: str) -> None:
    """Reject invalid origins of web pages.

    Raises:
        InputError: an origin has no scheme or host, or has a path.
    """
    for origin in origins:
        try:
            parts = urlsplit(origin)
            fits = (
                parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and f"{parts.scheme}://{parts.netloc}" == origin
            )
        except ValueError:
            fits = False
        if not fits:
            raise InputError(
                option, got=f"'{origin}'", wanted="SCHEME://HOST, or SCHEME://HOST:PORT", hint="http://localhost:3000"
            )


def _authority(url: str) -> str:
    """Return the host and port of a URL, without a default port."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    netloc = parts.netloc.lower()
    for scheme, port in _DEFAULT_PORTS.items():
        if parts.scheme in (scheme, ""):
            netloc = netloc.removesuffix(port)
    return netloc
