"""Custom resources: served once their definition is stored. The schema prunes, defaults and validates their objects."""

from __future__ import annotations

import base64
import hashlib

from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge, field_type
from bayplan.apiserver.kinds.strategy import Context, Strategy
from bayplan.apiserver.model.errors import Cause, invalid_value, too_large
from bayplan.apiserver.model.resources import Resource, ResourceRegistry, SchemaRules, version_rank
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.apiserver.validation.custom_values import has_rules, validate_custom
from bayplan.base.plain_data import Document, part, parts, texts

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_META_FIELDS = ("apiVersion", "kind", "metadata")


def serve(registry: ResourceRegistry, definition: Document) -> None:
    """Serve the served versions of a CustomResourceDefinition, replacing those of an earlier definition."""
    spec = part(definition, "spec")
    names, group = part(spec, "names"), str(spec.get("group"))
    stop_serving(registry, definition)
    for version in parts(spec, "versions"):
        if version.get("served"):
            resource, entries = _resource(group, spec, names, version)
            registry.put_custom(group, str(version["name"]), resource, entries)


def stop_serving(registry: ResourceRegistry, definition: Document) -> None:
    """Stop serving all versions of a CustomResourceDefinition."""
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
        storage_version_hash=_version_hash(group, str(version["name"]), kind) if version.get("storage") else "",
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
        deprecation=_deprecation(group, spec, version, kind),
        rules=_rules(schema),
    )
    return resource, [facts, *subresources.values()]


def _deprecation(group: str, spec: Document, version: Document, kind: str) -> str:
    """Return the warning about a deprecated version, or "" for other versions.

    Without the definition's own text, the warning names the best newer version.
    """
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    name = str(version["name"])
    better = [
        other
        for each in parts(spec, "versions")
        if each.get("served") and not each.get("deprecated")
        if version_rank(other := str(each["name"])) < version_rank(name)
    ]
    text = f"{group}/{name} {kind} is deprecated"
    return f"{text}; use {group}/{min(better, key=version_rank)} {kind}" if better else text


def _version_hash(group: str, version: str, kind: str) -> str:
    """Return the hash of a storage version for discovery, by which clients notice that it has changed."""
    return base64.b64encode(hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()


def _rules(schema: Document) -> SchemaRules | None:
    """Return the CEL rules in a schema, or None if it has none.

    The CEL package is imported on demand: importing it is slow, and most schemas have no rules.
    """
    if not has_rules(schema):
        return None
    from bayplan.apiserver.validation import schema_rules

    return schema_rules.SchemaRules(schema)


def _object_type(schema: Document) -> FieldType:
    """Return the merge type of a custom resource's objects, including the standard metadata."""
    result = _field_type(schema) if schema else FieldType(Merge.STRUCT)
    result.fields["apiVersion"] = result.fields["kind"] = LEAF
    result.fields["metadata"] = field_type(_OBJECT_META)
    return result


def _field_type(schema: Document) -> FieldType:
    """Return the merge type of the values that a structural schema describes."""
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
    """Return an object without unknown fields and with defaults, and the paths of the dropped fields.

    Without a schema, the object is returned unchanged.
    """
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
"""Maximum number of defaults set in one object. A schema of 1 MB could set 10,000 defaults in each of 100,000 items."""


class _Defaults:
    """The properties with a default, determined once per schema, and the number of defaults that may still be set."""

    __slots__ = ("_known", "_left")

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[str, Document]]] = {}
        self._left = MAX_DEFAULTS

    def of(self, schema: Document) -> list[tuple[str, Document]]:
        """Return the properties of a schema that have a default, as names and schemas, and count them.

        Raises:
            ApiError: the object gets too many defaults.
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


MANAGER = "kube-apiserver"
"""The field manager of a definition's status."""


class DefinitionStrategy(Strategy):
    """CustomResourceDefinitions.

    A second write immediately after the create accepts the names; see `accepted_status`.
    """

    counts_generations = True
    unconditional_update = False

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set missing names, and a status without conditions and accepted names."""
        super().prepare_create(context, document)
        _fill_in(document)
        document["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": _stored(document),
        }

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Set missing names and the accepted names, and add the storage version to the stored versions."""
        super().prepare_update(context, new, old)
        _fill_in(new)
        status = {**part(new, "status")}
        before = texts(status, "storedVersions")
        status["acceptedNames"] = dict(part(new, "spec", "names"))
        status["storedVersions"] = before + [name for name in _stored(new) if name not in before]
        new["status"] = status


def accepted_status(definition: Document, now: str) -> Document | None:
    """Return the status of a definition whose names are accepted, or None if the definition is already established."""
    status = part(definition, "status")
    if any(each.get("type") == "Established" for each in parts(status, "conditions")):
        return None
    return {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": dict(part(definition, "spec", "names")),
        "storedVersions": texts(status, "storedVersions") or _stored(definition),
    }


def _fill_in(document: Document) -> None:
    names = part(document, "spec", "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"


def _stored(document: Document) -> list[str]:
    return [str(version.get("name")) for version in parts(part(document, "spec"), "versions") if version.get("storage")]


def _condition(name: str, reason: str, message: str, now: str) -> Document:
    return {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


BLOCKING = frozenset(
    ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)
"""Reasons of schema errors that prevent the CEL rules from running, because expressions could fail on such values."""
_ENVELOPE = ("apiVersion", "kind", "metadata")


class CustomStrategy(Strategy):
    """Objects of custom resources."""

    counts_generations = True
    unconditional_update = False

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new object: those of the schema and those of its CEL rules."""
        return _with_rules(context, document, None, validate_custom(_schema(context), _body(document)))

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update: those of the schema and those of its CEL rules."""
        return _with_rules(context, new, old, validate_custom(_schema(context), _body(new), _body(old)))

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of a status update. The same schema describes the status."""
        return self.validate_update(context, new, old)

    def warnings(self, context: Context, document: Document, before: Document | None) -> list[str]:
        """Return the warnings about an object, including those about violated rules whose value did not change."""
        found = super().warnings(context, document, before)
        rules = context.resource.rules
        return found if rules is None or before is None else [*found, *rules.check(document, before)[1]]


_NOT_CHECKED = "some validation rules were not checked because the object was invalid; "
_NOT_CHECKED += "correct the existing errors to complete validation"


def _with_rules(context: Context, new: Document, old: Document | None, causes: list[Cause]) -> list[Cause]:
    """Return the schema errors of an object, and the errors of its CEL rules if the schema errors let them run."""
    rules = context.resource.rules
    if rules is None:
        return causes
    if any(cause.reason in BLOCKING for cause in causes):
        return [*causes, invalid_value("<nil>", "null", _NOT_CHECKED)]
    return [*causes, *rules.check(new, old)[0]]


def _schema(context: Context) -> Document:
    return part(context.resource.custom or {}, "schema", "openAPIV3Schema")


def _body(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in _ENVELOPE}
