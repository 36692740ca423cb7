"""The schemas of custom resources in OpenAPI, made from their definitions.

Version 2 can express less than structural schemas, so they are simplified there.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#publish-validation-schema-in-openapi
"""

from __future__ import annotations

from typing import cast

from bayplan.apiserver.api_documents.openapi_types import META, SCHEMAS, reference
from bayplan.apiserver.model.resources import Resource
from bayplan.base.plain_data import Document, part, texts

_KEPT = (
    "title", "description", "type", "nullable", "default", "format", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf",
    "enum", "example", "externalDocs", "maxProperties", "minProperties", "required", "allOf", "anyOf", "oneOf", "not",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip
_ONLY_VERSION_3 = ("nullable", "default", "allOf", "anyOf", "oneOf", "not", "example", "externalDocs")
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_ANY_OBJECT = "x-kubernetes-preserve-unknown-fields"


def type_name(resource: Resource, kind: str) -> str:
    """Return the name of a kind's type: its group reversed, its version, and the kind."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, kind])


def list_kind(resource: Resource) -> str:
    """Return the kind of lists of a resource."""
    return resource.own_list_kind or f"{resource.kind}List"


def custom_schemas(resource: Resource, prefix: str) -> Document:
    """Return the schemas of a custom resource and of its list, by the names of their types.

    Args:
        resource: the custom resource in one version.
        prefix: the prefix of references (`SCHEMAS` or `DEFINITIONS`); it determines the version of OpenAPI.
    """
    name = type_name(resource, resource.kind)
    whole = part(cast(Document, resource.custom), "schema", "openAPIV3Schema")
    if prefix != SCHEMAS and (whole.get(_ANY_OBJECT) or whole.get("nullable")):
        made: Document = {"type": "object"}
    else:
        made = _custom_schema(whole, prefix)
        made["properties"] = {**part(made, "properties"), **_envelope("ObjectMeta", prefix)}
    items: Document = {"type": "array", "items": {"$ref": prefix + name}}
    lists: Document = {
        "type": "object",
        "required": ["items"],
        "properties": {**_envelope("ListMeta", prefix), "items": items},
    }
    kinds = ((name, made, resource.kind), (type_name(resource, list_kind(resource)), lists, list_kind(resource)))
    return {
        each: found | {
            "x-kubernetes-group-version-kind": [{"group": resource.group, "kind": kind, "version": resource.version}]
        }
        for each, found, kind in kinds
    }  # fmt: skip


def _envelope(metadata: str, prefix: str) -> Document:
    text: Document = {"type": "string"}
    return {"apiVersion": text, "kind": text, "metadata": reference(META + metadata, prefix)}


def _custom_schema(found: Document, prefix: str) -> Document:
    is_version_3 = prefix == SCHEMAS
    made: Document = {name: found[name] for name in _KEPT if name in found}
    is_open = bool(found.get(_ANY_OBJECT))
    if not is_version_3:
        for name in _ONLY_VERSION_3:
            made.pop(name, None)
        if is_open or found.get("nullable"):
            made.pop("type", None)
            return made
    elif found.get("x-kubernetes-int-or-string") and not (found.get("anyOf") or found.get("allOf")):
        made["anyOf"] = _INTEGER_OR_STRING
    items, values = found.get("items"), found.get("additionalProperties")
    if isinstance(items, dict):
        made["items"] = _custom_schema(items, prefix)
    if isinstance(values, dict):
        made["additionalProperties"] = _custom_schema(values, prefix)
    elif isinstance(values, bool):
        made["additionalProperties"] = values
    if "properties" in found:
        made["properties"] = {
            name: _custom_schema(cast(Document, each), prefix) for name, each in part(found, "properties").items()
        }
    if found.get("x-kubernetes-embedded-resource"):
        made["properties"] = {**part(made, "properties"), **_envelope("ObjectMeta", prefix)}
        made["required"] = [*texts(made, "required"), "kind", "apiVersion"]
    return made
