"""Unknown fields and invalid values of an apply configuration, in the words of structured merge."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge
from bayplan.apiserver.schema.facts import api_facts

_LEAF, _STRUCT, _MAP, _KEYED = Merge.LEAF, Merge.STRUCT, Merge.MAP, Merge.KEYED_LIST


def undeclared_field(kind: FieldType, value: object) -> str:
    """Return the error of the first unknown field, or an empty string."""
    merge = kind.merge
    if isinstance(value, dict):
        if merge is not _STRUCT and merge is not _MAP:
            return ""
        fields, element = kind.fields, kind.element
        for name, item in value.items():
            inner = fields.get(name, element)
            if inner is None:
                if merge is _STRUCT:
                    return f".{name}: field not declared in schema"
                inner = UNTYPED
            if inner.merge is not _LEAF or inner.element is not None:
                found = undeclared_field(inner, item)
                if found:
                    return f".{name}{found}"
    elif isinstance(value, list) and kind.element is not None and kind.element is not LEAF:
        inner = kind.element
        for index, item in enumerate(value):
            found = undeclared_field(inner, item)
            if found:
                return _element(kind, item, index) + found
    return ""


def _element(kind: FieldType, item: object, index: int) -> str:
    if kind.merge is _KEYED and isinstance(item, dict):
        keys = [(key, item.get(key, kind.key_defaults.get(key))) for key in kind.keys]
        return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys if value is not None) + "]"
    return f"[{index}]"


_GO_TYPES: Mapping[type, str] = {
    str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}",
}  # fmt: skip


def mistyped_field(type_name: str, value: object, kind: FieldType | None = None) -> str:
    """Return the error of the first value with the wrong type, or an empty string.

    Args:
        type_name: the name of the type in OpenAPI; custom resources have none and are not checked.
        value: a value of that type.
        kind: the merge type of the value: items of keyed lists are named by their keys.
    """
    types = api_facts().types
    if type_name not in types or not isinstance(value, dict):
        return ""
    for facts in types[type_name]:
        if facts.inline:
            found = mistyped_field(facts.type, value, kind)
        elif value.get(facts.name) is None:
            continue
        else:
            containers = tuple(each for each in facts.containers if each != "pointer")
            inner = None if kind is None else kind.fields.get(facts.name)
            found = _mistyped(facts.type, containers, value[facts.name], f".{facts.name}", inner)
        if found:
            return found
    return ""


def _mistyped(type_name: str, containers: tuple[str, ...], value: object, path: str, kind: FieldType | None) -> str:
    if containers:
        wanted = list if containers[0] == "list" else dict
        if not isinstance(value, wanted):
            return f"{path}: expected {containers[0]}, got &{{{_printed(value)}}}"
        items = enumerate(value) if isinstance(value, list) else value.items()
        element = None if kind is None else kind.element
        for name, item in items:
            here = _item_path(kind, item, name) if isinstance(name, int) else f".{name}"
            here = f"{path}{here}"
            if item is None and kind is not None and kind.merge is _KEYED:
                return f"{path}: element {name}: associative list with keys may not have a null element"
            found = "" if item is None else _mistyped(type_name, containers[1:], item, here, element)
            if found:
                return found
        return ""
    if not _fits(type_name, value):
        if type_name == "string":
            return f"{path}: expected string, got {_unstructured(value)}"
        if type_name == "bool":
            return f"{path}: expected boolean, got &{{{_printed(value)}}}"
        return f"{path}: expected numeric (int or float), got {_GO_TYPES[type(value)]}"
    types = api_facts().types
    if type_name in types and types[type_name] and not isinstance(value, dict):
        return f"{path}: expected map, got &{{{_printed(value)}}}"
    inner = mistyped_field(type_name, value, kind)
    return f"{path}{inner}" if inner else ""


def _item_path(kind: FieldType | None, item: object, index: int) -> str:
    return f"[{index}]" if kind is None else _element(kind, item, index)


def _printed(value: object) -> str:
    """Return a value as Go prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_printed(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_printed, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _fits(type_name: str, value: object) -> bool:
    """Return whether a value has a scalar type; any other type accepts any value here."""
    if type_name == "string":
        return isinstance(value, str)
    if type_name == "bool":
        return isinstance(value, bool)
    if type_name in ("int32", "int64", "float64"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _unstructured(value: object) -> str:
    """Return a value as Go prints it when structured merge wraps it."""
    text = json.dumps(value) if not isinstance(value, dict | list) else "..."
    return f"&value.valueUnstructured{{Value:{text}}}"
