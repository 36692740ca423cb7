"""Errors of Go's converter of unstructured objects, through which strategic merge patches decode a document to a type."""

from __future__ import annotations

from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.schema.facts import GoField, api_facts
from bayplan.base.plain_data import Document

_GO_NUMBERS = ("int32", "int64", "float64")


def unstructured_problem(type_name: str, document: Document) -> str:
    """Return why a document cannot be converted to a type, or an empty string."""
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
    for facts in api_facts().types.get(type_name, ()):
        if facts.inline:
            problem = _struct_problem(facts.type, value)
        elif (item := value.get(facts.name)) is None:
            continue
        else:
            containers = tuple(each for each in facts.containers if each != "pointer")
            problem = _field_problem(type_name, facts, containers, item)
        if problem:
            return problem
    return ""


def _field_problem(owner: str, facts: GoField, containers: tuple[str, ...], value: object) -> str:
    if containers:
        wanted, restored = (list, "slice") if containers[0] == "list" else (dict, "map")
        if not isinstance(value, wanted):
            return f"cannot restore {restored} from {_kind(value)}"
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        for item in items:
            problem = "" if item is None else _field_problem(owner, facts, containers[1:], item)
            if problem:
                return problem
        return ""
    if api_facts().types.get(facts.type):
        return _struct_problem(facts.type, value)
    if facts.type in ("string", "bool", *_GO_NUMBERS):
        return _scalar_problem(facts, value)
    if facts.type == "[]uint8" and not isinstance(value, str):
        return f"cannot restore slice from {_kind(value)}"
    if facts.containers:
        return ""
    try:
        # Types with their own decoder: quantities, times, bytes.
        shape_of(owner).fields[facts.name].read(value)
    except DecodeError as problem:
        return str(problem)
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
