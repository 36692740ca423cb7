"""Decode a JSON tree into a struct, and write a struct as JSON data.

Decoding is strict: it reports unknown and duplicate fields, and rejects wrong types. Texts and precedence are those of
sigs.k8s.io/json, with which kube-scheduler reads its configuration: a type error takes precedence over all remarks about
fields, only the first type error is reported, and an invalid duration ends decoding.
"""

import base64
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar, cast

from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.durations import format_duration, parse_duration
from bayplan.base.go_text.json import float32, json_float
from bayplan.base.go_text.quoting import GoTextError, quote
from bayplan.formats.json_tree import JsonNode, JsonNumber, JsonObject, JsonValue, kind_of, plain_value
from bayplan.framework.configuration.document import API_VERSION, RawArguments
from bayplan.framework.configuration.field_errors import ConfigurationRejectedError, Remark, Step, path_of
from bayplan.framework.configuration.schema import (
    DURATION,
    EMPTY_LIST,
    STRING,
    GoType,
    Nested,
    Pointer,
    Scalar,
    Slice,
    Struct,
    absent_values,
    fields_of,
    type_name,
    zero,
)
from bayplan.objects.selectors import parse_int64

_MAX_REMARKS = 100
_TYPE_META = ("kind", "apiVersion")
_BYTE = Scalar("int", "uint8", bits=8)

S = TypeVar("S", bound=Struct)


class DecodeError(ConfigurationRejectedError):
    """A text can't be decoded into the struct."""


def decode_struct(node: JsonNode, struct: type[S], *, internal: bool = False) -> tuple[S, tuple[Remark, ...]]:
    """Decode a tree into a struct that has ``kind`` and ``apiVersion``; return it with the remarks of strict decoding.

    Args:
        node: the tree; null leaves every field as if it were absent.
        struct: the class to create.
        internal: whether the tree is in the internal version, which has other names and types, and no defaults.

    Raises:
        DecodeError: a value has the wrong type.
    """
    decoder = _Decoder(internal)
    value = decoder.read(node if node is not None else JsonObject(()), Nested(struct), _Position())
    if decoder.type_error is not None:
        raise decoder.type_error
    assert isinstance(value, struct)
    return value, tuple(decoder.remarks.values())


class _Position(NamedTuple):
    """The position of a value: its path, its innermost struct, and the fields of Go structs that lead to it."""

    steps: tuple[Step, ...] = ()
    struct: str = ""
    fields: tuple[str, ...] = ()

    def inside(self, step: Step) -> "_Position":
        return self._replace(steps=(*self.steps, step))


class _Decoder:
    """Decodes one tree, and collects its problems."""

    def __init__(self, internal: bool) -> None:
        self.internal = internal
        self.remarks: dict[str, Remark] = {}
        self.type_error: DecodeError | None = None

    def read(self, node: JsonNode, go_type: GoType, at: _Position) -> object:
        """Decode a value other than null; the result is None if it has the wrong type."""
        match go_type, node:
            case Pointer(element), _:
                return self.read(node, element, at)
            case Nested(struct), JsonObject():
                return self.nested(node, struct, at)
            case Slice(element), list():
                return self.elements(node, element, at) or EMPTY_LIST
            case Scalar(), _:
                return self.scalar(node, go_type, at)
        return self.refused(node, go_type, at)

    def elements(self, nodes: Sequence[JsonNode], element: GoType, at: _Position) -> tuple[object, ...]:
        absent = zero(element, internal=self.internal)
        return tuple(
            absent if node is None else self.read(node, element, at.inside(index)) for index, node in enumerate(nodes)
        )

    def nested(self, node: JsonObject, struct: type[object], at: _Position) -> object:
        fields, by_go_name = fields_of(struct), self.internal and issubclass(struct, Struct)
        known = {field.go_name if by_go_name else field.json: field for field in fields}
        values = absent_values(struct, internal=self.internal)
        seen: set[str] = set()
        for key, item in node.pairs:
            field = known.get(key)
            if field is None and (at.steps or key not in _TYPE_META):
                self.remark("unknown", key, at)
                continue
            if key in seen:
                self.remark("duplicate", key, at)
            seen.add(key)
            # null leaves a field absent, except that it is decoded as an empty text for a duration.
            if field is None or (item is None and field.go_type != DURATION):
                continue
            embedded = (field.wire.embedded,) if field.wire.embedded else ()
            inner = _Position((*at.steps, key), struct.__name__, (*at.fields, *embedded, key))
            value = self.read(item, field.go_type, inner)
            if value or self.internal or not field.wire.empty_is_unset:
                values[field.attribute] = value
        return struct(**values)

    def scalar(self, node: JsonNode, go_type: Scalar, at: _Position) -> object:
        match go_type.kind, node:
            case ("bool", bool()) | ("string", str()):
                return node
            case "int" | "float", JsonNumber(literal) if (number := _number(literal, go_type)) is not None:
                return number
            case "duration", str() | None:
                try:
                    return parse_duration(node or "")
                except GoTextError as error:
                    raise DecodeError(str(error), steps=at.steps) from None
            case "duration", _:
                raise self.mismatch(node, go_type, at)
            case "bytes", str():
                try:
                    return decode_base64(node)
                except GoTextError as error:
                    self.type_error = self.type_error or DecodeError(str(error), steps=at.steps)
                    return None
            case "bytes", list():
                return bytes(cast(int, each or 0) for each in self.elements(node, _BYTE, at))
            case "map", JsonObject():
                return self.string_map(node, at)
            case "arguments", _ if not self.internal:
                # In the internal version, arguments are a Go interface with methods, which nothing can be decoded into.
                return RawArguments(node)
        return self.refused(node, go_type, at)

    def string_map(self, node: JsonObject, at: _Position) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, item in node.pairs:
            if key in values:
                self.remark("duplicate", key, at)
            values[key] = "" if item is None else self.scalar(item, STRING, at.inside(key))
        return dict(sorted(values.items()))

    def remark(self, what: str, key: str, at: _Position) -> None:
        steps = (*at.steps, key)
        text = f"{what} field {quote(path_of(steps).removeprefix('$').removeprefix('.'))}"
        if len(self.remarks) < _MAX_REMARKS:
            self.remarks.setdefault(text, Remark(text, steps, f"{what} field", of_key=True))

    def refused(self, node: JsonNode, go_type: GoType, at: _Position) -> object:
        """Record a value of the wrong type."""
        self.type_error = self.type_error or self.mismatch(node, go_type, at)
        return None

    def mismatch(self, node: JsonNode, go_type: GoType, at: _Position) -> DecodeError:
        found = kind_of(node)
        if isinstance(node, JsonNumber) and isinstance(go_type, Scalar) and go_type.kind in ("int", "float"):
            found += f" {node.literal}"
        target = f"Go struct field {at.struct}.{'.'.join(at.fields)}" if at.fields else "Go value"
        name = type_name(go_type, internal=self.internal)
        # If an element of a list is wrong, the position is that of the list, as in upstream's paths.
        steps = at.steps[:-1] if at.steps and isinstance(at.steps[-1], int) else at.steps
        return DecodeError(f"json: cannot unmarshal {found} into {target} of type {name}", steps=steps)


def _number(literal: str, go_type: Scalar) -> int | float | None:
    """Parse a number as a Go integer or float of this type; return None if it does not fit."""
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


def encode_struct(struct: object, *, internal: bool = False) -> dict[str, JsonValue]:
    """Return a struct as a dict, with the fields in upstream's order.

    With `internal`, names are those of the internal version, and empty fields are not omitted.
    """
    by_go_name = internal and isinstance(struct, Struct)
    out: dict[str, JsonValue] = {}
    for field in fields_of(type(struct)):
        value = getattr(struct, field.attribute)
        if by_go_name or field.wire.always or not _is_empty(value, field.go_type):
            out[field.go_name if by_go_name else field.json] = _encode(value, field.go_type, internal)
    return out


def encode_arguments(args: Struct | RawArguments | None, *, internal: bool = False) -> JsonValue:
    """Return the arguments of a plugin as JSON data; typed arguments in v1 form with their kind and version."""
    if args is None:
        return None
    if isinstance(args, RawArguments):
        return plain_value(args.tree)
    if internal:
        return encode_struct(args, internal=True)
    return {"kind": type(args).__name__, "apiVersion": API_VERSION, **encode_struct(args)}


def _is_empty(value: object, go_type: GoType) -> bool:
    if isinstance(go_type, Pointer):
        return value is None
    # Go's encoder never omits structs, and a duration is a struct.
    return go_type != DURATION and value in (None, False, 0, "", b"", (), {})


def _encode(value: object, go_type: GoType, internal: bool) -> JsonValue:
    match go_type, value:
        case _, None:
            return None
        case Pointer(element), _:
            return _encode(value, element, internal)
        case Nested(), _:
            return encode_struct(value, internal=internal)
        case Slice(element), tuple():
            return [_encode(item, element, internal) for item in value] if value or value is EMPTY_LIST else None
        case Scalar("duration"), int():
            return format_duration(value)
        case Scalar("bytes"), bytes():
            return base64.b64encode(value).decode("ascii")
        case Scalar("arguments"), Struct() | RawArguments():
            return encode_arguments(value)
        case Scalar("float"), float():
            # Go writes integral values below 1e21 without decimal point and exponent.
            text = json_float(value)
            return value if "." in text or "e" in text else int(text)
    assert isinstance(value, bool | int | str | dict)
    return value
