"""Whether an applied configuration only names fields that its type has, in the words of structured merge."""

from __future__ import annotations

import json

from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge

_LEAF, _STRUCT, _MAP, _KEYED = Merge.LEAF, Merge.STRUCT, Merge.MAP, Merge.KEYED_LIST


def undeclared_field(kind: FieldType, value: object) -> str:
    """Return what is wrong with the first field that the type does not have, or an empty string."""
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
