"""Structural schemas as CEL types with the possible sizes of values, and JSON values as CEL values.

Sources: k8s.io/apiserver v0.36.3, pkg/cel/common;
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from bayplan.base.plain_data import Document, part, texts
from bayplan.cel.estimates import Path
from bayplan.cel.function_costs import Size
from bayplan.cel.problems import RunProblem
from bayplan.cel.times import parse_duration, parse_timestamp
from bayplan.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, CelType, list_of, map_of
from bayplan.cel.values import CelMap, UnorderedList, contains, equal

MAX_REQUEST_BYTES = 3 << 20
_META_FIELDS: Document = {"name": {"type": "string"}, "generateName": {"type": "string"}}
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE = "x-kubernetes-list-type"
_RESERVED = frozenset((
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
))  # fmt: skip
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")
_NAME = re.compile(r"[A-Za-z_./-][\w./-]*", re.ASCII)
_TEXT_FORMATS: Mapping[str, tuple[CelType, int, int]] = {
    "duration": (DURATION, 3, 32),
    "date": (TIMESTAMP, 12, 12),
    "date-time": (TIMESTAMP, 21, 32),
}
"""By string format: the CEL type, the minimum size in JSON, and the maximum size in characters."""
_SCALARS: Mapping[str, tuple[CelType, int]] = {"boolean": (BOOL, 4), "number": (DOUBLE, 1), "integer": (INT, 1)}


@dataclass
class SchemaType:
    """The CEL type of a schema's values, with their sizes.

    Attributes:
        type: the CEL type.
        least_bytes: the minimum size of a value in JSON.
        most: the maximum size of a value in characters, items or entries.
        element: the type of a list's items or a map's values; None for other types.
        fields: the types of an object's fields, by their name in expressions.
    """

    type: CelType
    least_bytes: int
    most: int = 0
    element: SchemaType | None = None
    fields: dict[str, SchemaType] = field(default_factory=dict)

    def size_at(self, path: Path) -> Size | None:
        """Return the possible sizes of a nested value, or None if the path is unknown."""
        at: SchemaType | None = self
        for name in path:
            if at is None:
                return None
            if name in ("@items", "@values"):
                at = at.element
            elif name == "@keys":
                at = _KEY if at.type.kind == "map" else None
            else:
                at = at.fields.get(name)
        return None if at is None else Size(0, at.most)

    def objects(self) -> dict[str, Mapping[str, CelType]]:
        """Return the field types of this and all nested object types, by type name."""
        found: dict[str, Mapping[str, CelType]] = {}
        if self.type.kind == "object":
            fields = {name: each.type for name, each in self.fields.items()}
            # A reserved word can be used unescaped after a dot.
            words = {word: fields[f"__{word}__"] for word in _RESERVED if f"__{word}__" in fields}
            found[self.type.name] = {**words, **fields}
        for each in (*self.fields.values(), *([self.element] if self.element is not None else ())):
            found |= each.objects()
        return found


_KEY = SchemaType(STRING, 2)


def escaped(name: str) -> str | None:
    """Return the name by which expressions access a property, or None if they cannot access it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def with_object_fields(schema: Document) -> Document:
    """Return the schema of a complete object with apiVersion, kind and metadata added."""
    properties = part(schema, "properties")
    if isinstance(part(properties, "metadata").get("properties"), dict):
        return schema
    more: Document = {
        "kind": {"type": "string"},
        "apiVersion": {"type": "string"},
        "metadata": {"type": "object", "properties": _META_FIELDS},
    }
    return {**schema, "properties": {**properties, **more}}


def schema_type(schema: Document, name: str = "selfType0", *, is_object: bool = False) -> SchemaType | None:
    """Return the CEL type of a schema's values.

    Args:
        schema: a structural schema.
        name: the name of the type if it is an object.
        is_object: whether it is the schema of a complete object, with metadata.

    Returns:
        The type, or None if expressions cannot access values of the schema.
    """
    if schema.get(_INT_OR_STRING):
        longest = _number(schema, "maxLength")
        return SchemaType(DYN, 1, MAX_REQUEST_BYTES - 2 if longest is None else longest * 4)
    if is_object or schema.get(_EMBEDDED):
        schema = with_object_fields(schema)
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            element = schema_type(cast("Document", items), f"{name}.@idx") if isinstance(items, dict) else None
            if element is None:
                return None
            most = _number(schema, "maxItems")
            fallback = (MAX_REQUEST_BYTES - 2) // (element.least_bytes + 1)
            return SchemaType(list_of(element.type), 2, fallback if most is None else most, element)
        case "object":
            return _object_type(schema, name)
        case "string":
            return _text_type(schema)
        case str() as kind if kind in _SCALARS:
            return SchemaType(*_SCALARS[kind])
    return None


def _object_type(schema: Document, name: str) -> SchemaType | None:
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        element = schema_type(cast("Document", more), f"{name}.@elem")
        if element is None:
            return None
        most = _number(schema, "maxProperties")
        fallback = (MAX_REQUEST_BYTES - 2) // (element.least_bytes + 6)
        return SchemaType(map_of(STRING, element.type), 2, fallback if most is None else most, element)
    found = SchemaType(CelType("object", name), 2)
    needed = set(texts(schema, "required"))
    for key, inner in part(schema, "properties").items():
        if not isinstance(inner, dict):
            continue
        kind = schema_type(inner, f"{name}.{key}")
        if kind is None:
            continue
        written = escaped(key)
        if written is not None:
            found.fields[written] = kind
        if key in needed and inner.get("default") is None:
            found.least_bytes += len(key.encode()) + kind.least_bytes + 4
    return found


def _text_type(schema: Document) -> SchemaType:
    form, longest = str(schema.get("format") or ""), _number(schema, "maxLength")
    if form in _TEXT_FORMATS:
        return SchemaType(*_TEXT_FORMATS[form])
    if form == "byte":
        return SchemaType(BYTES, 2, MAX_REQUEST_BYTES - 2 if longest is None else longest)
    if longest is not None:
        return SchemaType(STRING, 2, longest * 4)
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return SchemaType(STRING, 2, max((len(each.encode()) for each in choices if isinstance(each, str)), default=0))
    return SchemaType(STRING, 2, MAX_REQUEST_BYTES - 2)


def _number(schema: Document, name: str) -> int | None:
    found = schema.get(name)
    return max(0, int(found)) if isinstance(found, int | float) else None


# --- values -----------------------------------------------------------------------------------------------------------


class _SetList(UnorderedList):
    """A CEL list with `x-kubernetes-list-type: set`, in which order does not matter."""

    def equals(self, other: list[object]) -> bool:
        return len(self) == len(other) and all(contains(self, each) for each in other)

    def joined(self, other: list[object]) -> list[object]:
        return _SetList([*self, *(each for each in other if not contains(self, each))])


class _MapList(UnorderedList):
    """A CEL list with `x-kubernetes-list-type: map`, whose items are matched by keys."""

    def __init__(self, items: list[object], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def equals(self, other: list[object]) -> bool:
        known = {self._key(each): each for each in self}
        return len(self) == len(other) and all(
            self._key(each) in known and equal(known[self._key(each)], each) for each in other
        )

    def joined(self, other: list[object]) -> list[object]:
        merged = {self._key(each): each for each in self}
        merged.update({self._key(each): each for each in other})
        return _MapList(list(merged.values()), self.keys)

    def _key(self, item: object) -> tuple[object, ...]:
        return tuple(item.find(key)[1] if isinstance(item, CelMap) else None for key in self.keys)


def schema_value(value: object, schema: Document, *, is_object: bool = False) -> object:
    """Return the CEL value of a JSON value.

    Args:
        value: the value.
        schema: the structural schema of the value.
        is_object: whether the value is a complete object.

    Raises:
        RunProblem: the value does not match the schema.
    """
    if value is None:
        if schema.get("nullable"):
            return None
        raise RunProblem("invalid data, got null for schema with nullable=false")
    if schema.get(_INT_OR_STRING):
        if isinstance(value, int | str) and not isinstance(value, bool):
            return value
        raise RunProblem("invalid data, expected XIntOrString value to be either a string or integer")
    if isinstance(value, dict):
        return _object_value(cast("Document", value), with_object_fields(schema) if is_object else schema)
    if isinstance(value, list):
        return _list_value(value, schema)
    match schema.get("type"):
        case "string":
            return _text_value(str(value), str(schema.get("format") or ""))
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case "integer" if isinstance(value, float) and value.is_integer():
            return int(value)
    return value


def _object_value(value: Document, schema: Document) -> CelMap:
    if schema.get(_EMBEDDED):
        schema = with_object_fields(schema)
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and not schema.get("properties"):
        return CelMap.of_texts({name: schema_value(item, cast("Document", more)) for name, item in value.items()})
    found: dict[str, object] = {}
    for name, inner in part(schema, "properties").items():
        written = escaped(name)
        if name in value and written is not None and isinstance(inner, dict):
            found[written] = schema_value(value[name], inner)
            if name in _RESERVED:
                found[name] = found[written]
    return CelMap.of_texts(found)


def _list_value(value: list[object], schema: Document) -> list[object]:
    items = part(schema, "items")
    found = [schema_value(item, items) for item in value]
    match schema.get(_LIST_TYPE):
        case "set":
            return _SetList(found)
        case "map":
            keys = texts(schema, "x-kubernetes-list-map-keys")
            return _MapList(found, tuple(written for key in keys if (written := escaped(key)) is not None))
    return found


def _text_value(value: str, form: str) -> object:
    match form:
        case "duration":
            return parse_duration(value)
        case "date":
            return parse_timestamp(f"{value}T00:00:00Z")
        case "date-time":
            return parse_timestamp(value.replace("t", "T").replace(" ", "T", 1))
        case "byte":
            try:
                return base64.b64decode(value)
            except (binascii.Error, ValueError):
                raise RunProblem(f"Invalid byte formatted string {value}") from None
    return value
