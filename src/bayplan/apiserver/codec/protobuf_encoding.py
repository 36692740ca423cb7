"""Encoding of objects as protobuf bodies, as Go's generated code does: fields in order, pointers only if set.

Only clients that accept nothing else get protobuf. Objects are stored as JSON, which every Kubernetes client accepts.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import cast

from bayplan.apiserver.codec.protobuf import MAGIC
from bayplan.apiserver.schema.facts import GoField, api_facts
from bayplan.base.plain_data import Document

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000_000_000
_BYTES, _VARINT, _DOUBLE = 2, 0, 1

_Writer = Callable[[object], bytes]


def encode_object(document: Document) -> bytes | None:
    """Return an object, a list or a Status as a body, or None if the kind has no protobuf encoding."""
    api_version, kind = str(document.get("apiVersion") or ""), str(document.get("kind") or "")
    message = _message(api_version, kind, document)
    if message is None:
        return None
    type_meta = _string(1, api_version) + _string(2, kind)
    return MAGIC + _field(1, type_meta) + _field(2, message) + _string(3, "") + _string(4, "")


def encode_event(kind: str, body: bytes) -> bytes:
    """Return a watch event: its length, then its type and the encoded object."""
    event = _string(1, kind) + _field(2, _field(1, body))
    return len(event).to_bytes(4, "big") + event


def _message(api_version: str, kind: str, document: Document) -> bytes | None:
    kinds = api_facts().kinds
    if kind == "Status":
        return _encode(f"{_META}Status", document)
    if kind == "PartialObjectMetadata":
        return _field(1, _encode(f"{_META}ObjectMeta", document.get("metadata")))
    if kind == "PartialObjectMetadataList":
        items = cast("list[Document]", document.get("items") or [])
        head = _field(1, _encode(f"{_META}ListMeta", document.get("metadata")))
        inner = (_field(1, _encode(f"{_META}ObjectMeta", each.get("metadata"))) for each in items)
        return head + b"".join(_field(2, each) for each in inner)
    # Discovery documents have no apiVersion.
    type_name = kinds.get(f"{api_version}/{kind}", "") if api_version else f"{_META}{kind}"
    if type_name:
        return _encode(type_name, document) if _has_numbers(type_name) else None
    item_type = kinds.get(f"{api_version}/{kind.removesuffix('List')}", "")
    if not item_type or not _has_numbers(item_type):
        return None
    items = cast("list[Document]", document.get("items") or [])
    head = _field(1, _encode(f"{_META}ListMeta", document.get("metadata")))
    return head + b"".join(_field(2, _encode(item_type, each)) for each in items)


def _has_numbers(type_name: str) -> bool:
    return any(field.number for field in api_facts().types.get(type_name, ()))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _field(number: int, data: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(data)) + data


def _string(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _number(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value)


# --- types ------------------------------------------------------------------------------------------------------------


def _encode(type_name: str, value: object) -> bytes:
    document = value if isinstance(value, dict) else {}
    return b"".join(write(document) for write in _plan(type_name))


@cache
def _plan(type_name: str) -> tuple[Callable[[Document], bytes], ...]:
    fields = [field for field in api_facts().types.get(type_name, ()) if field.number]
    return tuple(_field_writer(field) for field in sorted(fields, key=lambda field: field.number))


def _field_writer(field: GoField) -> Callable[[Document], bytes]:
    wire, write = _writer(field.type)
    tag = _tag(field.number, wire)
    containers = [each for each in field.containers if each != "pointer"]
    name = field.name

    def tagged(value: object) -> bytes:
        data = write(value)
        return tag + _varint(len(data)) + data if wire == _BYTES else tag + data

    if field.inline:
        return tagged
    if containers[:1] == ["map"]:
        inner_tag = _tag(2, wire)
        of_lists = containers[1:] == ["list"]

        def entry(key: str, value: object) -> bytes:
            if of_lists:
                items = value if isinstance(value, list) else []
                data = b"".join(_field(1, write(each)) for each in items)
                return _string(1, key) + _field(2, data)
            data = write(value)
            return _string(1, key) + inner_tag + (_varint(len(data)) + data if wire == _BYTES else data)

        def write_map(document: Document) -> bytes:
            found = document.get(name)
            entries = sorted(found.items()) if isinstance(found, dict) else []
            return b"".join(_field(field.number, entry(key, value)) for key, value in entries)

        return write_map
    if field.go_type in _LIST_MESSAGES:

        def write_named_list(document: Document) -> bytes:
            found = document.get(name)
            items = found if isinstance(found, list | tuple) else []
            return _field(field.number, b"".join(_field(1, write(each)) for each in items)) if items else b""

        return write_named_list
    if containers[:1] == ["list"]:

        def write_list(document: Document) -> bytes:
            found = document.get(name)
            return b"".join(tagged(each) for each in found) if isinstance(found, list | tuple) else b""

        return write_list
    is_optional = "pointer" in field.containers or field.type == "[]uint8"

    def write_value(document: Document) -> bytes:
        found = document.get(name)
        return b"" if found is None and is_optional else tagged(found)

    return write_value


_LIST_MESSAGES = ("v1.Verbs",)
"""Go types of lists that are encoded as a message with the items in field 1."""


def _writer(type_name: str) -> tuple[int, _Writer]:
    special = _SPECIAL.get(type_name)
    return special if special is not None else (_BYTES, lambda value: _encode(type_name, value))


def _int_or_string(value: object) -> bytes:
    if isinstance(value, str):
        return _number(1, 1) + _number(2, 0) + _string(3, value)
    return _number(1, 0) + _number(2, value if isinstance(value, int) else 0) + _string(3, "")


def _time(value: object) -> bytes:
    if not isinstance(value, str):
        return b""
    instant = datetime.fromisoformat(value) - _EPOCH
    seconds = instant.days * 86_400 + instant.seconds
    return _number(1, seconds) + _number(2, instant.microseconds * 1000)


def _duration(value: object) -> bytes:
    text = str(value or "0s").removesuffix("s")
    return _number(1, round(float(text) * _NANOSECONDS))


def _raw_json(value: object) -> bytes:
    if value is None:
        return b""
    return _field(1, json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode())


def _float(value: object) -> bytes:
    return struct.pack("<d", value if isinstance(value, int | float) else 0.0)


_SPECIAL: dict[str, tuple[int, _Writer]] = {
    "string": (_BYTES, lambda value: str(value or "").encode()),
    "bool": (_VARINT, lambda value: b"\x01" if value else b"\x00"),
    "int32": (_VARINT, lambda value: _varint(value if isinstance(value, int) else 0)),
    "int64": (_VARINT, lambda value: _varint(value if isinstance(value, int) else 0)),
    "float64": (_DOUBLE, _float),
    "[]uint8": (_BYTES, lambda value: base64.b64decode(str(value or ""))),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (_BYTES, lambda value: _string(1, str(value or "0"))),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (_BYTES, _int_or_string),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": (_BYTES, _raw_json),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": (_BYTES, _raw_json),
    _META + "Time": (_BYTES, _time),
    _META + "MicroTime": (_BYTES, _time),
    _META + "Duration": (_BYTES, _duration),
    _META + "FieldsV1": (_BYTES, _raw_json),
}
