"""Validation of the schemas of custom resources: they must be structural, and may use only parts of OpenAPI v3."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.custom_values import validate_default
from bayplan.apiserver.validation.engine import Causes, go_value, sent
from bayplan.apiserver.validation.expressions import ExpressionBudget
from bayplan.apiserver.validation.field_paths import normalized_path
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.schema_expressions import check_expressions, rule_causes_of_default
from bayplan.base.go_regexp import RegexpError, WorkBudget, WorkBudgetExceeded
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts, texts, with_sorted_keys
from bayplan.objects.selectors import quote

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_ROOT_FIELDS = frozenset((
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
    "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required",
    "items", "properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
))  # fmt: skip
_SHOWN = shown_as("apiextensions.JSONSchemaProps")
_SHOWN_ROOT_FIELDS = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations]"
)
_NOT_SUPPORTED = (
    ("id", "id"), ("additionalItems", "additionalItems"), ("patternProperties", "patternProperties"),
    ("definitions", "definitions"), ("dependencies", "dependencies"), ("$ref", "$ref"),
)  # fmt: skip
_NESTED_EMPTY = (
    ("type", "must be empty to be structural"), ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"), ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"), ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)  # fmt: skip
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def check_schema(schema: object, path: str, out: Causes, *, has_status: bool) -> None:
    """Check the schema of one version.

    Args:
        schema: ``openAPIV3Schema``.
        path: the path of the enclosing field.
        out: receives the errors.
        has_status: whether the status subresource is enabled.
    """
    if not isinstance(schema, dict):
        return
    here = f"{path}.openAPIV3Schema"
    if has_status:
        _root_with_status(schema, here, out)
    if schema.get("nullable"):
        out.append(forbidden_value(f"{here}.nullable", "nullable cannot be true at the root"))
    refused: Causes = []
    _open_api(schema, here, refused, is_root=True, in_meta=False)
    # Upstream checks the structure only of a schema that it can convert.
    structural = [] if any(each.message.endswith(_UNCONVERTED) for each in refused) else _structure(schema, here)
    out += structural
    out += refused
    if not structural:
        check_expressions(schema, here, refused, out)


_UNCONVERTED = (" is not supported", "items must be a schema object and not an array")
"""Ends of the errors about parts of a schema that upstream cannot convert to a structural schema."""


def _structure(schema: Document, path: str) -> Causes:
    """Return the errors of a schema that is not structural, or of its defaults."""
    found: Causes = []
    try:
        _invariants(schema, "root", path, found, WorkBudget())
    except WorkBudgetExceeded:
        text = "the regular expressions of the schema take more work than a request may"
        found.append(forbidden_value(path, text))
    _check_declared(schema, schema, path, path, found)
    found.sort(key=lambda cause: (cause.field, cause.message))
    if not found:
        # Other checks refuse defaults of metadata.
        properties = {name: item for name, item in part(schema, "properties").items() if name not in _META}
        _defaults({**schema, "properties": properties}, path, found, ExpressionBudget())
    return found


def _root_with_status(schema: Document, path: str, out: Causes) -> None:
    for name in schema:
        if name == "type" and schema["type"] and schema["type"] != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            out.append(invalid_value(f"{path}.type", go_value(schema["type"]), detail))
            return
        if name not in _ROOT_FIELDS and schema[name] not in (None, False, [], {}, ""):
            detail = (
                f"only {_SHOWN_ROOT_FIELDS} fields are allowed at the root of the schema if the status subresource "
            )
            out.append(invalid_value(path, _SHOWN(schema), f"{detail}is enabled"))
            return


# --- structural schemas -----------------------------------------------------------------------------------------------

_NO_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def _invariants(schema: Document, level: str, path: str, out: Causes, budget: WorkBudget) -> None:
    kind = schema.get("type") or ""
    items, more = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        out.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        _invariants(items, "item", f"{path}.items", out, budget)
    properties = part(schema, "properties")
    for name in sorted(properties):
        _invariants(part(properties, name), "field", f"{path}.properties[{name}]", out, budget)
    if more is not None:
        if level == "root":
            out.append(forbidden_value(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(more, dict):
            _invariants(more, "field", f"{path}.additionalProperties", out, budget)
    _extensions(schema, path, out)
    _value_validation(schema, level, path, out, budget)
    _type(schema, level, path, out)
    _meta_properties(schema, level, path, out)


def _extensions(schema: Document, path: str, out: Causes) -> None:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                detail = "must be false if x-kubernetes-int-or-string is true"
                out.append(invalid_value(f"{path}.{name}", "true", detail))


def _type(schema: Document, level: str, path: str, out: Causes) -> None:
    kind, embedded = schema.get("type") or "", schema.get("x-kubernetes-embedded-resource")
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    here = f"{path}.type"
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        out.append(invalid_value(here, go_value(kind), detail) if kind else required(here, detail))
    elif not kind and not untyped:
        out.append(required(here, _NO_TYPE[level]))
    if embedded and schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        out.append(forbidden_value(f"{path}.additionalProperties", detail))
    if level == "root" and kind and kind != "object":
        out.append(invalid_value(here, go_value(kind), "must be object at the root"))
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        detail = "must not be empty if x-kubernetes-embedded-resource is true without "
        out.append(required(f"{path}.properties", f"{detail}x-kubernetes-preserve-unknown-fields"))


def _meta_properties(schema: Document, level: str, path: str, out: Causes) -> None:
    properties = part(schema, "properties")
    checked = level == "root" or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        found = properties.get(name)
        if checked and isinstance(found, dict) and (found.get("type") or "") != wanted:
            at = f"{path}.properties[{name}].type"
            out.append(invalid_value(at, go_value(found.get("type") or ""), f"must be {wanted}"))
    metadata = properties.get("metadata")
    if level == "root" and isinstance(metadata, dict):
        inner = {name: item for name, item in metadata.items() if name not in ("type", "default")}
        if set(part(inner, "properties")) <= {"name", "generateName"}:
            inner.pop("properties", None)
        if any(item not in (None, False, [], {}, "") for item in inner.values()):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            out.append(forbidden_value(f"{path}.properties[metadata]", detail))


def _check_declared(rules: Document, schema: object, path: str, here: str, out: Causes) -> None:
    """Report fields that ``allOf``, ``anyOf``, ``oneOf`` or ``not`` of the root restrict, but that no schema declares.

    Args:
        rules: the schema with the restrictions.
        schema: the schema of the same value outside of restrictions; None if there is none.
        path: the path of `schema`.
        here: the path of `rules`.
        out: receives the errors.
    """
    if not isinstance(schema, dict):
        out.append(required(path, f"because it is defined in {here}"))
        return
    nested = [(each, f"{here}.{name}[{at}]") for name in _BRANCHES for at, each in enumerate(parts(rules, name))]
    if isinstance(rules.get("not"), dict):
        nested.append((part(rules, "not"), f"{here}.not"))
    for each, at in nested:
        _check_declared(each, schema, path, at, out)
        if isinstance(each.get("items"), dict):
            _check_declared(part(each, "items"), schema.get("items"), f"{path}.items", f"{at}.items", out)
        properties, declared = part(each, "properties"), part(schema, "properties")
        for name in properties:
            field = f"properties[{name}]"
            _check_declared(part(properties, name), declared.get(name), f"{path}.{field}", f"{at}.{field}", out)


_BRANCHES = ("allOf", "anyOf", "oneOf")


def _value_validation(
    schema: Document, level: str, path: str, out: Causes, budget: WorkBudget, *, skip_any: bool = False
) -> None:
    any_of = parts(schema, "anyOf")
    if not skip_any and any_of != _INT_OR_STRING:
        for index, inner in enumerate(any_of):
            _nested(inner, level, f"{path}.anyOf[{index}]", out, budget)
    for index, inner in enumerate(parts(schema, "allOf")):
        skips = index == 0 and parts(inner, "anyOf") == _INT_OR_STRING
        _nested(inner, level, f"{path}.allOf[{index}]", out, budget, skip_any=skips)
    for index, inner in enumerate(parts(schema, "oneOf")):
        _nested(inner, level, f"{path}.oneOf[{index}]", out, budget)
    if isinstance(schema.get("not"), dict):
        _nested(part(schema, "not"), level, f"{path}.not", out, budget)
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and pattern:
        try:
            budget.compile(pattern)
        except RegexpError as problem:
            why = f"must be a valid regular expression, but isn't: {problem}"
            out.append(invalid_value(f"{path}.pattern", quote(pattern), why))


def _nested(
    schema: Document, level: str, path: str, out: Causes, budget: WorkBudget, *, skip_any: bool = False
) -> None:
    """Check a schema within ``anyOf``, ``oneOf``, ``allOf`` or ``not``. Such a schema can only restrict values."""
    _value_validation(schema, level, path, out, budget, skip_any=skip_any)
    if isinstance(schema.get("items"), dict):
        _nested(part(schema, "items"), level, f"{path}.items", out, budget)
    properties = part(schema, "properties")
    for name in sorted(properties):
        _nested(part(properties, name), "field", f"{path}.properties[{name}]", out, budget)
    for name, detail in _NESTED_EMPTY:
        if schema.get(name) not in (None, False, "", []):
            out.append(forbidden_value(f"{path}.{name}", detail))
    if "metadata" in properties:
        detail = "must not be specified in a nested context"
        out.append(forbidden_value(f"{path}.properties[metadata]", detail))


def _defaults(schema: Document, path: str, out: Causes, budget: ExpressionBudget) -> None:
    """Report defaults that are invalid by their own schemas or rules.

    Args:
        schema: the schema.
        path: its path.
        out: receives the errors.
        budget: see `rule_causes_of_default`.
    """
    default = schema.get("default")
    if default is not None:
        if _is_unknown(schema, default):
            out.append(
                invalid_value(f"{path}.default", json_text(with_sorted_keys(default)), "must not have unknown fields")
            )
        own: Document = {**schema, "default": None}
        causes = [
            cause._replace(field="" if cause.field in ("", "<nil>") else f".{cause.field.lstrip('.')}")
            for cause in validate_default(own, default)
        ]
        for cause in causes or rule_causes_of_default(own, default, budget):
            out.append(cause._replace(field=f"{path}.default{cause.field}"))
    for name, inner, at in _children(schema, path):
        # As in upstream, the defaults of values of maps are not checked.
        if name != "additionalProperties":
            _defaults(inner, at, out, budget)


def _is_unknown(schema: Document, value: object) -> bool:
    """Return whether a default contains a field that pruning would drop."""
    if isinstance(value, list):
        return any(_is_unknown(part(schema, "items"), item) for item in value)
    if not isinstance(value, dict):
        return False
    properties, more = part(schema, "properties"), schema.get("additionalProperties")
    for name, item in value.items():
        if schema.get("x-kubernetes-embedded-resource") and name in _META:
            continue
        inner = properties.get(name, more)
        if isinstance(inner, dict):
            if _is_unknown(inner, item):
                return True
        elif inner is not True and not schema.get("x-kubernetes-preserve-unknown-fields"):
            return True
    return False


def has_defaults(schema: object) -> bool:
    """Return whether a schema or any schema within it has a default."""
    if isinstance(schema, list):
        return any(has_defaults(each) for each in schema)
    if not isinstance(schema, dict):
        return False
    inner = [each for name in ("properties", "patternProperties") for each in part(schema, name).values()]
    inner += [schema.get(name) for name in ("items", "allOf", "anyOf", "oneOf", "not", "additionalProperties")]
    return schema.get("default") is not None or any(has_defaults(each) for each in inner)


def _children(schema: Document, path: str) -> Iterator[tuple[str, Document, str]]:
    properties = part(schema, "properties")
    for name in sorted(properties):
        yield "properties", part(properties, name), f"{path}.properties[{name}]"
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield name, part(schema, name), f"{path}.{name}"


# --- OpenAPI ----------------------------------------------------------------------------------------------------------


def _open_api(schema: Document, path: str, out: Causes, *, is_root: bool, in_meta: bool) -> None:
    _standard(schema, path, out, in_meta=in_meta)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        out.append(forbidden_value(f"{path}.uniqueItems", detail))
    more, properties = schema.get("additionalProperties"), part(schema, "properties")
    if more is not None and more is not True and properties:
        detail = "additionalProperties and properties are mutual exclusive"
        out.append(forbidden_value(f"{path}.additionalProperties", detail))
    if isinstance(more, dict):
        _open_api(more, f"{path}.additionalProperties", out, is_root=False, in_meta=in_meta)
    embedded = schema.get("x-kubernetes-embedded-resource")
    for name in sorted(properties):
        inner, at = part(properties, name), f"{path}.properties[{name}]"
        meta = in_meta or (bool(is_root or embedded) and name in _META)
        if is_root and name in _META:
            _no_default(inner, at, name, out)
        _open_api(inner, at, out, is_root=False, in_meta=meta)
    if isinstance(schema.get("not"), dict):
        _open_api(part(schema, "not"), f"{path}.not", out, is_root=False, in_meta=in_meta)
    for name in ("allOf", "oneOf", "anyOf"):
        for index, inner in enumerate(parts(schema, name)):
            _open_api(inner, f"{path}.{name}[{index}]", out, is_root=False, in_meta=in_meta)
    if isinstance(schema.get("items"), dict):
        _open_api(part(schema, "items"), f"{path}.items", out, is_root=False, in_meta=in_meta)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        out.append(invalid_value(f"{path}.x-kubernetes-preserve-unknown-fields", "false", "must be true or undefined"))
    _map_type(schema, path, out)
    _list_type(schema, path, out)
    _rules(schema, path, out)


def _no_default(schema: Document, path: str, name: str, out: Causes) -> None:
    """Report the defaults within metadata, apiVersion or kind of the whole object."""
    if schema.get("default") is not None:
        out.append(forbidden_value(f"{path}.default", f"must not be set in top-level {name}"))
    for _, inner, at in _children(schema, path):
        _no_default(inner, at, name, out)


def _standard(schema: Document, path: str, out: Causes, *, in_meta: bool) -> None:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        out.append(not_supported(f"{path}.type", go_value(kind), _TYPES))
    for name, shown in _NOT_SUPPORTED:
        if schema.get(name) not in (None, "", {}) or (name == "dependencies" and sent(schema, name) is not None):
            out.append(forbidden_value(f"{path}.{name}", f"{shown} is not supported"))
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        out.append(forbidden_value(f"{path}.type", detail))
    if isinstance(schema.get("items"), list):
        out.append(forbidden_value(f"{path}.items", "items must be a schema object and not an array"))
    if in_meta and schema.get("x-kubernetes-embedded-resource"):
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


def _rules(schema: Document, path: str, out: Causes) -> None:
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
        if field_path and normalized_path(schema, field_path) is None:
            out.append(invalid_value(f"{here}.fieldPath", quote(field_path), "must be a valid path"))
