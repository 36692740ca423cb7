"""Read request bodies: limit their size and decode them as the operation's struct."""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.requests import Request

from bayplan.http_api.errors import RequestError

MAX_BYTES = 3 * 1024 * 1024
"""The maximum size of a request body, as in the Kubernetes API."""

T = TypeVar("T", bound=msgspec.Struct)


async def read_body(request: Request, most: int = MAX_BYTES) -> bytes:
    """Return the whole body of a request.

    Raises:
        RequestError: the body is larger than `most` bytes.
    """
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise _too_large(most)
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise _too_large(most)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(most: int) -> RequestError:
    return RequestError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", got="a larger one", wanted=f"at most {most:,} bytes"
    )


async def read_text(request: Request, most: int = MAX_BYTES) -> str:
    """Return the body of a request as text; see `read_body`."""
    return (await read_body(request, most)).decode("utf-8", "replace")


async def read_struct(request: Request, kind: type[T], most: int = MAX_BYTES) -> T:
    """Decode the JSON body of a request as a struct. An empty body counts as an empty object.

    Raises:
        RequestError: the body is too large, is not JSON, or does not match the struct.
    """
    body = await read_body(request, most)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as problem:
        wanted = ", ".join(kind.__struct_encode_fields__)
        raise RequestError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "body", got=str(problem), wanted=f"fields {wanted}"
        ) from None
    except msgspec.DecodeError as problem:
        raise RequestError(HTTPStatus.BAD_REQUEST, "body", got=str(problem), wanted="JSON") from None
