"""Repeated items in sets and keyed lists of custom resources."""

from __future__ import annotations

import json
from collections import Counter

from bayplan.apiserver.model.errors import Cause, duplicate, invalid_value
from bayplan.base.plain_data import Document, part, texts
from bayplan.objects.selectors import quote


def check_list_types(schema: Document, value: object, path: str) -> list[Cause]:
    """Return the errors about duplicate items in all sets and keyed lists within a value."""
    causes: list[Cause] = []
    if isinstance(value, list):
        inner = part(schema, "items")
        causes += _check_identities(schema, value, path)
        for index, item in enumerate(value) if inner else ():
            causes += check_list_types(inner, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        properties, more = part(schema, "properties"), schema.get("additionalProperties")
        for name, item in value.items():
            inner_schema = properties.get(name, more)
            if isinstance(inner_schema, dict) and isinstance(item, dict | list):
                causes += check_list_types(inner_schema, item, inner_path(path, name, is_key=name not in properties))
    return causes


def _check_identities(schema: Document, value: list[object], path: str) -> list[Cause]:
    """Return the errors about duplicate items of a list if it is a set or a keyed list; each identity is named once."""
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return []
    if kind == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                what = "must be an object for an array of list-type map"
                return [invalid_value(f"{path}[{index}]", shown_value(item), what)]
    keys = texts(schema, "x-kubernetes-list-map-keys")
    times: Counter[str] = Counter()
    causes = []
    for index, item in enumerate(value):
        found = identity(item or {}, keys) if kind == "map" else shown_value(item)
        times[found] += 1
        if times[found] == 2:
            causes.append(duplicate(f"{path}[{index}]", found))
    return causes


def inner_path(path: str, name: str, *, is_key: bool) -> str:
    """Return the path of a property, or of a key of a map, as upstream shows it in errors about the structure of values."""
    return f"{path}[{name}]" if is_key else f"{path}.{name}" if path else name


def identity(item: object, keys: list[str]) -> str:
    """Return the keys of an item as messages show them; the whole item if it is not an object."""
    return shown_value({key: item[key] for key in keys if key in item}) if isinstance(item, dict) else shown_value(item)


def shown_value(value: object) -> str:
    """Return a value as messages show it."""
    if isinstance(value, str):
        return quote(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
