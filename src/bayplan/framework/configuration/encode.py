"""Write a struct as plain JSON data, with the names of v1 or, for error texts, of the internal version."""

import base64

from bayplan.base.go_text.durations import format_duration
from bayplan.base.go_text.json import json_float
from bayplan.framework.configuration.document import API_VERSION, RawArguments
from bayplan.framework.configuration.json_tree import JsonValue, plain_value
from bayplan.framework.configuration.schema import (
    EMPTY_LIST,
    GoType,
    Nested,
    Pointer,
    Scalar,
    Slice,
    Struct,
    fields_of,
)


def encode_struct(struct: object, *, internal: bool = False) -> dict[str, JsonValue]:
    """Return a struct as a dict, with the fields in upstream's order.

    With `internal`, names are those of the internal version, and empty fields are not omitted.
    """
    out: dict[str, JsonValue] = {}
    for field in fields_of(type(struct)):
        value = getattr(struct, field.attribute)
        if internal and isinstance(struct, Struct):
            out[field.go_name] = _encode(value, field.go_type, internal)
        elif field.wire.always or not _is_empty(value, field.go_type):
            out[field.json] = _encode(value, field.go_type, internal)
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


def encode_list(items: tuple[object, ...], *, internal: bool = False) -> JsonValue:
    """Return a list as JSON data; None if the list was not given."""
    if not items and items is not EMPTY_LIST:
        return None
    return [item if isinstance(item, str) else encode_struct(item, internal=internal) for item in items]


def _is_empty(value: object, go_type: GoType) -> bool:
    if isinstance(go_type, Pointer):
        return value is None
    # Go's encoder never omits structs, and a duration is a struct.
    is_duration = isinstance(go_type, Scalar) and go_type.kind == "duration"
    return not is_duration and value in (None, False, 0, "", b"", (), {})


def _encode(value: object, go_type: GoType, internal: bool) -> JsonValue:
    match go_type:
        case Pointer():
            return None if value is None else _encode(value, go_type.element, internal)
        case Nested():
            return encode_struct(value, internal=internal)
        case Slice():
            assert isinstance(value, tuple)
            return encode_list(value, internal=internal)
    match go_type.kind, value:
        case "duration", int():
            return format_duration(value)
        case "bytes", bytes():
            return base64.b64encode(value).decode("ascii")
        case "arguments", Struct() | RawArguments() | None:
            return encode_arguments(value)
        case "float", float():
            # Go writes integral values below 1e21 without decimal point and exponent.
            text = json_float(value)
            return value if "." in text or "e" in text else int(text)
    assert isinstance(value, bool | int | str | dict)
    return value
