"""Errors of Go's converter of unstructured objects, with which strategic merge patches decode the patched object."""

from __future__ import annotations

from base64 import b64encode

from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.schema.facts import GoField, PlacedField, placed_fields
from bayplan.base.plain_data import Document

_GO_NUMBERS = ("int32", "int64", "float64")


def unstructured_problem(type_name: str, document: Document) -> str:
    """Return the converter's error for an object that does not fit a type, or an empty string."""
    return _struct_problem(type_name, document)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, str):
        return "string"
    return "slice" if isinstance(value, list) else "map"


def _struct_problem(type_name: str, value: object) -> str:
    if not isinstance(value, dict):
        return f"cannot restore struct from: {_kind(value)}"
    fields = placed_fields(type_name)
    # The converter visits fields in the order of the type, so it reports the error of the first field.
    found, at = "", len(fields)
    for name, item in value.items():
        field = fields.get(name)
        if field is None or item is None or field.position > at:
            continue
        problem = _field_problem(field, field.containers, item)
        if problem:
            found, at = problem, field.position
    return found


def _field_problem(field: PlacedField, containers: tuple[str, ...], value: object) -> str:
    if containers:
        wanted, restored = (list, "slice") if containers[0] == "list" else (dict, "map")
        if not isinstance(value, wanted):
            return f"cannot restore {restored} from {_kind(value)}"
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        for item in items:
            problem = "" if item is None else _field_problem(field, containers[1:], item)
            if problem:
                return problem
        return ""
    if field.is_struct:
        return _struct_problem(field.facts.type, value)
    facts = field.facts
    if facts.type == "string" and type(value) is str:
        return ""
    if facts.type in ("string", "bool", *_GO_NUMBERS):
        return _scalar_problem(facts, value)
    if facts.type == "[]uint8" and isinstance(value, list):
        return "" if all(item is None or type(item) is int for item in value) else "unrecognized type: uint8"
    if facts.type == "[]uint8" and not isinstance(value, str):
        return f"cannot restore slice from {_kind(value)}"
    if any(each != "pointer" for each in facts.containers):
        return ""
    if facts.type == _INT_OR_STRING and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        # Quantities, times and bytes have their own decoder.
        shape_of(field.owner).fields[facts.name].reader.read(value)
    except DecodeError as problem:
        return f"error decoding from json: {problem}" if facts.type == "[]uint8" else str(problem)
    return ""


def _scalar_problem(facts: GoField, value: object) -> str:
    found, wanted = _kind(value), facts.type
    if found == wanted or (found == "int64" and wanted in _GO_NUMBERS):
        return ""
    if isinstance(value, float) and wanted in _GO_NUMBERS and value == int(value):
        return ""
    go_type = facts.go_type.rsplit("]", 1)[-1].lstrip("*")
    if (found == "int64" and wanted == "string") or (found == "float64" and wanted in _GO_NUMBERS):
        return f"cannot convert {found} to {go_type}"
    return f"unrecognized type: {wanted}"


_INT32 = 2**32
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_INTEGERS = ("int32", "int64", _INT_OR_STRING)


def wrapped(type_name: str, value: object) -> object:
    """Return an object as Go's converter truncates it: 32-bit integers and lists of bytes wrap around, whole floats are integers.

    Its fields are in the order of the Go struct, in which Go's converter visits them.
    """
    if not isinstance(value, dict):
        return value
    fields = placed_fields(type_name)
    known = {
        name: _wrapped_field(field, field.containers, value[name]) for name, field in fields.items() if name in value
    }
    return known | {name: item for name, item in value.items() if name not in fields}


def _wrapped_field(field: PlacedField, containers: tuple[str, ...], value: object) -> object:
    if containers and isinstance(value, list):
        return [_wrapped_field(field, containers[1:], item) for item in value]
    if containers and isinstance(value, dict):
        return {name: _wrapped_field(field, containers[1:], item) for name, item in value.items()}
    if field.facts.type == "[]uint8" and isinstance(value, list):
        return b64encode(bytes(item % 256 if isinstance(item, int) else 0 for item in value)).decode()
    if field.facts.type in _INTEGERS and isinstance(value, float) and value.is_integer():
        value = int(value)
    if field.facts.type == "int32" and type(value) is int:
        return (value + _INT32 // 2) % _INT32 - _INT32 // 2
    return wrapped(field.facts.type, value) if field.is_struct else value
