"""Check that an answer follows the contract: the types of its operation can decode it, and no field is unknown."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, cast

import msgspec

from bayplan.http_api.contract.answer import Error
from bayplan.http_api.operations import OPERATIONS, ROOT, TOPICS, Operation

UNTYPED = frozenset((f"{ROOT}/stream", f"{ROOT}/openapi.json"))
"""Paths whose answers are not structs: a stream of frames, and the document that describes all other paths."""


class BrokenContract(AssertionError):
    """An answer does not have the type that its operation names."""


@cache
def _patterns() -> list[tuple[str, re.Pattern[str], Operation]]:
    return [
        (each.method, re.compile(re.sub(r"\{\w+\}", "[^/]+", f"{ROOT}{each.path}") + "$"), each) for each in OPERATIONS
    ]


def operation_of(method: str, path: str) -> Operation | None:
    """Return the operation of a request: the first in the table whose path matches the raw path, or None."""
    path = f"{ROOT}/" if path == ROOT else path
    return next((each for verb, pattern, each in _patterns() if verb == method and pattern.match(path)), None)


def check_answer(method: str, path: str, status: int, body: bytes) -> None:
    """Check an answer of Bayplan's HTTP API; ignore other paths and those in `UNTYPED`.

    Args:
        method: The method of the request.
        path: The path of the request as it was sent.
        status: The status code of the answer.
        body: The body of the answer.

    Raises:
        BrokenContract: A field is missing, has another type, or is not in the contract.
    """
    path = path.partition("?")[0]
    if not path.startswith(f"{ROOT}/") or path in UNTYPED or status == 304:
        return
    if status >= 400:
        check_value(f"{method} {path}", msgspec.json.decode(body), Error)
        return
    operation = operation_of(method, path)
    if operation is None:
        raise BrokenContract(f"{method} {path} was answered, and is no operation")
    if status != operation.status:
        raise BrokenContract(f"{method} {path} was answered with {status}, not {operation.status}")
    check_value(f"{method} {path}", msgspec.json.decode(body), operation.answer)


def check_frame(topic: str, data: object) -> None:
    """Check the data of a frame of the stream.

    Raises:
        BrokenContract: See `check_answer`.
    """
    kind = next(
        (kind for name, kind in TOPICS.items() if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", name), topic)),
        Error,
    )
    check_value(f"topic {topic}", data, kind)


def check_value(what: str, value: object, kind: Any) -> None:
    """Check plain data against a type.

    Raises:
        BrokenContract: See `check_answer`.
    """
    try:
        found = msgspec.json.decode(msgspec.json.encode(value), type=cast("type[Any]", kind))
    except msgspec.ValidationError as problem:
        raise BrokenContract(f"{what}: {problem}: {json.dumps(value)[:300]}") from problem
    left = _left_over(value, msgspec.json.decode(msgspec.json.encode(found)), "$")
    if left:
        raise BrokenContract(f"{what}: {left} is not in the contract")


def _left_over(value: object, read: object, path: str) -> str:
    """Return the path of the first field that the type does not know, or the empty string."""
    if isinstance(value, dict) and isinstance(read, dict):
        for name, inner in value.items():
            if name not in read:
                return f"{path}.{name}"
            found = _left_over(inner, read[name], f"{path}.{name}")
            if found:
                return found
    if isinstance(value, list) and isinstance(read, list):
        for at, (one, other) in enumerate(zip(value, read, strict=True)):
            found = _left_over(one, other, f"{path}[{at}]")
            if found:
                return found
    return ""
