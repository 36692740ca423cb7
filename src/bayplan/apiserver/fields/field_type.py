"""Types in structured merge: structs, maps, lists (merged by keys, as sets or not at all), and leaves.

Each type is compiled once from `bayplan.formats.schema`. A type without a schema (custom resources, raw extensions) is
untyped: its maps merge by key, and its lists and other values are leaves.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache

import msgspec

from bayplan.formats.schema import FieldFacts, TypeFacts, schema


class Merge(IntEnum):
    """The merge strategy of a type."""

    LEAF = 0
    STRUCT = 1
    MAP = 2
    SET = 3
    KEYED_LIST = 4
    UNTYPED = 5


class FieldType:
    """A type as structured merge sees it.

    Attributes:
        merge: the merge strategy.
        fields: the types of a struct's fields, by name.
        element: the type of a map's values or a list's items; None means untyped.
        keys: the names of the fields that identify a keyed list's items, in alphabetic order.
        key_defaults: the default values of these fields.
        is_list: whether the type is a list; a leaf that is a list is replaced as a whole.
        is_map: whether the type is a map or a struct that is replaced as a whole.
        json_type: what values of a custom resource must be: ``string``, ``boolean``, ``numeric``, ``map``, ``list`` or
            ``any scalar``; empty for any value and for other kinds, whose declarations are checked.
        content: the declarations inside an atomic map of a custom resource, which are checked, too.
    """

    def __init__(self, merge: Merge) -> None:
        self.merge = merge
        self.fields: dict[str, FieldType] = {}
        self.element: FieldType | None = None
        self.keys: tuple[str, ...] = ()
        self.key_defaults: Mapping[str, object] = {}
        self.is_list = False
        self.is_map = False
        self.json_type = ""
        self.content: FieldType | None = None

    def child(self, name: str) -> FieldType:
        """Return the type of a struct's field or of a map's value."""
        found = self.fields.get(name)
        return found if found is not None else self.element or UNTYPED

    @property
    def item(self) -> FieldType:
        """The type of a list's items."""
        return self.element or UNTYPED


_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""The type of an embedded object of any kind, which is replaced as a whole."""
LEAF = FieldType(Merge.LEAF)
ATOMIC_MAP = FieldType(Merge.LEAF)
ATOMIC_MAP.is_map = True
UNTYPED = FieldType(Merge.UNTYPED)


@cache
def field_type(type_name: str) -> FieldType:
    """Return the type with this name in OpenAPI; untyped if the pinned release has no such type."""
    return _named(type_name, {})


def _named(type_name: str, made: dict[str, FieldType]) -> FieldType:
    if type_name in made:
        return made[type_name]
    if type_name == _RAW_EXTENSION:
        return ATOMIC_MAP
    facts = schema().types.get(type_name)
    if facts is None:
        return LEAF if type_name in ("string", "integer", "number", "boolean") else UNTYPED
    if not facts.fields:
        return UNTYPED if facts.scalar in ("object", "any") and not facts.format else LEAF
    return ATOMIC_MAP if facts.map_type == "atomic" else _struct(type_name, made)


def _struct(type_name: str, made: dict[str, FieldType]) -> FieldType:
    result = made[type_name] = FieldType(Merge.STRUCT)
    for name, field in schema().types[type_name].fields.items():
        result.fields[name] = _of_field(field, field.containers, made, outermost=True)
    return result


def _of_field(
    facts: FieldFacts, containers: tuple[str, ...], made: dict[str, FieldType], *, outermost: bool
) -> FieldType:
    if not containers:
        if outermost and facts.map_type == "granular":
            # The field is declared granular although its type is atomic everywhere else.
            return _struct(facts.type, {})
        return ATOMIC_MAP if outermost and facts.map_type == "atomic" else _named(facts.type, made)
    element = _of_field(facts, containers[1:], made, outermost=False)
    if containers[0] == "map":
        if outermost and facts.map_type == "atomic":
            return ATOMIC_MAP
        result = FieldType(Merge.MAP)
        result.element = element
        return result
    return _list_type(facts, element, outermost=outermost)


def _list_type(facts: FieldFacts, element: FieldType, *, outermost: bool) -> FieldType:
    kind, keys = (facts.list_type, facts.list_map_keys) if outermost else ("", ())
    if outermost and not kind and facts.strategy.startswith("merge"):
        kind, keys = ("map", (facts.merge_key,)) if facts.merge_key else ("set", ())
    if kind == "map" and keys:
        result = FieldType(Merge.KEYED_LIST)
        result.keys = tuple(sorted(keys))
        result.key_defaults = _defaults(schema().types.get(facts.type), keys)
    else:
        result = FieldType(Merge.SET if kind == "set" else Merge.LEAF)
        result.is_list = True
    result.element = element
    return result


def _defaults(facts: TypeFacts | None, keys: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key in keys:
        field = facts.fields.get(key) if facts is not None else None
        if field is not None and field.default is not msgspec.UNSET:
            found[key] = field.default
        elif field is not None and field.required and field.type == "string":
            # The default of a text that Go always writes: the facts contain the defaults of some groups only.
            found[key] = ""
    return found
