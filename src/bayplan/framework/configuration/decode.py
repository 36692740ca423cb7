"""Decode a JSON tree into a struct, strictly: report unknown and duplicate fields, reject wrong types.

Texts and precedence are those of sigs.k8s.io/json, which kube-scheduler reads its configuration with: a type error takes
precedence over all remarks about fields, the first type error counts, and an invalid duration ends decoding.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.durations import parse_duration
from bayplan.base.go_text.json import float32
from bayplan.base.go_text.quoting import GoTextError, quote
from bayplan.framework.configuration.document import RawArguments
from bayplan.framework.configuration.json_tree import JsonNode, JsonNumber, JsonObject
from bayplan.framework.configuration.schema import (
    EMPTY_LIST,
    Arguments,
    Base64,
    Duration,
    GoType,
    Nested,
    Pointer,
    Scalar,
    Slice,
    StringMap,
    Struct,
    StructField,
    absent_value,
    fields_of,
    is_versioned,
    type_name,
    zero,
)
from bayplan.objects.selectors import parse_int64

_MAX_REMARKS = 100
_TYPE_META = ("kind", "apiVersion")

S = TypeVar("S", bound=Struct)


class DecodeError(ValueError):
    """Reject a text: it can't be decoded into the struct."""


def decode_struct(node: JsonNode, struct: type[S], *, internal: bool = False) -> tuple[S, tuple[str, ...]]:
    """Decode a tree into a struct that has ``kind`` and ``apiVersion``; return it with the remarks of strict decoding.

    Args:
        node: the tree; null leaves every field as if it were absent.
        struct: the dataclass to create.
        internal: whether the tree uses the internal version's names and types, which has no defaults.

    Raises:
        DecodeError: a value has the wrong type.
    """
    reader = _StructReader(internal)
    value = reader.read(node, Nested(struct), zero(Nested(struct), internal=internal), root=True)
    if reader.type_error is not None:
        raise DecodeError(reader.type_error)
    assert isinstance(value, struct)
    return value, tuple(reader.remarks)


class _StructReader:
    """One decoding: the current position (for messages), and the problems so far."""

    def __init__(self, internal: bool) -> None:
        self.internal = internal
        self.remarks: list[str] = []
        self.type_error: str | None = None
        self.path = ""
        self.struct = ""
        self.fields: tuple[str, ...] = ()

    def read(self, node: JsonNode, go_type: GoType, absent: object, *, root: bool = False) -> object:
        """Decode a value of a type; ``absent`` is the result if there is no usable value."""
        match go_type:
            case Pointer():
                if node is None:
                    return absent
                element_absent = zero(go_type.element, internal=self.internal)
                return self.read(node, go_type.element, element_absent)
            case Duration():
                return self.duration(node)
            case Arguments():
                return self.arguments(node)
            case Nested():
                return self.nested(node, go_type, absent, root=root)
            case Slice():
                return self.slice(node, go_type)
            case StringMap():
                return self.string_map(node)
            case Base64():
                return self.base64(node)
            case Scalar():
                return self.scalar(node, go_type, absent)

    # Structs, lists and maps.

    def nested(self, node: JsonNode, go_type: Nested, absent: object, *, root: bool) -> object:
        if not isinstance(node, JsonObject):
            self.refuse(node, go_type)
            return absent
        known = {self.key_of(field, go_type.struct): field for field in fields_of(go_type.struct)}
        values: dict[str, object] = {
            field.attribute: absent_value(field, internal=self.internal) for field in known.values()
        }
        seen: set[str] = set()
        for key, item in node.pairs:
            field = known.get(key)
            if field is None and not (root and key in _TYPE_META):
                self.remark("unknown", key)
                continue
            if key in seen:
                self.remark("duplicate", key)
            seen.add(key)
            if field is None:
                continue
            with self.inside(go_type.struct.__name__, field, key):
                default = absent_value(field, internal=self.internal)
                values[field.attribute] = self.read(item, field.wire.go_type, default)
        return go_type.struct(**values)

    def key_of(self, field: StructField, struct: type[object]) -> str:
        return field.wire.go_name if self.internal and is_versioned(struct) else field.wire.json

    @contextmanager
    def inside(self, struct: str, field: StructField, key: str) -> Iterator[None]:
        """Enter a field of a struct while it is decoded."""
        before = self.path, self.struct, self.fields
        embedded = (field.wire.embedded,) if field.wire.embedded else ()
        self.path = f"{self.path}.{key}" if self.path else key
        self.struct = struct
        self.fields = (*self.fields, *embedded, key)
        yield
        self.path, self.struct, self.fields = before

    def slice(self, node: JsonNode, go_type: Slice) -> tuple[object, ...]:
        if node is None:
            return ()
        if not isinstance(node, list):
            self.refuse(node, go_type)
            return ()
        items = []
        for index, item in enumerate(node):
            before, self.path = self.path, f"{self.path}[{index}]"
            items.append(self.read(item, go_type.element, zero(go_type.element, internal=self.internal)))
            self.path = before
        return tuple(items) if items else EMPTY_LIST

    def string_map(self, node: JsonNode) -> dict[str, str]:
        if node is None:
            return {}
        if not isinstance(node, JsonObject):
            self.refuse(node, StringMap())
            return {}
        values: dict[str, str] = {}
        for key, item in node.pairs:
            if key in values:
                self.remark("duplicate", key)
            before, self.path = self.path, f"{self.path}.{key}"
            values[key] = cast(str, self.scalar(item, Scalar("string", "string"), ""))
            self.path = before
        return dict(sorted(values.items()))

    # Single values.

    def scalar(self, node: JsonNode, go_type: Scalar, absent: object) -> object:
        if node is None:
            return absent
        if go_type.kind == "bool" and isinstance(node, bool):
            return node
        if go_type.kind == "string" and isinstance(node, str):
            return node
        if isinstance(node, JsonNumber) and go_type.kind in ("int", "float"):
            value = _number(node.literal, go_type)
            if value is not None:
                return value
            self.refuse(node, go_type, literal=node.literal)
            return absent
        self.refuse(node, go_type)
        return absent

    def duration(self, node: JsonNode) -> int:
        # null is read as the empty text, which is not a duration.
        if node is not None and not isinstance(node, str):
            raise DecodeError(self.type_text(node, Scalar("string", "string"), ""))
        try:
            return parse_duration(node or "")
        except GoTextError as error:
            raise DecodeError(str(error)) from None

    def base64(self, node: JsonNode) -> bytes:
        if node is None:
            return b""
        if isinstance(node, list):
            return self.byte_list(node)
        if not isinstance(node, str):
            self.refuse(node, Base64())
            return b""
        try:
            return decode_base64(node)
        except GoTextError as error:
            self.note(str(error))
            return b""

    def byte_list(self, node: list[JsonNode]) -> bytes:
        byte = Scalar("int", "uint8", bits=8)
        return bytes(cast(int, self.scalar(item, byte, 0)) for item in node)

    def arguments(self, node: JsonNode) -> RawArguments | None:
        if node is None:
            return None
        if self.internal:
            # An interface with methods: nothing but null can be read into it.
            self.refuse(node, Arguments())
            return None
        return RawArguments(node)

    # Remarks and errors.

    def remark(self, what: str, key: str) -> None:
        text = f"{what} field {quote(f'{self.path}.{key}' if self.path else key)}"
        if len(self.remarks) < _MAX_REMARKS and text not in self.remarks:
            self.remarks.append(text)

    def refuse(self, node: JsonNode, go_type: GoType, *, literal: str = "") -> None:
        """Record a value of the wrong type; null never is."""
        if node is not None:
            self.note(self.type_text(node, go_type, literal))

    def note(self, text: str) -> None:
        if self.type_error is None:
            self.type_error = text

    def type_text(self, node: JsonNode, go_type: GoType, literal: str) -> str:
        found = {bool: "bool", str: "string", list: "array", JsonObject: "object"}.get(type(node), "number")
        if literal:
            found = f"number {literal}"
        if self.fields:
            target = f"Go struct field {self.struct}.{'.'.join(self.fields)}"
        else:
            target = "Go value"
        return f"json: cannot unmarshal {found} into {target} of type {type_name(go_type, internal=self.internal)}"


def _number(literal: str, go_type: Scalar) -> int | float | None:
    """Parse digits as a Go integer or float of this size; None if they don't fit."""
    if go_type.kind == "float":
        try:
            value = float32(float(literal))
        except OverflowError:
            return None
        return None if math.isinf(value) else value
    integer = parse_int64(literal)
    if integer is None:
        return None
    if go_type.bits == 8:
        return integer if 0 <= integer < 256 else None
    return integer if -(1 << go_type.bits - 1) <= integer < 1 << go_type.bits - 1 else None
