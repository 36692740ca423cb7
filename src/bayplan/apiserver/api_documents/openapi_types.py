"""The types of the Kubernetes API as schemas of OpenAPI, without upstream's descriptions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec

from bayplan.apiserver.schema.facts import GoField, api_facts
from bayplan.base.plain_data import Document
from bayplan.formats.schema import FieldFacts, TypeFacts, UnionFacts, schema

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
SCHEMAS, DEFINITIONS = "#/components/schemas/", "#/definitions/"
"""The prefixes of references to types in version 3 and in version 2."""
_ZEROS: dict[str, object] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}
_ALTERNATIVES = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("integer", "string"),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("string", "number"),
}


def type_schemas(names: Iterable[str], prefix: str) -> Document:
    """Return the schemas of types and of all types that they refer to, by name and sorted by it.

    Args:
        names: names of types; unknown ones are ignored.
        prefix: the prefix of references: `SCHEMAS` for version 3, `DEFINITIONS` for version 2.
    """
    types = schema().types
    found: dict[str, TypeFacts] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in types:
            continue
        found[name] = types[name]
        waiting += [each.type for each in types[name].fields.values()]
    return {name: _type_schema(name, facts, prefix) for name, facts in sorted(found.items())}


def reference(name: str, prefix: str) -> Document:
    """Return the schema of a field with a named type. In version 3, other members may appear next to the reference."""
    made: Document = {"$ref": prefix + name}
    return {"allOf": [made]} if prefix == SCHEMAS else made


def _type_schema(name: str, facts: TypeFacts, prefix: str) -> Document:
    if not facts.fields:
        made: Document = {} if facts.scalar == "any" else {"type": facts.scalar or "object"}
        if prefix == SCHEMAS and name in _ALTERNATIVES:
            first, second = _ALTERNATIVES[name]
            made = {"oneOf": [{"type": first}, {"type": second}]}
        if facts.format:
            made["format"] = facts.format
    else:
        go = {each.name: each for each in _go_fields(name)}
        made = {
            "type": "object",
            "properties": {field: _field(each, go.get(field), prefix) for field, each in facts.fields.items()},
        }
        required = [each for each in go if each in facts.fields and facts.fields[each].required]
        required += [field for field, each in facts.fields.items() if each.required and field not in go]
        if required:
            made["required"] = required
        if facts.map_type:
            made["x-kubernetes-map-type"] = facts.map_type
    if facts.unions:
        made["x-kubernetes-unions"] = [_union(each) for each in facts.unions]
    kinds = _kinds_by_type().get(name)
    return made | ({"x-kubernetes-group-version-kind": kinds} if kinds else {})


def _union(facts: UnionFacts) -> Document:
    fields: Document = {each: each[:1].upper() + each[1:] for each in facts.fields}
    made: Document = {"discriminator": facts.discriminator} if facts.discriminator else {}
    return made | {"fields-to-discriminateBy": fields}


def _go_fields(type_name: str) -> list[GoField]:
    """Return the fields of a Go type in their order, those of embedded structs in the place of these."""
    fields: list[GoField] = []
    for each in api_facts().types.get(type_name, ()):
        fields += _go_fields(each.type) if each.inline else [each]
    return fields


@cache
def _kinds_by_type() -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for key, facts in schema().kinds.items():
        *group, version, kind = key.split("/")
        found.setdefault(facts.type, []).append({"group": group[0] if group else "", "kind": kind, "version": version})
    return found


def _field(facts: FieldFacts, go: GoField | None, prefix: str) -> Document:
    default: object = facts.default if prefix == SCHEMAS else msgspec.UNSET
    zero = msgspec.UNSET if prefix != SCHEMAS or go is None else _zero(go, facts)
    made = _innermost(facts, zero, prefix)
    for container in reversed(facts.containers):
        made = {"type": "array", "items": made} if container == "list" else {
            "type": "object", "additionalProperties": made,
        }  # fmt: skip
    if default is msgspec.UNSET and go is not None and not go.containers:
        default = zero if facts.type in schema().types or not go.omit_empty else msgspec.UNSET
    if default is not msgspec.UNSET:
        made["default"] = default
    for name, value in (
        ("x-kubernetes-list-type", facts.list_type),
        ("x-kubernetes-list-map-keys", list(facts.list_map_keys)),
        ("x-kubernetes-map-type", facts.map_type),
        ("x-kubernetes-patch-merge-key", facts.merge_key),
        ("x-kubernetes-patch-strategy", facts.strategy),
    ):
        if value:
            made[name] = value
    return made


def _innermost(facts: FieldFacts, zero: object, prefix: str) -> Document:
    """Return the schema of a field's innermost type. Items of lists and values of maps have their zero value as default."""
    has_default = bool(facts.containers) and zero is not msgspec.UNSET
    if facts.type in schema().types:
        is_alone = facts.containers and not has_default
        made: Document = {"$ref": prefix + facts.type} if is_alone else reference(facts.type, prefix)
    else:
        made = {} if facts.type == "any" else {"type": facts.type}
        if facts.format:
            made["format"] = facts.format
        if facts.enum:
            made["enum"] = list(facts.enum)
    return made | ({"default": zero} if has_default else {})


def _zero(go: GoField, facts: FieldFacts) -> object:
    """Return Go's zero value of a field's innermost type; UNSET if OpenAPI has none for it."""
    named = schema().types.get(facts.type)
    if named is not None:
        return {} if named.fields else msgspec.UNSET
    return _ZEROS.get(go.type, msgspec.UNSET)
