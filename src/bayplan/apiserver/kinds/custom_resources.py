"""Custom resources: served once their definition is stored. The schema prunes, defaults and validates their objects."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from bayplan.apiserver.kinds.conditions import has_condition
from bayplan.apiserver.kinds.custom_types import object_type
from bayplan.apiserver.kinds.default_functions import stored_versions
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part, raise_generation
from bayplan.apiserver.model.errors import Cause, forbidden, invalid_value
from bayplan.apiserver.model.object_meta import check_metadata
from bayplan.apiserver.model.resources import Resource, ResourceRegistry, SchemaRules, version_rank
from bayplan.apiserver.patches.strategic import go_type
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.apiserver.validation.custom_values import (
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
_SUBRESOURCE = ResourceFacts(name="", singular_name="", namespaced=False, kind="", verbs=("get", "patch", "update"))
_META_FIELDS = ("apiVersion", "kind", "metadata")


def serve(registry: ResourceRegistry, definition: Document) -> None:
    """Serve the served versions of a CustomResourceDefinition, replacing those of an earlier definition."""
    spec = part(definition, "spec")
    names, group = part(spec, "names"), str(spec.get("group"))
    stop_serving(registry, definition)
    for version in parts(spec, "versions"):
        resource, entries = _resource(group, spec, names, version)
        if not version.get("served"):
            registry.unserved[(group, resource.version, resource.name)] = resource
            continue
        resource.terminating = has_condition(definition, "Terminating", "True")
        if resource.terminating:
            entries[0] = replace(entries[0], verbs=_TERMINATING_VERBS)
        registry.put_custom(group, resource.version, resource, entries)


def stored_version(spec: Document) -> str:
    """Return the version in which the objects of a definition are stored."""
    return next((str(each["name"]) for each in parts(spec, "versions") if each.get("storage")), "")


def set_stored_schema(registry: ResourceRegistry, spec: Document, revision: int, stored: list[tuple[int, str]]) -> None:
    """Set the schemas of stored objects for all served versions of a definition.

    Args:
        registry: the resources.
        spec: the spec of the definition.
        revision: the revision since which it is in effect.
        stored: the stored versions that the definition has had, each with the revision since which it is used.
    """
    group, plural = str(spec.get("group")), str(part(spec, "names").get("plural"))
    schemas = {str(each["name"]): part(each, "schema", "openAPIV3Schema") for each in parts(spec, "versions")}
    is_pruned = part(spec, "conversion").get("strategy") != "Webhook"
    earlier = tuple(
        (until, schemas[name])
        for (_, name), (until, _) in pairwise(stored)
        if is_pruned and name in schemas and name != stored[-1][1]
    )
    for name in schemas:
        resource = registry.find(group, name, plural)
        if resource is not None:
            resource.stored_schema, resource.schema_revision = schemas.get(stored[-1][1]) or None, revision
            resource.earlier_schemas = earlier


def stop_serving(registry: ResourceRegistry, definition: Document) -> None:
    """Stop serving all versions of a CustomResourceDefinition."""
    spec = part(definition, "spec")
    plural = str(part(spec, "names").get("plural"))
    for resource in [*registry.all(), *registry.unserved.values()]:
        if resource.custom is not None and resource.group == spec.get("group") and resource.name == plural:
            registry.remove_custom(resource.group, resource.version, plural)


def _resource(group: str, spec: Document, names: Document, version: Document) -> tuple[Resource, list[ResourceFacts]]:
    plural, kind = str(names.get("plural")), str(names.get("kind"))
    stored = next((each for each in parts(spec, "versions") if each.get("storage")), {})
    namespaced = spec.get("scope") == "Namespaced"
    facts = ResourceFacts(
        name=plural, singular_name=str(names.get("singular") or kind.lower()), namespaced=namespaced, kind=kind,
        verbs=_VERBS, short_names=tuple(texts(names, "shortNames")), categories=tuple(texts(names, "categories")),
        storage_version_hash=_version_hash(group, str(stored["name"]), kind) if stored.get("served") else "",
    )  # fmt: skip
    subresources: dict[str, ResourceFacts] = {}
    declared = part(version, "subresources")
    if "status" in declared:
        subresources["status"] = replace(_SUBRESOURCE, name=f"{plural}/status", namespaced=namespaced, kind=kind)
    if "scale" in declared:
        subresources["scale"] = replace(
            _SUBRESOURCE, name=f"{plural}/scale", namespaced=namespaced, kind="Scale", group="autoscaling", version="v1"
        )
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
    causes = _value_causes(schema, new, old)
    causes += _scale_problems(context, new, _SPEC_PATHS + _STATUS_PATHS)
    causes += structure_causes(schema, value, before)
    # The errors of the metadata prevent the rules from running, too.
    others = check_metadata(part(new, "metadata"), context.resource.namespaced, "path") if old is None else []
    return _with_rules(context, new, old, causes, others)


def _value_causes(schema: Document, new: Document, old: Document | None) -> list[Cause]:
    """Return the errors of single values. A schema can restrict the name in the metadata, too."""
    if "metadata" not in part(schema, "properties"):
        return value_causes(schema, _body(new), None if old is None else _body(old))
    pair = [None if each is None else {**_body(each), "metadata": part(each, "metadata")} for each in (new, old)]
    return value_causes(schema, pair[0], pair[1])


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
