"""Decoding of protobuf bodies, driven by the recorded fields of Go types.

A stock kube-scheduler sends its writes in this format; it accepts JSON in responses, as all clients do. A body is
``k8s\\0`` and a message Unknown: TypeMeta in field 1, the object in field 2. Fields that are not pointers are always
encoded, so an empty value is dropped unless the field is a pointer. Unknown field numbers are skipped.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

import msgspec

from bayplan.apiserver.schema.facts import GoField, api_facts
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.durations import format_duration
from bayplan.base.go_text.times import format_micro_time, format_time
from bayplan.base.plain_data import Document

MAGIC = b"k8s\x00"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_INT64 = 1 << 63
_GROUP, _GROUP_END = 3, 4
"""The wire types of the start and end of a group, an obsolete kind of message, which upstream's messages do not have."""

Value: TypeAlias = int | bytes | None
"""A field's value: an integer (varint), bytes (other wire types), or None for a group."""


class ProtobufError(ValueError):
    """The bytes are not a message of the expected type."""


def decode_envelope(body: bytes) -> tuple[str, str, bytes]:
    """Return the apiVersion, the kind and the encoded object in a body.

    Raises:
        ProtobufError: the body has no envelope.
    """
    if not body:
        raise ProtobufError("empty data")
    if body == MAGIC:
        raise ProtobufError("empty body")
    if not body.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(MAGIC) :], "Unknown"):
        if number == 1 and isinstance(value, bytes):
            for inner, text in _fields(value, "TypeMeta"):
                if inner == 1 and isinstance(text, bytes):
                    api_version = text.decode()
                elif inner == 2 and isinstance(text, bytes):
                    kind = text.decode()
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return api_version, kind, raw


def decode_message(type_name: str, data: bytes) -> Document:
    """Return the object in a message.

    Args:
        type_name: the name of the type in OpenAPI.
        data: the message, without envelope.

    Raises:
        ProtobufError: the message is truncated, or a value has the wrong wire type.
    """
    out: Document = {}
    table = _table(type_name)
    for number, value in _fields(data, type_name.rpartition(".")[2]):
        field = table.get(number)
        if field is not None:
            field(out, value)
    return out


def _fields(data: bytes, message: str = "Unknown") -> Iterator[tuple[int, Value]]:
    """Yield each field's number and its value.

    Args:
        data: the encoded fields.
        message: the name of the message, for errors.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if tag < 8:
            raise ProtobufError(f"proto: {message}: illegal tag 0 (wire type {wire})")
        if wire == _GROUP_END:
            raise ProtobufError(f"proto: {message}: wiretype end group for non-group")
        value: Value
        value, at = (None, _after_group(data, at)) if wire == _GROUP else _value(data, at, wire)
        if at > end:
            raise ProtobufError("unexpected EOF")
        yield tag >> 3, value


def _value(data: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
    """Return the value of a field, and the position after it, which is too large if the data is truncated."""
    if wire == 0:
        return _varint(data, at)
    if wire == 2:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if wire in (1, 5):
        size = 8 if wire == 1 else 4
        return data[at : at + size], at + size
    raise ProtobufError(f"proto: illegal wireType {wire}")


def _after_group(data: bytes, at: int) -> int:
    """Return the position after a group.

    Raises:
        ProtobufError: the group does not end.
    """
    depth = 1
    while depth:
        if at >= len(data):
            raise ProtobufError("unexpected EOF")
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire in (_GROUP, _GROUP_END):
            depth += 1 if wire == _GROUP else -1
        else:
            _, at = _value(data, at, wire)
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


_Setter = Callable[[Document, Value], None]


@cache
def _table(type_name: str) -> dict[int, _Setter]:
    table: dict[int, _Setter] = {}
    for field in api_facts().types.get(type_name, ()):
        if field.number:
            table[field.number] = _setter(field)
    return table


def _setter(field: GoField) -> _Setter:
    read = _reader(field.type)
    containers = [each for each in field.containers if each != "pointer"]
    name = field.name
    if field.inline:

        def set_inline(out: Document, value: Value) -> None:
            out.update(decode_message(field.type, _bytes(value)))

        return set_inline
    if containers[:1] == ["map"]:
        inner = _list_message(read) if containers[1:] == ["list"] else read

        def set_entry(out: Document, value: Value) -> None:
            entries = out.setdefault(name, {})
            key, item = "", inner(b"") if not isinstance(_zero(field.type), int) else inner(0)
            for number, part in _fields(_bytes(value)):
                if number == 1:
                    key = _bytes(part).decode()
                elif number == 2:
                    item = inner(part)
            assert isinstance(entries, dict)
            entries[key] = item

        return set_entry
    if containers[:1] == ["list"]:

        def add(out: Document, value: Value) -> None:
            items = out.setdefault(name, [])
            assert isinstance(items, list)
            items.append(read(value))

        return add
    keep_empty = "pointer" in field.containers
    zero = _zero(field.type)

    def set_value(out: Document, value: Value) -> None:
        found = read(value)
        if keep_empty or found != zero:
            out[name] = found

    return set_value


def _zero(type_name: str) -> object:
    return {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0.0, "[]uint8": ""}.get(type_name)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType")
    return value


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType")
    return value - (1 << 64) if value >= _INT64 else value


def _text(value: Value) -> object:
    return _bytes(value).decode("utf-8", "replace")


def _list_message(read: Callable[[Value], object]) -> Callable[[Value], object]:
    """Return a decoder for a list that is encoded as a separate message, such as the values of some maps."""

    def decode(value: Value) -> object:
        return [read(part) for number, part in _fields(_bytes(value)) if number == 1]

    return decode


def _reader(type_name: str) -> Callable[[Value], object]:
    special = _SPECIAL.get(type_name)
    if special is not None:
        return special
    return lambda value: decode_message(type_name, _bytes(value))


def _quantity(value: Value) -> object:
    return next((_text(part) for number, part in _fields(_bytes(value)) if number == 1), "0")


def _int_or_string(value: Value) -> object:
    kind, number_value, text = 0, 0, ""
    for number, part in _fields(_bytes(value)):
        if number == 1:
            kind = _integer(part)
        elif number == 2:
            number_value = _integer(part)
        elif number == 3:
            text = str(_text(part))
    return text if kind == 1 else number_value


def _instant_ns(value: Value) -> int | None:
    seconds = nanoseconds = 0
    data = _bytes(value)
    if not data:
        return None
    for number, part in _fields(data):
        if number == 1:
            seconds = _integer(part)
        elif number == 2:
            nanoseconds = _integer(part)
    return seconds * SECOND_NS + nanoseconds


def _time(value: Value) -> object:
    return _written(value, format_time)


def _micro_time(value: Value) -> object:
    return _written(value, format_micro_time)


def _written(value: Value, write: Callable[[int], str]) -> str | None:
    time_ns = _instant_ns(value)
    try:
        return None if time_ns is None else write(time_ns)
    except OverflowError as problem:
        raise ProtobufError("time out of range") from problem


def _duration(value: Value) -> object:
    nanoseconds = next((_integer(part) for number, part in _fields(_bytes(value)) if number == 1), 0)
    return format_duration(nanoseconds)


def _raw_json(value: Value) -> object:
    raw = next((_bytes(part) for number, part in _fields(_bytes(value)) if number == 1), b"")
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ProtobufError(str(problem)) from problem


def _double(value: Value) -> object:
    try:
        found: float = struct.unpack("<d", _bytes(value))[0]
    except struct.error as problem:
        raise ProtobufError("unexpected EOF") from problem
    return found


_SPECIAL: dict[str, Callable[[Value], object]] = {
    "string": _text,
    "bool": lambda value: bool(_integer(value)),
    "int32": _integer,
    "int64": _integer,
    "float64": _double,
    "[]uint8": lambda value: base64.b64encode(_bytes(value)).decode(),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _quantity,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _raw_json,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": _raw_json,
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "Duration": _duration,
    _META + "FieldsV1": _raw_json,
}
