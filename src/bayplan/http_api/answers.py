"""Build HTTP responses: JSON with an ETag, compressed if the body is large. Called on worker threads."""

from __future__ import annotations

import gzip
from hashlib import blake2b

import msgspec
from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"
MIN_COMPRESSED_BYTES = 8 * 1024
_encoder = msgspec.json.Encoder()


def json_answer(request: Request, document: msgspec.Struct | None, status: int = 200) -> Response:
    """Return a response with a document, or 304 if the client already has it.

    Args:
        request: the request to respond to.
        document: the document, of the type in `Operation.answer`.
        status: the HTTP status.
    """
    return bytes_answer(request, _encoder.encode(document), status)


def bytes_answer(request: Request, body: bytes, status: int = 200, media_type: str = JSON) -> Response:
    """Return a response with a body, or 304 if the client already has it; gzip large bodies if the client accepts that."""
    headers = {"cache-control": "no-cache", "vary": "accept-encoding"}
    if request.method in ("GET", "HEAD") and status == 200:
        tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        headers["etag"] = tag
        known = request.headers.get("if-none-match", "")
        if known and (known == "*" or tag in (each.strip().removeprefix("W/") for each in known.split(","))):
            return Response(status_code=304, headers=headers)
    if len(body) >= MIN_COMPRESSED_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 1)
        headers["content-encoding"] = "gzip"
    return Response(body, status, headers, media_type)
