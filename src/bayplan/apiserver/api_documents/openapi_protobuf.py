"""The OpenAPI version 2 document as protobuf, which only kubectl up to 1.28 requests.

The messages are gnostic's. Tables map the JSON name of each member to its field number and encoder. A member that is
missing in its table is a bug.

Source: https://github.com/google/gnostic-models/blob/main/openapiv2/OpenAPIv2.proto
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from bayplan.base.plain_data import Document

Encoder: TypeAlias = Callable[[int, object], bytes]
"""Returns an encoded field (tag and value), given its number and value; empty bytes for an empty string or false."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encode_openapi(document: Document) -> bytes:
    """Return an OpenAPI version 2 document as a protobuf message.

    Raises:
        KeyError: a member has no field in the message.
    """
    return _members(_DOCUMENT, document)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _text(number: int, value: object) -> bytes:
    return _field(number, str(value).encode()) if value else b""


def _switch(number: int, value: object) -> bytes:
    return _varint(number << 3 | _VARINT) + b"\x01" if value else b""


def _count(number: int, value: object) -> bytes:
    assert isinstance(value, int)
    return _varint(number << 3 | _VARINT) + _varint(value)


def _real(number: int, value: object) -> bytes:
    assert isinstance(value, int | float)
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def _any(number: int, value: object) -> bytes:
    """Return a field that contains any value as YAML text; JSON is valid YAML."""
    return _field(number, _text(2, msgspec.json.encode(value).decode()))


def _each(encode: Encoder) -> Encoder:
    def many(number: int, value: object) -> bytes:
        assert isinstance(value, list)
        return b"".join(encode(number, item) for item in value)

    return many


def _message(table: Mapping[str, tuple[int, Encoder]]) -> Encoder:
    return lambda number, value: _field(number, _members(table, value))


def _members(table: Mapping[str, tuple[int, Encoder]], value: object) -> bytes:
    """Return the fields of a message. Members whose names start with ``x-`` are vendor extensions."""
    assert isinstance(value, dict)
    out = []
    for name, item in value.items():
        if name.startswith("x-"):
            number = table["x-"][0]
            out.append(_field(number, _text(1, name) + _any(2, item)))
        else:
            number, encode = table[name]
            out.append(encode(number, item))
    return b"".join(out)


def _named(encode: Encoder) -> Callable[[int, Iterable[tuple[str, object]]], bytes]:
    """Return an encoder for a sequence of names and values: each is a message with a name and a value."""
    return lambda number, entries: b"".join(_field(number, _text(1, name) + encode(2, item)) for name, item in entries)


def _map(encode: Encoder, inner: int = 1) -> Encoder:
    """Return an encoder for a map: a message whose repeated field `inner` has the names and values."""
    entries = _named(encode)

    def whole(number: int, value: object) -> bytes:
        assert isinstance(value, dict)
        return _field(number, entries(inner, value.items()))

    return whole


def _schema(number: int, value: object) -> bytes:
    return _field(number, _members(_SCHEMA, value))


def _schema_or_switch(number: int, value: object) -> bytes:
    return _field(number, _switch(2, value) if isinstance(value, bool) else _schema(1, value))


def _boxed(encode: Encoder, inner: int = 1) -> Encoder:
    """Return an encoder for a value that is wrapped in a separate message, as field `inner`."""
    return lambda number, value: _field(number, encode(inner, value))


def _boxed_texts(number: int, value: object) -> bytes:
    return _field(number, _each(_text)(1, value))


def _parameter(number: int, value: object) -> bytes:
    assert isinstance(value, dict)
    if "$ref" in value:
        return _field(number, _field(2, _text(1, value["$ref"])))
    if value.get("in") == "body":
        return _field(number, _field(1, _field(1, _members(_BODY_PARAMETER, value))))
    place, table = _PLACES[value["in"]]
    return _field(number, _field(1, _field(2, _field(place, _members(table, value)))))


def _paths(number: int, value: object) -> bytes:
    assert isinstance(value, dict)
    return _field(number, _named(_message(_PATH_ITEM))(2, value.items()))


_TYPE = _boxed(lambda number, value: _each(_text)(number, value if isinstance(value, list) else [value]))
_SCHEMA: dict[str, tuple[int, Encoder]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _real),
    "maximum": (7, _real),
    "exclusiveMaximum": (8, _switch),
    "minimum": (9, _real),
    "exclusiveMinimum": (10, _switch),
    "maxLength": (11, _count),
    "minLength": (12, _count),
    "pattern": (13, _text),
    "maxItems": (14, _count),
    "minItems": (15, _count),
    "uniqueItems": (16, _switch),
    "maxProperties": (17, _count),
    "minProperties": (18, _count),
    "required": (19, _each(_text)),
    "enum": (20, _each(_any)),
    "additionalProperties": (21, _schema_or_switch),
    "type": (22, _TYPE),
    "items": (23, _boxed(_schema)),
    "allOf": (24, _each(_schema)),
    "properties": (25, _map(_schema)),
    "readOnly": (27, _switch),
    "example": (30, _any),
    "x-": (31, _any),
}
_INFO: dict[str, tuple[int, Encoder]] = {
    "title": (1, _text),
    "version": (2, _text),
    "description": (3, _text),
    "x-": (7, _any),
}
_BODY_PARAMETER: dict[str, tuple[int, Encoder]] = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _switch),
    "schema": (5, _schema),
    "x-": (6, _any),
}
_PATH_PARAMETER: dict[str, tuple[int, Encoder]] = {
    "required": (1, _switch),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "format": (6, _text),
    "uniqueItems": (20, _switch),
    "x-": (22, _any),
}
_QUERY_PARAMETER: dict[str, tuple[int, Encoder]] = {
    "required": (1, _switch),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "format": (7, _text),
    "uniqueItems": (20, _switch),
    "x-": (23, _any),
}
_PLACES = {"query": (3, _QUERY_PARAMETER), "path": (4, _PATH_PARAMETER)}
_RESPONSE: dict[str, tuple[int, Encoder]] = {"description": (1, _text), "schema": (2, _boxed(_schema)), "x-": (5, _any)}
_OPERATION: dict[str, tuple[int, Encoder]] = {
    "tags": (1, _each(_text)),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _each(_text)),
    "consumes": (7, _each(_text)),
    "parameters": (8, _each(_parameter)),
    "responses": (9, _map(_boxed(_message(_RESPONSE)))),
    "schemes": (10, _each(_text)),
    "deprecated": (11, _switch),
    "x-": (13, _any),
}
_PATH_ITEM: dict[str, tuple[int, Encoder]] = {
    **{
        method: (number, _message(_OPERATION))
        for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 2)
    },
    "parameters": (9, _each(_parameter)),
    "x-": (10, _any),
}
_API_KEY: dict[str, tuple[int, Encoder]] = {"type": (1, _text), "name": (2, _text), "in": (3, _text)}
_DOCUMENT: dict[str, tuple[int, Encoder]] = {
    "swagger": (1, _text),
    "info": (2, _message(_INFO)),
    "paths": (8, _paths),
    "definitions": (9, _map(_schema)),
    "security": (12, _each(_map(_boxed_texts))),
    "securityDefinitions": (13, _map(_boxed(_message(_API_KEY), 2))),
    "x-": (16, _any),
}
