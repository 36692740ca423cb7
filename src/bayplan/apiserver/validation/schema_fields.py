"""The parts of OpenAPI v3 that the schemas of custom resources may use.

Source: ValidateCustomResourceDefinitionOpenAPISchema and NewStructural of k8s.io/apiextensions-apiserver v0.36.3.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes, go_value, sent
from bayplan.apiserver.validation.field_paths import normalized_path
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
META = ("metadata", "kind", "apiVersion")
"""Fields of every object, whose schemas are restricted."""
_NOT_SUPPORTED = (
    ("id", "id"), ("additionalItems", "additionalItems"), ("patternProperties", "patternProperties"),
    ("definitions", "definitions"), ("dependencies", "dependencies"), ("$ref", "$ref"),
)  # fmt: skip
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_PRESERVES = "x-kubernetes-preserve-unknown-fields"
_UNCONVERTIBLE = (
    ("id", "id"), ("$schema", "schema"), ("$ref", "$ref"), ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"), ("additionalItems", "additionalItems"), ("definitions", "definitions"),
)  # fmt: skip
"""Fields of schemas that upstream cannot convert, with their names in the message, in its order."""


def conversion_problem(schema: object, known: dict[int, str]) -> str:
    """Return why upstream cannot convert a schema to a structural schema, or an empty text if it can.

    Args:
        schema: the schema.
        known: earlier results for the schemas of a definition, by `id`; receives the new ones.
    """
    if not isinstance(schema, dict):
        return ""
    if id(schema) not in known:
        known[id(schema)] = _find_conversion_problem(schema, known)
    return known[id(schema)]


def _find_conversion_problem(schema: Document, known: dict[int, str]) -> str:
    for name, shown in _UNCONVERTIBLE:
        if schema.get(name) not in (None, "", {}):
            return f"OpenAPIV3Schema '{shown}' is not supported"
    if schema.get(_PRESERVES) is False:
        return f"internal error: '{_PRESERVES}' must be true or undefined"
    inner: list[object] = [each for name in ("allOf", "anyOf", "oneOf") for each in parts(schema, name)]
    inner += [schema.get("not"), schema.get("items")]
    properties = part(schema, "properties")
    inner += [properties[name] for name in sorted(properties)]
    inner.append(schema.get("additionalProperties"))
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next((found for each in inner if (found := conversion_problem(each, known))), "")


class _Place(NamedTuple):
    """The place of a schema in its definition.

    Attributes:
        conversions: results of `conversion_problem`.
        is_root: whether it is the schema of the whole object.
        in_meta: whether it is inside the schema of `META` fields.
        no_default: why it must not have a default; empty if it may.
    """

    conversions: dict[int, str]
    is_root: bool = False
    in_meta: bool = False
    no_default: str = ""


def open_api_causes(schema: Document, path: str, conversions: dict[int, str]) -> Causes:
    """Return the errors about the parts of OpenAPI that a schema of a whole object uses.

    Args:
        schema: the schema.
        path: its path.
        conversions: earlier results of `conversion_problem` for this schema; receives the new ones.
    """
    found: Causes = []
    _open_api(schema, path, found, _Place(conversions, is_root=True))
    return found


def _open_api(schema: object, path: str, out: Causes, place: _Place) -> None:
    if not isinstance(schema, dict):
        return
    _standard(schema, path, out, place)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        out.append(forbidden_value(f"{path}.uniqueItems", detail))
    more, properties = schema.get("additionalProperties"), part(schema, "properties")
    if more is not None and more is not True and properties:
        detail = "additionalProperties and properties are mutual exclusive"
        out.append(forbidden_value(f"{path}.additionalProperties", detail))
    inside = place._replace(is_root=False)
    in_map = "must not be set inside additionalProperties applying to object metadata"
    _open_api(
        more, f"{path}.additionalProperties", out, inside._replace(no_default=in_map) if place.in_meta else inside
    )
    has_meta = bool(place.is_root or schema.get("x-kubernetes-embedded-resource"))
    for name in sorted(properties):
        inner = inside._replace(in_meta=True) if has_meta and name in META else inside
        if place.is_root and name in META:
            inner = inner._replace(no_default=f"must not be set in top-level {name}")
        _open_api(properties[name], f"{path}.properties[{name}]", out, inner)
    _open_api(schema.get("not"), f"{path}.not", out, inside)
    for name in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(parts(schema, name)):
            _open_api(each, f"{path}.{name}[{index}]", out, inside)
    for name, declared in sorted(part(schema, "definitions").items()):
        _open_api(declared, f"{path}.definitions[{name}]", out, inside)
    _open_api(schema.get("items"), f"{path}.items", out, inside)
    for index, each in enumerate(parts(schema, "items")):
        _open_api(each, f"{path}.items[{index}]", out, inside)
    for name, needed in sorted(part(schema, "dependencies").items()):
        _open_api(needed, f"{path}.dependencies[{name}]", out, inside)
    if schema.get(_PRESERVES) is False:
        out.append(invalid_value(f"{path}.{_PRESERVES}", "false", "must be true or undefined"))
    _map_type(schema, path, out)
    _list_type(schema, path, out)
    _rules(schema, path, out, place.conversions)


def _standard(schema: Document, path: str, out: Causes, place: _Place) -> None:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        out.append(not_supported(f"{path}.type", go_value(kind), _TYPES))
    if place.no_default and schema.get("default") is not None:
        out.append(forbidden_value(f"{path}.default", place.no_default))
    for name, shown in _NOT_SUPPORTED:
        if schema.get(name) not in (None, "", {}) or (name == "dependencies" and sent(schema, name) is not None):
            out.append(forbidden_value(f"{path}.{name}", f"{shown} is not supported"))
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        out.append(forbidden_value(f"{path}.type", detail))
    if isinstance(schema.get("items"), list):
        out.append(forbidden_value(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_meta and schema.get("x-kubernetes-embedded-resource"):
        detail = "must not be used inside of resource meta"
        out.append(forbidden_value(f"{path}.x-kubernetes-embedded-resource", detail))


def _typed(schema: Document, wanted: str, extension: str, path: str, out: Causes) -> bool:
    """Return whether a schema has the type that an extension requires; report an error if not."""
    kind, detail = schema.get("type") or "", f"must be {wanted} if {extension} is specified"
    if kind == wanted:
        return True
    out.append(invalid_value(f"{path}.type", go_value(kind), detail) if kind else required(f"{path}.type", detail))
    return False


def _map_type(schema: Document, path: str, out: Causes) -> None:
    name = "x-kubernetes-map-type"
    found = schema.get(name)
    if found is None:
        return
    _typed(schema, "object", name, path, out)
    if found not in ("atomic", "granular"):
        out.append(not_supported(f"{path}.{name}", go_value(found), ("atomic", "granular")))


def _list_type(schema: Document, path: str, out: Causes) -> None:
    name, keys_name = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
    found, keys, items = schema.get(name), texts(schema, keys_name), part(schema, "items")
    if found is not None and _typed(schema, "array", name, path, out) and found == "set" and items:
        _set_items(items, path, out)
    if found is not None and found not in ("atomic", "set", "map"):
        out.append(not_supported(f"{path}.{name}", go_value(found), ("atomic", "set", "map")))
    detail = "must be map if x-kubernetes-list-map-keys is non-empty"
    if keys and found is None:
        out.append(required(f"{path}.{name}", detail))
    elif keys and found != "map":
        out.append(invalid_value(f"{path}.{name}", go_value(found), detail))
    if found == "map":
        _map_items(schema, keys, path, out)
    if found in ("set", "map") and items:
        _unnullable(items, str(found), keys, path, out)


def _set_items(items: Document, path: str, out: Causes) -> None:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    lists, maps = items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type")
    if items.get("type") == "array" and lists not in (None, "atomic"):
        out.append(invalid_value(f"{path}.items.x-kubernetes-list-type", go_value(lists), detail))
    if items.get("type") == "object" and maps != "atomic":
        out.append(invalid_value(f"{path}.items.x-kubernetes-map-type", go_value(lists), detail))


def _map_items(schema: Document, keys: list[str], path: str, out: Causes) -> None:
    items, here = schema.get("items"), f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        out.append(required(here, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        out.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        return
    kind = items.get("type") or ""
    if kind != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        out.append(invalid_value(f"{path}.items.type", go_value(kind), detail))
        return
    for index, key in enumerate(keys):
        inner = part(items, "properties").get(key)
        if not isinstance(inner, dict):
            out.append(invalid_value(here, go_value(keys), "entries must all be names of item properties"))
        elif inner.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            out.append(invalid_value(f"{path}.items.properties[{key}].type", go_value(kind), detail))
        if key in keys[:index]:
            out.append(invalid_value(here, go_value(keys), "must not contain duplicate entries"))


def _unnullable(items: Document, list_type: str, keys: list[str], path: str, out: Causes) -> None:
    if items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        out.append(forbidden_value(f"{path}.items.nullable", detail))
    for key in keys if list_type == "map" else ():
        inner, at = part(items, "properties").get(key), f"{path}.items.properties[{key}]"
        if not isinstance(inner, dict):
            continue
        start = "this property is in x-kubernetes-list-map-keys, so it "
        if key not in texts(items, "required") and inner.get("default") is None:
            out.append(required(f"{at}.default", f"{start}must have a default or be a required property"))
        if inner.get("nullable"):
            out.append(forbidden_value(f"{at}.nullable", f"{start}cannot be nullable"))


def _rules(schema: Document, path: str, out: Causes, conversions: dict[int, str]) -> None:
    for index, rule in enumerate(parts(schema, "x-kubernetes-validations")):
        here = f"{path}.x-kubernetes-validations[{index}]"
        text, message = str(rule.get("rule") or ""), str(rule.get("message") or "")
        if not text.strip():
            out.append(required(f"{here}.rule", "rule is not specified"))
        elif message and not message.strip():
            out.append(invalid_value(f"{here}.message", quote(message), "must be non-empty if specified"))
        elif "\n" in message.strip():
            out.append(invalid_value(f"{here}.message", quote(message), "must not contain line breaks"))
        elif "\n" in text.strip() and not message.strip():
            out.append(required(f"{here}.message", "message must be specified if rule contains line breaks"))
        expression = str(rule.get("messageExpression") or "")
        if expression and not expression.strip():
            detail = "messageExpression must be non-empty if specified"
            out.append(required(f"{here}.messageExpression", detail))
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            out.append(not_supported(f"{here}.reason", go_value(rule["reason"]), _REASONS))
        field_path = str(rule.get("fieldPath") or "")
        if field_path and not field_path.strip():
            out.append(invalid_value(f"{here}.fieldPath", quote(field_path), "must be non-empty if specified"))
        if "\n" in field_path:
            out.append(invalid_value(f"{here}.fieldPath", quote(field_path), "must not contain line breaks"))
        if field_path and normalized_path(schema, field_path) is None and not conversion_problem(schema, conversions):
            out.append(invalid_value(f"{here}.fieldPath", quote(field_path), "must be a valid path"))
