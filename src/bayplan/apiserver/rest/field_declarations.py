"""Whether an applied configuration only names fields that its type has, in the words of structured merge."""

from __future__ import annotations

import json

from bayplan.apiserver.fields.field_type import LEAF, FieldType, Merge


def undeclared_field(kind: FieldType, value: object, path: str = "") -> str:
    """Return what is wrong with the first field that the type does not have, or an empty string."""
    if kind.merge is Merge.STRUCT and isinstance(value, dict):
        for name, item in value.items():
            inner = kind.fields.get(name)
            if inner is None and kind.element is None:
                return f"{path}.{name}: field not declared in schema"
            if inner is None or inner.merge is not Merge.LEAF or inner.element is not None:
                found = undeclared_field(kind.child(name), item, f"{path}.{name}")
                if found:
                    return found
    elif kind.merge is Merge.MAP and isinstance(value, dict):
        for name, item in value.items():
            found = undeclared_field(kind.child(name), item, f"{path}.{name}")
            if found:
                return found
    elif isinstance(value, list) and kind.element is not None and kind.element is not LEAF:
        for index, item in enumerate(value):
            found = undeclared_field(kind.item, item, path + _element(kind, item, index))
            if found:
                return found
    return ""


def _element(kind: FieldType, item: object, index: int) -> str:
    if kind.merge is Merge.KEYED_LIST and isinstance(item, dict):
        keys = [(key, item.get(key, kind.key_defaults.get(key))) for key in kind.keys]
        return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys if value is not None) + "]"
    return f"[{index}]"
