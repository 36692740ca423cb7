"""Custom resources: served from the moment their definition is stored; objects pruned and defaulted by its schema."""

from __future__ import annotations

from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge, field_type
from bayplan.apiserver.kinds.strategy import part, parts, texts
from bayplan.apiserver.rest.errors import too_large
from bayplan.apiserver.rest.resources import Resource, ResourceRegistry, SchemaRules
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.base.plain_data import Document

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_META_FIELDS = ("apiVersion", "kind", "metadata")


def serve(registry: ResourceRegistry, definition: Document) -> None:
    """Serve the versions of a definition."""
    spec = part(definition, "spec")
    names, group = part(spec, "names"), str(spec.get("group"))
    stop_serving(registry, definition)
    for version in parts(spec, "versions"):
        if version.get("served"):
            resource, entries = _resource(group, spec, names, version)
            registry.put_custom(group, str(version["name"]), resource, entries)


def stop_serving(registry: ResourceRegistry, definition: Document) -> None:
    """Stop serving the versions of a definition."""
    spec = part(definition, "spec")
    plural = str(part(spec, "names").get("plural"))
    for resource in registry.all():
        if resource.custom is not None and resource.group == spec.get("group") and resource.name == plural:
            registry.remove_custom(resource.group, resource.version, plural)


def _resource(group: str, spec: Document, names: Document, version: Document) -> tuple[Resource, list[ResourceFacts]]:
    plural, kind = str(names.get("plural")), str(names.get("kind"))
    namespaced = spec.get("scope") == "Namespaced"
    facts = ResourceFacts(
        plural, str(names.get("singular") or kind.lower()), namespaced, kind, _VERBS,
        short_names=tuple(texts(names, "shortNames")), categories=tuple(texts(names, "categories")),
    )  # fmt: skip
    subresources: dict[str, ResourceFacts] = {}
    declared = part(version, "subresources")
    if "status" in declared:
        subresources["status"] = ResourceFacts(f"{plural}/status", "", namespaced, kind, ("get", "patch", "update"))
    if "scale" in declared:
        verbs = ("get", "patch", "update")
        subresources["scale"] = ResourceFacts(f"{plural}/scale", "", namespaced, "Scale", verbs, "autoscaling", "v1")
    schema = part(version, "schema", "openAPIV3Schema")
    resource = Resource(
        group=group,
        version=str(version["name"]),
        name=plural,
        kind=kind,
        namespaced=namespaced,
        facts=facts,
        table=f"{group}/{plural}",
        fields=_object_type(schema),
        subresources=subresources,
        custom=version,
        rules=_rules(schema),
    )
    return resource, [facts, *subresources.values()]


def _rules(schema: Document) -> SchemaRules | None:
    """Return the rules of a schema; the language takes a while to import, and most schemas have none."""
    if not has_rules(schema):
        return None
    from bayplan.apiserver.kinds import schema_rules

    return schema_rules.SchemaRules(schema)


def has_rules(schema: object) -> bool:
    """Return whether a schema, or one in it, has rules."""
    if not isinstance(schema, dict):
        return False
    inner = [*part(schema, "properties").values(), schema.get("items"), schema.get("additionalProperties")]
    return bool(schema.get("x-kubernetes-validations")) or any(has_rules(each) for each in inner)


def _object_type(schema: Document) -> FieldType:
    """Return how objects merge: by their schema, with metadata as everywhere."""
    result = _field_type(schema) if schema else FieldType(Merge.STRUCT)
    result.fields["apiVersion"] = result.fields["kind"] = LEAF
    result.fields["metadata"] = field_type(_OBJECT_META)
    return result


def _field_type(schema: Document) -> FieldType:
    """Return how values of a structural schema merge."""
    kind = schema.get("type")
    if schema.get("x-kubernetes-map-type") == "atomic":
        return FieldType(Merge.LEAF)
    if kind == "object":
        properties = part(schema, "properties")
        result = FieldType(Merge.STRUCT if properties else Merge.MAP)
        result.fields = {
            name: _field_type(inner if isinstance(inner, dict) else {}) for name, inner in properties.items()
        }
        inner = schema.get("additionalProperties")
        result.element = _field_type(inner) if isinstance(inner, dict) else UNTYPED
        return result
    if kind == "array":
        how = schema.get("x-kubernetes-list-type")
        result = FieldType({"map": Merge.KEYED_LIST, "set": Merge.SET}.get(str(how), Merge.LEAF))
        result.is_list = True
        result.element = _field_type(part(schema, "items"))
        result.keys = tuple(sorted(texts(schema, "x-kubernetes-list-map-keys")))
        return result
    return UNTYPED if schema.get(_PRESERVE) or not kind else FieldType(Merge.LEAF)


def prune(resource: Resource | None, value: Document) -> tuple[Document, list[str]]:
    """Return an object without the fields that its schema lacks, with defaults, and the paths of what was dropped."""
    schema: Document = {}
    if resource is not None and resource.custom is not None:
        schema = part(resource.custom, "schema", "openAPIV3Schema")
    if not schema:
        return dict(value), []
    dropped: list[str] = []
    body = {name: item for name, item in value.items() if name not in _META_FIELDS}
    pruned = _prune(schema, body, "", dropped, _Defaults())
    assert isinstance(pruned, dict)
    return {name: value[name] for name in _META_FIELDS if name in value} | pruned, dropped


MAX_DEFAULTS = 500_000
"""Defaults that one object may get. A schema of 1 MB could give each of 100,000 items 10,000 of them."""


class _Defaults:
    """The properties with a default, looked for once in a schema however many values it has."""

    __slots__ = ("_known", "_left")

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[str, Document]]] = {}
        self._left = MAX_DEFAULTS

    def of(self, schema: Document) -> list[tuple[str, Document]]:
        """Return the properties of a schema that have a default.

        Raises:
            ApiError: the object has got too many.
        """
        found = self._known.get(id(schema))
        if found is None:
            properties = part(schema, "properties").items()
            found = [(name, each) for name, each in properties if isinstance(each, dict) and "default" in each]
            self._known[id(schema)] = found
        self._left -= len(found)
        if self._left < 0:
            raise too_large(f"the schema adds more than {MAX_DEFAULTS} defaults to the object")
        return found


def _prune(schema: Document, value: object, path: str, dropped: list[str], known: _Defaults) -> object:
    if isinstance(value, dict):
        properties, more = part(schema, "properties"), schema.get("additionalProperties")
        out: Document = {}
        for name, item in value.items():
            here = f"{path}.{name}" if path else name
            inner = properties.get(name, more)
            if isinstance(inner, dict):
                if item is not None or inner.get("nullable") or not inner.get("type"):
                    out[name] = _prune(inner, item, here, dropped, known)
            elif inner is True or schema.get(_PRESERVE) or not schema:
                out[name] = item
            else:
                dropped.append(here)
        for name, inner in known.of(schema):
            if name not in out:
                out[name] = _prune(inner, inner["default"], f"{path}.{name}", dropped, known)
        return out
    if isinstance(value, list):
        items = part(schema, "items")
        return [_prune(items, item, f"{path}[{index}]", dropped, known) for index, item in enumerate(value)]
    return value
