"""Write a struct as plain JSON data, with the names of v1."""

import base64

from bayplan.base.go_text.durations import format_duration
from bayplan.base.go_text.json import json_float
from bayplan.framework.configuration.document import RawArguments
from bayplan.framework.configuration.json_tree import JsonValue, plain_value
from bayplan.framework.configuration.schema import (
    EMPTY_LIST,
    Arguments,
    Base64,
    Duration,
    GoType,
    Nested,
    Pointer,
    Slice,
    StringMap,
    Struct,
    fields_of,
)

API_VERSION = "kubescheduler.config.k8s.io/v1"


def encode_struct(struct: object, *, names: str = "json") -> dict[str, JsonValue]:
    """Return a struct as a dict, with the fields in upstream's order.

    Args:
        struct: one of the structs of the configuration, defaulted.
        names: ``json`` for the names of v1; ``go`` for those of the internal version, which error texts show with all
            its fields, even empty ones.
    """
    out: dict[str, JsonValue] = {}
    for field in fields_of(type(struct)):
        value = getattr(struct, field.attribute)
        if names == "go" and isinstance(struct, Struct):
            out[field.go_name] = _encode(value, field.go_type, names)
        elif not (field.omit_empty and _is_empty(value, field.go_type)):
            out[field.json] = _encode(value, field.go_type, names)
    return out


def encode_arguments(args: Struct | RawArguments | None, *, names: str = "json") -> JsonValue:
    """Return the arguments of a plugin as JSON data.

    Typed arguments get their kind and version (except with `names` ``go``, for error texts); others are unchanged.
    """
    if args is None:
        return None
    if isinstance(args, RawArguments):
        return plain_value(args.tree)
    if names == "go":
        return encode_struct(args, names=names)
    return {"kind": type(args).__name__, "apiVersion": API_VERSION, **encode_struct(args)}


def encode_list(items: tuple[object, ...], *, names: str = "json") -> JsonValue:
    """Return a list as JSON data; None if the list was not given."""
    if not items and items is not EMPTY_LIST:
        return None
    return [item if isinstance(item, str) else encode_struct(item, names=names) for item in items]


def _is_empty(value: object, go_type: GoType) -> bool:
    if isinstance(go_type, Pointer):
        return value is None
    # Go's encoder never omits structs, and a duration is a struct.
    return not isinstance(go_type, Duration) and value in (False, 0, "", b"", (), {})


def _encode(value: object, go_type: GoType, names: str) -> JsonValue:
    match go_type:
        case Pointer():
            return None if value is None else _encode(value, go_type.element, names)
        case Duration():
            assert isinstance(value, int)
            return format_duration(value)
        case Nested():
            return encode_struct(value, names=names)
        case Slice():
            assert isinstance(value, tuple)
            return encode_list(value, names=names)
        case StringMap():
            assert isinstance(value, dict)
            return dict(value)
        case Base64():
            assert isinstance(value, bytes)
            return base64.b64encode(value).decode("ascii")
        case Arguments():
            assert value is None or isinstance(value, Struct | RawArguments)
            return encode_arguments(value)
        case _:
            assert isinstance(value, bool | int | float | str)
            return _whole(value) if isinstance(value, float) else value


def _whole(value: float) -> int | float:
    """Return a number as Go encodes it: integral values below 1e21 without decimal point and exponent."""
    text = json_float(value)
    return value if "." in text or "e" in text else int(text)
