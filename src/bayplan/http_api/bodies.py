"""Read request bodies: limit their size and decode them as the operation's struct."""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.requests import Request

from bayplan.http_api.refusal import Refusal

MAX_BYTES = 3 * 1024 * 1024
"""The request size limit of the Kubernetes API."""

T = TypeVar("T", bound=msgspec.Struct)


async def read_body(request: Request, most: int = MAX_BYTES) -> bytes:
    """Return the whole body.

    Raises:
        Refusal: it is larger than `most`.
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


def _too_large(most: int) -> Refusal:
    return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", got="more", wanted=f"at most {most:,} bytes")


async def read_text(request: Request, most: int = MAX_BYTES) -> str:
    """Return the body as text; see `read_body`."""
    return (await read_body(request, most)).decode("utf-8", "replace")


async def read_struct(request: Request, kind: type[T], most: int = MAX_BYTES) -> T:
    """Return the body as a struct; an empty body is an empty object.

    Raises:
        Refusal: it is too large, is not JSON, or does not match the struct.
    """
    body = await read_body(request, most)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as problem:
        wanted = ", ".join(kind.__struct_encode_fields__)
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "body", got=str(problem), wanted=f"fields {wanted}") from None
    except msgspec.DecodeError as problem:
        raise Refusal(HTTPStatus.BAD_REQUEST, "body", got=str(problem), wanted="JSON") from None
