"""The merge types of custom resources: what structured merge knows of their schemas."""

from __future__ import annotations

from bayplan.apiserver.fields.field_type import UNTYPED, FieldType, Merge, field_type
from bayplan.apiserver.validation.custom_values import EMBEDDED
from bayplan.base.plain_data import Document, part, texts

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def _type_of(merge: Merge, json_type: str) -> FieldType:
    result = FieldType(merge)
    result.json_type = json_type
    return result


_TEXT = _type_of(Merge.LEAF, "string")
_JSON_TYPES = {"string": "string", "boolean": "boolean", "integer": "numeric", "number": "numeric"}


def object_type(schema: Document) -> FieldType:
    """Return the merge type of a custom resource's objects, including the standard metadata."""
    result = _field_type(schema) if schema else FieldType(Merge.STRUCT)
    _add_metadata(result)
    return result


def _add_metadata(kind: FieldType) -> None:
    kind.fields["apiVersion"] = kind.fields["kind"] = _TEXT
    metadata = _type_of(Merge.STRUCT, "map")
    metadata.fields = dict(field_type(OBJECT_META).fields)
    for name in ("labels", "annotations"):
        metadata.fields[name] = _type_of(Merge.MAP, "map")
        metadata.fields[name].element = _TEXT
    kind.fields["metadata"] = metadata


def _scalar(schema: Document) -> FieldType:
    # Structured merge accepts any scalar in place of a text with a format.
    is_any = schema.get("type") == "string" and schema.get("format") not in (None, "", "byte")
    return _type_of(Merge.LEAF, "any scalar" if is_any else _JSON_TYPES.get(str(schema.get("type")), ""))


def _field_type(schema: Document, *, preserves: bool = False) -> FieldType:
    """Return the merge type of the values that a structural schema describes.

    Args:
        schema: the schema.
        preserves: whether an outer schema preserves unknown fields. Then all inner objects can have unknown fields, too,
            although they are pruned (upstream's pkg/schemaconv/openapi.go of kube-openapi).
    """
    kind, preserves = schema.get("type"), preserves or bool(schema.get(PRESERVE))
    if schema.get("x-kubernetes-map-type") == "atomic":
        result = _type_of(Merge.LEAF, "map")
        result.is_map = True
        result.content = _field_type({**schema, "x-kubernetes-map-type": ""}, preserves=preserves)
        return result
    if kind == "object":
        properties, embedded = part(schema, "properties"), bool(schema.get(EMBEDDED))
        result = _type_of(Merge.STRUCT if properties or embedded else Merge.MAP, "map")
        result.fields = {
            name: _field_type(inner if isinstance(inner, dict) else {}, preserves=preserves)
            for name, inner in properties.items()
        }
        inner = schema.get("additionalProperties")
        if isinstance(inner, dict):
            result.element = _field_type(inner, preserves=preserves)
        elif not properties or inner or preserves:
            result.element = UNTYPED
        if embedded:
            _add_metadata(result)
        return result
    if kind == "array":
        how = schema.get("x-kubernetes-list-type")
        result = _type_of({"map": Merge.KEYED_LIST, "set": Merge.SET}.get(str(how), Merge.LEAF), "list")
        result.is_list = True
        result.element = _field_type(part(schema, "items"), preserves=preserves)
        result.keys = tuple(sorted(texts(schema, "x-kubernetes-list-map-keys")))
        declared = part(schema, "items", "properties")
        result.key_defaults = {
            key: part(declared, key)["default"] for key in result.keys if "default" in part(declared, key)
        }
        return result
    return UNTYPED if schema.get(PRESERVE) or not kind else _scalar(schema)
