"""Validation of the schemas of custom resources, which must be structural.

`bayplan.apiserver.validation.schema_fields` checks which parts of OpenAPI v3 they use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, required
from bayplan.apiserver.validation.custom_values import EMBEDDED, validate_default
from bayplan.apiserver.validation.engine import Causes, copied, go_value
from bayplan.apiserver.validation.expressions import ExpressionBudget
from bayplan.apiserver.validation.internal_json import internal
from bayplan.apiserver.validation.schema_expressions import check_expressions, rule_causes_of_default
from bayplan.apiserver.validation.schema_fields import META, conversion_problem, open_api_causes
from bayplan.base.go_regexp import RegexpError, WorkBudget, WorkBudgetExceeded
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts, with_sorted_keys
from bayplan.objects.selectors import quote

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_TYPE = "apiextensions.JSONSchemaProps"
_ROOT_FIELDS = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
    "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items",
    "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
"""The fields of Go's struct that the root may have if the status subresource is enabled, in the order of messages."""
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
    here, count = f"{path}.openAPIV3Schema", len(out)
    if has_status:
        _root_with_status(schema, here, out)
    if schema.get("nullable"):
        out.append(forbidden_value(f"{here}.nullable", "nullable cannot be true at the root"))
    conversions: dict[int, str] = {}
    unconverted = conversion_problem(schema, conversions)
    structural = [] if unconverted else _structure(schema, here)
    refused = open_api_causes(schema, here, conversions)
    out += structural
    out += refused
    if unconverted and not out[count:]:
        out.append(invalid_value(here, '""', unconverted))
    elif not unconverted and not structural:
        check_expressions(schema, here, refused, out)


def _structure(schema: Document, path: str) -> Causes:
    """Return the errors of a schema that is not structural, or of its defaults."""
    found: Causes = []
    try:
        _invariants(schema, "root", path, found, WorkBudget())
    except WorkBudgetExceeded:
        text = "the regular expressions of the schema take more work than a request may"
        found.append(forbidden_value(path, text))
    _check_declared(schema, schema, path, path, found)
    found.sort(key=lambda cause: f"{cause.field}: {cause.message}")
    if not found:
        # Other checks refuse defaults of metadata.
        properties = {name: item for name, item in part(schema, "properties").items() if name not in META}
        _defaults({**schema, "properties": properties, EMBEDDED: True}, path, found, ExpressionBudget())
    return found


def _root_with_status(schema: Document, path: str, out: Causes) -> None:
    """Report the first field of Go's struct that a root must not have if the status subresource is enabled."""
    root = copied(schema)
    root.pop("properties", None)  # These are allowed, and may be large.
    for name, found in cast("Document", internal(_TYPE, root)).items():
        if found is None or found is False or found == "":
            continue
        if name == "Type" and found != "object":
            detail = "allowed as the type at the root of the schema if the status subresource is enabled"
            out.append(invalid_value(f"{path}.type", go_value(found), f'only "object" is {detail}'))
            return
        if name not in _ROOT_FIELDS:
            detail = "fields are allowed at the root of the schema if the status subresource is enabled"
            shown = json_text(internal(_TYPE, schema))
            out.append(invalid_value(path, shown, f"only [{' '.join(_ROOT_FIELDS)}] {detail}"))
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
        for name in (_PRESERVE, "x-kubernetes-embedded-resource"):
            if schema.get(name):
                detail = "must be false if x-kubernetes-int-or-string is true"
                out.append(invalid_value(f"{path}.{name}", "true", detail))


def _type(schema: Document, level: str, path: str, out: Causes) -> None:
    kind, embedded = schema.get("type") or "", schema.get("x-kubernetes-embedded-resource")
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get(_PRESERVE)
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
    if embedded and not schema.get(_PRESERVE) and not schema.get("properties"):
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
        items = part(schema, "items")
        if schema.get(_PRESERVE):
            items = {**items, _PRESERVE: True}
        return any(_is_unknown(items, item) for item in value)
    if not isinstance(value, dict):
        return False
    properties, more = part(schema, "properties"), schema.get("additionalProperties")
    for name, item in value.items():
        if schema.get("x-kubernetes-embedded-resource") and name in META:
            continue
        inner = properties.get(name, more)
        if isinstance(inner, dict):
            if _is_unknown(inner, item):
                return True
        elif inner is not True and not schema.get(_PRESERVE):
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
