"""Custom resources: served once their definition is stored. The schema prunes, defaults and validates their objects."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence

from msgspec.structs import replace

from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.kinds.custom_types import OBJECT_META, PRESERVE, object_type
from bayplan.apiserver.kinds.default_functions import stored_versions
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part, raise_generation
from bayplan.apiserver.model.errors import Cause, forbidden, invalid_value, too_large
from bayplan.apiserver.model.object_meta import check_metadata
from bayplan.apiserver.model.resources import Resource, ResourceRegistry, SchemaRules, version_rank
from bayplan.apiserver.patches.strategic import go_type
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.apiserver.validation.custom_values import (
    EMBEDDED,
    has_rules,
    structure_causes,
    validate_custom_status,
    value_causes,
)
from bayplan.base.go_text.json import go_map
from bayplan.base.plain_data import Document, part, parts, same_json, texts

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
"""The verbs that discovery lists once the definition is being deleted."""
_META_FIELDS = ("apiVersion", "kind", "metadata")


def serve(registry: ResourceRegistry, definition: Document) -> None:
    """Serve the served versions of a CustomResourceDefinition, replacing those of an earlier definition."""
    spec = part(definition, "spec")
    names, group = part(spec, "names"), str(spec.get("group"))
    stop_serving(registry, definition)
    for version in parts(spec, "versions"):
        if version.get("served"):
            resource, entries = _resource(group, spec, names, version)
            resource.terminating = bool(part(definition, "metadata").get("deletionTimestamp"))
            if resource.terminating:
                entries[0] = replace(entries[0], verbs=_TERMINATING_VERBS)
            registry.put_custom(group, str(version["name"]), resource, entries)


def set_stored_schema(registry: ResourceRegistry, spec: Document, revision: int) -> None:
    """Set the schema of the stored version, in effect since a revision, for all served versions of a definition."""
    group, plural = str(spec.get("group")), str(part(spec, "names").get("plural"))
    versions = parts(spec, "versions")
    schema = next((part(each, "schema", "openAPIV3Schema") for each in versions if each.get("storage")), None)
    for version in versions:
        resource = registry.find(group, str(version.get("name")), plural)
        if resource is not None:
            resource.stored_schema, resource.schema_revision = schema or None, revision


def stop_serving(registry: ResourceRegistry, definition: Document) -> None:
    """Stop serving all versions of a CustomResourceDefinition."""
    spec = part(definition, "spec")
    plural = str(part(spec, "names").get("plural"))
    for resource in registry.all():
        if resource.custom is not None and resource.group == spec.get("group") and resource.name == plural:
            registry.remove_custom(resource.group, resource.version, plural)


def _resource(group: str, spec: Document, names: Document, version: Document) -> tuple[Resource, list[ResourceFacts]]:
    plural, kind = str(names.get("plural")), str(names.get("kind"))
    stored = next((str(each["name"]) for each in parts(spec, "versions") if each.get("storage")), "")
    namespaced = spec.get("scope") == "Namespaced"
    facts = ResourceFacts(
        plural, str(names.get("singular") or kind.lower()), namespaced, kind, _VERBS,
        short_names=tuple(texts(names, "shortNames")), categories=tuple(texts(names, "categories")),
        storage_version_hash=_version_hash(group, stored, kind),
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
        fields=object_type(schema),
        subresources=subresources,
        custom=version,
        deprecation=_deprecation(group, spec, version, kind),
        rules=_rules(schema),
        own_list_kind=str(names.get("listKind") or ""),
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


def prune(resource: Resource | None, value: Document, *, preserve_nulls: bool = False) -> tuple[Document, list[str]]:
    """Return an object without unknown fields and with defaults, and the paths of the dropped fields, sorted.

    Without a schema, the object is returned unchanged.

    Args:
        resource: the resource.
        value: the object.
        preserve_nulls: whether to keep nulls of fields that are not nullable and have no default, as an apply does.
    """
    schema: Document = {}
    if resource is not None and resource.custom is not None:
        schema = part(resource.custom, "schema", "openAPIV3Schema")
    if not schema:
        return dict(value), []
    dropped: list[str] = []
    body = {name: item for name, item in value.items() if name not in _META_FIELDS}
    defaults = _Defaults(preserve_nulls=preserve_nulls)
    pruned = _prune(schema, body, "", dropped, defaults)
    assert isinstance(pruned, dict)
    dropped = [*sorted(dropped), *sorted(defaults.dropped_metadata)]
    return {name: value[name] for name in _META_FIELDS if name in value} | pruned, dropped


class PruningConverter:
    """The conversion strategy None between versions with different schemas: fields that a version lacks are dropped.

    Args:
        served: the schema of the served version.
        stored: the schema of the stored version.
    """

    def __init__(self, served: Document, stored: Document) -> None:
        self._served, self._stored = served, stored

    def to_storage(self, document: Document) -> Document:
        """Return an object in the stored version, with the defaults that upstream sets when it reads the object."""
        return _converted(self._stored, document, _Defaults())

    def from_storage(self, document: Document) -> Document:
        """Convert a stored object to the served version."""
        return _converted(self._served, document, _NoDefaults())


def through_storage(resource: Resource, document: Document) -> Document:
    """Return an object without the fields that its stored version lacks, as in the response to a dry run."""
    if isinstance(resource.converter, PruningConverter):
        return resource.converter.from_storage(resource.converter.to_storage(document))
    return document


def _converted(schema: Document, document: Document, defaults: _Defaults) -> Document:
    body = {name: item for name, item in document.items() if name not in _META_FIELDS}
    pruned = _prune(schema, body, "", [], defaults)
    assert isinstance(pruned, dict)
    return {name: document[name] for name in _META_FIELDS if name in document} | pruned


def as_read(schema: Document, document: Document) -> Document:
    """Return a stored object that is older than its schema, with the schema's defaults and without unknown fields."""
    return _converted(schema, document, _Defaults())


MAX_DEFAULTS = 500_000
"""Maximum number of defaults set in one object. A schema of 1 MB could set 10,000 defaults in each of 100,000 items."""


class _Defaults:
    """The properties with a default, determined once per schema, and the number of defaults that may still be set.

    Attributes:
        preserve_nulls: see `prune`.
        dropped_metadata: the paths of unknown metadata of embedded objects, which upstream reports last.
    """

    __slots__ = ("_known", "_left", "dropped_metadata", "preserve_nulls")

    def __init__(self, *, preserve_nulls: bool = False) -> None:
        self.preserve_nulls = preserve_nulls
        self.dropped_metadata: list[str] = []
        self._known: dict[int, list[tuple[str, Document]]] = {}
        self._left = MAX_DEFAULTS

    def of(self, schema: Document) -> list[tuple[str, Document]]:
        """Return the properties of a schema that have a default, as names and schemas, and deduct their number from the limit.

        Raises:
            ApiError: the object gets too many defaults.
        """
        found = self._known.get(id(schema))
        if found is None:
            properties = part(schema, "properties").items()
            found = [(name, each) for name, each in properties if isinstance(each, dict) and "default" in each]
            self._known[id(schema)] = found
        self._count(len(found))
        return found

    def of_null(self, schema: Document) -> object:
        """Return the default that replaces a null of a list or a map, or None."""
        if schema.get("nullable") or "default" not in schema:
            return None
        self._count(1)
        return schema["default"]

    def _count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise too_large(f"the schema adds more than {MAX_DEFAULTS} defaults to the object")


class _NoDefaults(_Defaults):
    """No defaults: a conversion adds none."""

    def of(self, schema: Document) -> list[tuple[str, Document]]:
        """Return an empty list."""
        return []

    def of_null(self, schema: Document) -> object:
        """Return None."""
        return None


_NO_SCHEMA: Document = {"type": "null"}


def _prune(schema: Document, value: object, path: str, dropped: list[str], known: _Defaults) -> object:
    if isinstance(value, dict):
        properties, more = part(schema, "properties"), schema.get("additionalProperties")
        embedded = bool(schema.get(EMBEDDED))
        out: Document = {}
        for name, item in value.items():
            here = f"{path}.{name}" if path else name
            inner = properties.get(name, more)
            if embedded and name in _META_FIELDS:
                out[name] = _embedded(name, item, here, known.dropped_metadata)
            elif isinstance(inner, dict):
                found = item if item is not None or name in properties else known.of_null(inner)
                is_typed = bool(inner.get("type") or inner.get("x-kubernetes-int-or-string"))
                kept = known.preserve_nulls and "default" not in inner and is_typed
                if found is not None or kept or inner.get("nullable"):
                    out[name] = _prune(inner, found, here, dropped, known)
            elif inner is True or schema.get(PRESERVE) or not schema:
                out[name] = item
            else:
                dropped.append(here)
        for name, inner in known.of(schema):
            if name not in out:
                out[name] = _prune(inner, inner["default"], f"{path}.{name}", dropped, known)
        return out
    if isinstance(value, list):
        inner = schema.get("items")
        # Items of a list in place of another type have no schema, so that all their fields are unknown.
        items = inner if isinstance(inner, dict) else {} if schema.get(PRESERVE) or not schema else _NO_SCHEMA
        found_items = [known.of_null(items) if item is None else item for item in value]
        return [_prune(items, item, f"{path}[{index}]", dropped, known) for index, item in enumerate(found_items)]
    return value


def _embedded(name: str, value: object, path: str, dropped: list[str]) -> object:
    """Return the metadata, version or kind of an embedded object, the metadata without unknown fields.

    Raises:
        DecodeError: it cannot be decoded.
    """
    if name != "metadata" and not isinstance(value, str):
        raise DecodeError(f"{path}: Invalid value: {json.dumps(value)}: must be a string")
    if name != "metadata":
        return value
    if value is None:
        return {}
    if not isinstance(value, dict):
        problem = f"json: cannot unmarshal {go_kind(value)} into Go value of type v1.ObjectMeta"
        raise DecodeError(f"{path}: Invalid value: {json.dumps(value)}: {problem}")
    shape = shape_of(OBJECT_META)
    try:
        read = shape.read(value)
    except DecodeError as problem:
        text = str(problem).replace("ObjectMeta.metadata.", "ObjectMeta.")
        shown = json.dumps(value, separators=(",", ":"), sort_keys=True)
        raise DecodeError(f"{path}: Invalid value: {shown}: {text}") from problem
    dropped += [f"{path}.{each}" for each in shape.unknown_fields(value)]
    return {name: item for name, item in read.items() if name in value} if isinstance(read, dict) else value


"""The field manager of a definition's status."""


class DefinitionStrategy(Strategy):
    """CustomResourceDefinitions.

    A second write immediately after the create, or after a change of the names, accepts the names; see
    `bayplan.apiserver.kinds.definition_status`.
    """

    counts_generations = True
    unconditional_update = False

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set missing names, and a status without conditions or accepted names."""
        super().prepare_create(context, document)
        _fill_in(document)
        document["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored_versions(document),
        }

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Set missing names, and add the storage version to the stored versions."""
        super().prepare_update(context, new, old)
        _fill_in(new)
        status = {**part(new, "status")}
        before = texts(status, "storedVersions")
        status["storedVersions"] = before + [name for name in stored_versions(new) if name not in before]
        new["status"] = status


DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
"""Table of the definitions."""


def _fill_in(document: Document) -> None:
    names = part(document, "spec", "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"


BLOCKING = frozenset(
    ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)
"""Reasons of schema errors that prevent the CEL rules from running, because expressions could fail on such values."""
_ENVELOPE = ("apiVersion", "kind", "metadata")


class CustomStrategy(Strategy):
    """Objects of custom resources."""

    counts_generations = True
    unconditional_update = False
    keeps_metadata_of_status = True

    def admit(self, context: Context, document: Document) -> None:
        """Deny a new object whose definition is being deleted, unless it is imported."""
        resource = context.resource
        if resource.terminating and not context.imported:
            why = "create not allowed while custom resource definition is terminating"
            name = str(part(document, "metadata").get("name") or "")
            raise forbidden(resource.name, resource.group, name, why)

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore a separate status, and increment the generation if anything else except the metadata changed."""
        if context.resource.has_status:
            copy_part(new, old, "status")
        if not same_json(_body(new), _body(old)):
            raise_generation(new, old)

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new object."""
        return _causes(context, document, None)

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update."""
        return _causes(context, new, old)

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of a status update."""
        causes = validate_custom_status(_schema(context), new, old)
        return _with_rules(context, new, old, causes + _scale_problems(context, new, _STATUS_PATHS))

    def warnings(self, context: Context, document: Document, before: Document | None) -> list[str]:
        """Return the warnings about an object, including those about violated rules whose value did not change."""
        found = super().warnings(context, document, before)
        rules = context.resource.rules
        return found if rules is None or before is None else [*found, *rules.check(document, before)[1]]


def _causes(context: Context, new: Document, old: Document | None) -> list[Cause]:
    """Return the errors of a new object, or of an update, in upstream's order."""
    schema, value, before = _schema(context), _body(new), None if old is None else _body(old)
    causes = value_causes(schema, value, before)
    causes += _scale_problems(context, new, _SPEC_PATHS + _STATUS_PATHS)
    causes += structure_causes(schema, value, before)
    # The errors of the metadata prevent the rules from running, too.
    others = check_metadata(part(new, "metadata"), context.resource.namespaced, "path") if old is None else []
    return _with_rules(context, new, old, causes, others)


_SPEC_PATHS, _STATUS_PATHS = ("specReplicasPath",), ("statusReplicasPath", "labelSelectorPath")


def _scale_problems(context: Context, document: Document, names: tuple[str, ...]) -> list[Cause]:
    """Return the errors of the fields that the scale subresource reads."""
    scale = part(context.resource.custom or {}, "subresources", "scale")
    causes: list[Cause] = []
    for name in names:
        where = str(scale.get(name) or "")
        if not where:
            continue
        zero, kind = ('""', str) if name == "labelSelectorPath" else ("0", int)
        found, problem = _at_path(document, where.removeprefix(".").split("."), kind)
        if problem:
            causes.append(invalid_value(where, zero, problem))
        elif isinstance(found, int) and found < 0:
            causes.append(invalid_value(where, str(found), "should be a non-negative integer"))
        elif isinstance(found, int) and found >= 2**31:
            causes.append(invalid_value(where, str(found), f"should be less than or equal to {2**31 - 1}"))
    return causes


def _at_path(document: Document, names: list[str], kind: type) -> tuple[object, str]:
    """Return the value at a path, or why Go's accessor of unstructured objects cannot read it."""
    value: object = document
    for index, name in enumerate(names):
        if not isinstance(value, dict):
            path = ".".join(names[: index + 1])
            text = f".{path} accessor error: {go_map(value)} is of the type {go_type(value)}, expected map[string]interface{{}}"
            return None, text
        if name not in value or (value[name] is None and index + 1 < len(names)):
            return None, ""
        value = value[name]
    if isinstance(value, kind) and not isinstance(value, bool):
        return value, ""
    wanted = "string" if kind is str else "int64"
    return (
        None,
        f".{'.'.join(names)} accessor error: {go_map(value)} is of the type {go_type(value)}, expected {wanted}",
    )


_NOT_CHECKED = "some validation rules were not checked because the object was invalid; "
_NOT_CHECKED += "correct the existing errors to complete validation"


def _with_rules(
    context: Context, new: Document, old: Document | None, causes: list[Cause], others: Sequence[Cause] = ()
) -> list[Cause]:
    """Return the schema errors of an object, and the errors of its CEL rules if these and other errors let them run."""
    rules = context.resource.rules
    if rules is None:
        return causes
    if any(cause.reason in BLOCKING for cause in (*causes, *others)):
        return [*causes, invalid_value("<nil>", "null", _NOT_CHECKED)]
    return [*causes, *rules.check(new, old)[0]]


def _schema(context: Context) -> Document:
    return part(context.resource.custom or {}, "schema", "openAPIV3Schema")


def _body(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in _ENVELOPE}
