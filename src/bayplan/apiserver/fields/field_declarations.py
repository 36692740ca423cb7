"""Checks that an applied configuration fits its type, with structured merge's error messages.

Source: the validating walker of sigs.k8s.io/structured-merge-diff/v6 (typed/validate.go).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from bayplan.apiserver.fields.compare import element_of
from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge
from bayplan.apiserver.schema.facts import PlacedField, placed_fields
from bayplan.base.go_text.json import go_map
from bayplan.objects.selectors import quote

Problems: TypeAlias = "list[str] | tuple[()]"
_LEAF, _STRUCT, _MAP, _SET, _KEYED = Merge.LEAF, Merge.STRUCT, Merge.MAP, Merge.SET, Merge.KEYED_LIST
_NONE: Problems = ()
_NO_FIELDS: Mapping[str, PlacedField] = {}
_WITH_METADATA = "io.k8s.api.core.v1.ConfigMap"
_ANY = "&value.valueUnstructured"
_TEXTS = ("string", "[]uint8")
_SCALARS = frozenset(
    f"io.k8s.apimachinery.pkg.{name}"
    for name in ("api.resource.Quantity", "apis.meta.v1.Time", "apis.meta.v1.MicroTime")
)
_NUMBERS = frozenset(("int32", "int64", "float64"))
_GO_TYPES: Mapping[type, str] = {
    str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}",
}  # fmt: skip


def configuration_problem(type_name: str, kind: FieldType, config: dict[str, object]) -> str:
    """Return structured merge's message about a configuration that does not fit its type, or an empty string.

    Args:
        type_name: the name of the type in OpenAPI; empty for custom resources, for which the schema is checked.
        kind: the merge type.
        config: the configuration.
    """
    fields = placed_fields(type_name) if type_name else {"metadata": placed_fields(_WITH_METADATA)["metadata"]}
    return _message(_struct(fields, config, kind))


def object_problem(kind: FieldType, document: dict[str, object]) -> str:
    """Return structured merge's message about a custom resource that does not fit its type, or an empty string.

    Unlike a configuration, it may have repeated items.
    """
    found = _struct({"metadata": placed_fields(_WITH_METADATA)["metadata"]}, document, kind)
    return _message([each for each in found if ": duplicate entries for key " not in each])


def _message(problems: Sequence[str]) -> str:
    if len(problems) < 2:
        return problems[0] if problems else ""
    return "\n  ".join(["errors:", *problems])


def _struct(
    fields: Mapping[str, PlacedField], value: dict[str, object], kind: FieldType, *, is_typed: bool = False
) -> Problems:
    """Return the problems of an object, each starting with its path.

    `is_typed`: whether `fields` are all fields of a built-in type.

    Structured merge stops at the first undeclared field. It iterates over fields in the random order of a Go map; this
    function sorts them by name.
    """
    merge, own = kind.merge, kind.fields
    element = kind.element or (UNTYPED if merge is not _STRUCT else None)
    # An atomic struct has no merge types for its fields, but they are declared, too.
    is_atomic = is_typed and bool(fields) and merge is not _STRUCT and merge is not _MAP
    wrong: dict[str, Problems] = {}
    for name, item in value.items():
        inner = own.get(name, element)
        if inner is None or (is_atomic and name not in fields):
            wrong[name] = _NONE
            continue
        if item is None:
            continue
        field = fields.get(name)
        if field is not None:
            found = _typed(field, field.containers, item, inner)
        elif inner.json_type:
            found = _problems_of_custom_value(item, inner)
        elif isinstance(item, dict | list) and (inner.merge is not _LEAF or inner.element is not None):
            found = _untyped(item, inner)
        else:
            continue
        if found:
            wrong[name] = found
    return _by_name(wrong) if wrong else _NONE


def _by_name(wrong: dict[str, Problems]) -> list[str]:
    """Return the problems of fields, sorted by field name, up to and including the first undeclared field."""
    found: list[str] = []
    for name in sorted(wrong):
        if not wrong[name]:
            return [*found, f".{name}: field not declared in schema"]
        found += _after(f".{name}", wrong[name])
    return found


def _after(path: str, found: Problems) -> Problems:
    return [path + each for each in found]


def _typed(field: PlacedField, containers: tuple[str, ...], value: object, kind: FieldType) -> Problems:
    """Return the problems of a field's value, each starting with its path."""
    if containers:
        if not isinstance(value, list if containers[0] == "list" else dict):
            return [f": expected {containers[0]}, got &{{{go_map(value)}}}"]
        if isinstance(value, list):
            return _items(field, containers[1:], value, kind)
        return _members(field, containers[1:], cast("dict[str, object]", value), kind)
    type_name = field.facts.type
    if type_name in _TEXTS:
        return _of_json_type("string", value)
    if type_name == "bool":
        return _of_json_type("boolean", value)
    if type_name in _NUMBERS:
        return _of_json_type("numeric", value)
    if type_name in _SCALARS and isinstance(value, dict | list):
        return [f": expected any scalar, got &{{{go_map(value)}}}"]
    if isinstance(value, dict):
        return _struct(placed_fields(type_name), value, kind, is_typed=True)
    return [f": expected map, got &{{{go_map(value)}}}"] if field.is_struct else _NONE


def _of_json_type(json_type: str, value: object) -> Problems:
    """Return the problem of a value that is not of a type; see `FieldType.json_type`."""
    if json_type == "string":
        return _NONE if isinstance(value, str) else [f": expected string, got {_ANY}{{Value:{_literal(value)}}}"]
    if json_type == "numeric":
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return _NONE if fits else [f": expected numeric (int or float), got {_GO_TYPES[type(value)]}"]
    if json_type == "any scalar":
        fits = not isinstance(value, dict | list)
    else:
        fits = isinstance(value, {"boolean": bool, "map": dict, "list": list}[json_type])
    return _NONE if fits else [f": expected {json_type}, got &{{{go_map(value)}}}"]


def _problems_of_custom_value(value: object, kind: FieldType) -> Problems:
    """Return the problems of a value in a custom resource."""
    found = _of_json_type(kind.json_type, value)
    return found if found or not isinstance(value, dict | list) else _untyped(value, kind.content or kind)


def _untyped(value: dict[str, object] | list[object], kind: FieldType) -> Problems:
    """Return the problems of a value whose OpenAPI type is unknown: only fields and list items are checked."""
    if isinstance(value, list):
        return _items(None, (), value, kind)
    return _struct(_NO_FIELDS, value, kind) if kind.merge is _STRUCT or kind.merge is _MAP else _NONE


def _inside(field: PlacedField | None, containers: tuple[str, ...], item: object, kind: FieldType) -> Problems:
    if item is None:
        return _NONE
    if field is not None:
        return _typed(field, containers, item, kind)
    if kind.json_type:
        return _problems_of_custom_value(item, kind)
    return _untyped(item, kind) if isinstance(item, dict | list) else _NONE


def _members(field: PlacedField, containers: tuple[str, ...], value: dict[str, object], kind: FieldType) -> Problems:
    found: list[str] = []
    element = kind.element or UNTYPED
    for name, item in value.items():
        problems = _inside(field, containers, item, element)
        if problems:
            found += _after(f".{name}", problems)
    return found


def _items(field: PlacedField | None, containers: tuple[str, ...], value: list[object], kind: FieldType) -> Problems:
    """Return the problems of a list: of its items, and of their identities if the list is merged item by item."""
    found: list[str] = []
    element, seen = kind.element or UNTYPED, set()
    merges, checks = kind.merge is _KEYED or kind.merge is _SET, field is not None or element is not LEAF
    for index, item in enumerate(value):
        if merges:
            problem = _anonymous(kind, item)
            if problem:
                return [*found, f": element {index}: {problem}"]
            identity = element_of(kind, item)
            if identity in seen:
                found.append(f": duplicate entries for key {_element(kind, item, index)}")
            seen.add(identity)
        problems = _inside(field, containers, item, element) if checks else _NONE
        if problems:
            found += _after(_element(kind, item, index), problems)
    return found


def _anonymous(kind: FieldType, item: object) -> str:
    """Return why an item cannot be identified in a merged list, or an empty string."""
    if kind.merge is _SET:
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        return "associative list without keys has an element that's an explicit null" if item is None else ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if any(key in item or kind.key_defaults.get(key) is not None for key in kind.keys):
        return ""
    keys = " ".join(json.dumps(key) for key in kind.keys)
    why = "(and doesn't have default values for any key fields)"
    return f"associative list with keys has an element that omits all key fields [{keys}] {why}"


def _element(kind: FieldType, item: object, index: int) -> str:
    """Return the path element of an item in the form used in errors, such as ``[name="c"]``."""
    if kind.merge is _KEYED and isinstance(item, dict):
        keys = [(key, item.get(key, kind.key_defaults.get(key))) for key in kind.keys]
        return "[" + ",".join(f"{key}={_shown(value)}" for key, value in keys if value is not None) + "]"
    return f"[={_shown(item)}]" if kind.merge is _SET else f"[{index}]"


def _shown(value: object) -> str:
    """Return a key of a list item as structured merge prints it."""
    if isinstance(value, dict):
        return "".join(f"{name}={_shown(item)}" for name, item in sorted(value.items()))
    if isinstance(value, list):
        return "[" + ",".join(map(_shown, value)) + "]"
    return quote(value) if isinstance(value, str) else json.dumps(value)


def _literal(value: object) -> str:
    """Return a value as Go's verb ``%#v`` prints it."""
    if isinstance(value, dict):
        members = ", ".join(f"{quote(name)}:{_literal(item)}" for name, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_literal, value))}}}"
    if isinstance(value, str):
        return quote(value)
    return "interface {}(nil)" if value is None else json.dumps(value)
