"""The ASGI application of the page: the shell for every address under ``/ui``, and its files.

The page gets its data from ``/bayplan/v1`` and the Kubernetes API; this module does not depend on them.
"""

from __future__ import annotations

from bayplan.base.asgi import Receive, Scope, Send
from bayplan.ui.static_files import StaticFile, StaticFiles, load_static_files

POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'"
)
"""Content security policy: only the page's files and this server, nothing inline. Trusted types forbid markup from strings."""

_ROOT = "/ui"
_STATIC = "/ui/static/"
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


class Page:
    """The page, as an ASGI application for ``/ui`` and below, and for browsers that open ``/``.

    Args:
        static: the files; None for those of the package.
    """

    def __init__(self, static: StaticFiles | None = None) -> None:
        self._static = load_static_files() if static is None else static

    def answers(self, scope: Scope) -> bool:
        """Return whether a request is for the page; all others are for the APIs on the same port.

        `/` is the page only for browsers (which request HTML): for Kubernetes' clients it is the list of paths.
        """
        if scope["type"] != "http":
            return False
        path: str = scope["path"]
        if path == "/":
            return scope["method"] in ("GET", "HEAD") and b"text/html" in _header(scope, b"accept")
        return path == _ROOT or path.startswith(f"{_ROOT}/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request for which `answers` returned True."""
        if scope["method"] not in ("GET", "HEAD"):
            await _respond(send, 405, "The page is read-only: use GET or HEAD.", [(b"allow", b"GET, HEAD")])
            return
        path: str = scope["path"]
        if path in ("/", _ROOT):
            await _respond(send, 307, "The page is at /ui/.", [(b"location", b"/ui/")])
        elif path.startswith(_STATIC):
            await self._send_static(path.removeprefix(_STATIC), scope, send)
        else:
            await _send_file(self._static.shell(path.removeprefix(_ROOT)), _ASK_AGAIN, scope, send)

    async def _send_static(self, rest: str, scope: Scope, send: Send) -> None:
        digest, _, name = rest.partition("/")
        file = self._static.files.get(name)
        if file is None:
            await _respond(send, 404, "The page has no such file.", [])
            return
        # A tab that is older than the server requests files of another version: it gets the current ones, without caching.
        await _send_file(file, _FOR_EVER if digest == self._static.digest else _ASK_AGAIN, scope, send)


async def _send_file(file: StaticFile, cache: str, scope: Scope, send: Send) -> None:
    headers = [
        (b"content-type", file.content_type.encode()),
        (b"etag", file.etag.encode()),
        (b"cache-control", cache.encode()),
        (b"vary", b"accept-encoding"),
        *_security(),
    ]
    if file.etag.encode() in [tag.strip().removeprefix(b"W/") for tag in _header(scope, b"if-none-match").split(b",")]:
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    body = file.body
    if file.packed and b"gzip" in _header(scope, b"accept-encoding"):
        body = file.packed
        headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def _respond(send: Send, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = f"{text}\n".encode()
    fields = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": fields + headers + _security()})
    await send({"type": "http.response.body", "body": body})


def _security() -> list[tuple[bytes, bytes]]:
    return [
        (b"content-security-policy", POLICY.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (b"cross-origin-opener-policy", b"same-origin"),
    ]


def _header(scope: Scope, name: bytes) -> bytes:
    return b",".join(value for key, value in scope["headers"] if key == name)
