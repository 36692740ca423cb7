"""The served resources: built-in resources from the recorded facts, custom resources from their definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.apiserver.codec.shape import Shape, shape_of
from bayplan.apiserver.fields.field_type import FieldType, field_type
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.schema.facts import ResourceFacts, api_facts
from bayplan.base.go_arithmetic import MAX_INT64, whole_number
from bayplan.base.plain_data import Document
from bayplan.formats.schema import schema

# Kinds that two groups serve: one table stores their objects.
_SHARED_TABLES = {("events.k8s.io", "events"): "events"}

_NUMBERED_VERSION = re.compile("v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES = (None, "beta", "alpha")


class Converter(Protocol):
    """Converts objects between a served version and the stored version."""

    def to_storage(self, document: Document) -> Document:
        """Return an object in the stored version."""

    def from_storage(self, document: Document) -> Document:
        """Return a stored object in the served version."""


class SchemaRules(Protocol):
    """The CEL rules of a custom resource's schema."""

    def check(self, document: Document, old: Document | None) -> tuple[list[Cause], list[str]]:
        """Return the errors of an object, and warnings about those errors that the old object already has."""


@dataclass(slots=True, eq=False)
class Resource:
    """One resource in one API version.

    Attributes:
        group: the API group; empty for the core group.
        version: the version within the group.
        name: the plural name in paths.
        kind: the kind of the objects.
        namespaced: whether the objects are in namespaces.
        facts: the discovery data.
        type_name: the name of the type in OpenAPI; empty for custom resources.
        table: the name of the store's table.
        shape: the decoder of its objects; None for custom resources, whose objects are stored unchanged.
        fields: the type for ownership and patches.
        subresources: the discovery data of the subresources, by name.
        custom: the definition of a custom resource.
        converter: converts a custom resource to and from the stored version; None if no conversion is necessary.
        deprecation: the warning for clients of a deprecated version of a custom resource, or empty.
        rules: the CEL rules in the schema of a custom resource; None if it has none.
        stored_schema: the schema of a custom resource's stored version.
        schema_revision: the revision at which the definition of a custom resource last changed. The schema applies to
            older objects when they are read.
        earlier_schemas: the schemas of the versions in which older objects of a custom resource are stored, each with the
            revision at which the stored version changed, in this order.
        terminating: whether the definition of a custom resource is being deleted, so that no objects can be created.
        own_list_kind: the kind of the lists of a custom resource, if its definition has one.
    """

    group: str
    version: str
    name: str
    kind: str
    namespaced: bool
    facts: ResourceFacts
    type_name: str = ""
    table: str = ""
    shape: Shape | None = None
    fields: FieldType = field(default_factory=lambda: field_type(""))
    subresources: dict[str, ResourceFacts] = field(default_factory=dict)
    custom: dict[str, object] | None = None
    deprecation: str = ""
    converter: Converter | None = None
    rules: SchemaRules | None = None
    stored_schema: dict[str, object] | None = None
    schema_revision: int = 0
    earlier_schemas: tuple[tuple[int, dict[str, object]], ...] = ()
    terminating: bool = False
    own_list_kind: str = ""

    @property
    def list_kind(self) -> str:
        """The kind of lists."""
        return self.own_list_kind or f"{self.kind}List"

    @property
    def api_version(self) -> str:
        """The apiVersion: ``apps/v1``, or ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Whether the status has a separate endpoint."""
        return "status" in self.subresources

    @property
    def prefix(self) -> bytes:
        """The start of an encoded object, up to its metadata."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()


class ResourceRegistry:
    """The served resources by group, version and name, in discovery order.

    Attributes:
        versions: the discovery data of the resources in each (group, version).
        groups: the names of the served groups; the core group is empty.
        custom_versions: the number of custom resources in each (group, version) that has any.
        changes: the number of changes since the start.
        unserved: the versions of custom resources that are defined but not served, by group, version and name.
    """

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str, str], Resource] = {}
        self.versions: dict[tuple[str, str], list[ResourceFacts]] = {}
        self.groups: list[str] = []
        self.custom_versions: dict[tuple[str, str], int] = {}
        self.changes = 0
        self.unserved: dict[tuple[str, str, str], Resource] = {}
        facts = api_facts()
        for path, entries in facts.resources.items():
            group, version = ("", "v1") if path == "/api/v1" else (path.split("/")[2], path.split("/")[3])
            self._add_version(group, version, list(entries))
        self.groups = ["", *facts.groups]
        self._built_in = frozenset(self.groups)

    def _add_version(self, group: str, version: str, entries: list[ResourceFacts]) -> None:
        self.versions[(group, version)] = entries
        subresources: dict[str, dict[str, ResourceFacts]] = {}
        for entry in entries:
            name, _, subresource = entry.name.partition("/")
            if subresource:
                subresources.setdefault(name, {})[subresource] = entry
        for entry in entries:
            if "/" not in entry.name:
                resource = _built_in(group, version, entry)
                resource.subresources = subresources.get(entry.name, {})
                self._by_path[(group, version, entry.name)] = resource

    def is_custom(self, group: str) -> bool:
        """Return whether a group is served only because of custom resources."""
        return group in self.groups and group not in self._built_in

    def find(self, group: str, version: str, name: str) -> Resource | None:
        """Return a resource, or None if it is not served."""
        return self._by_path.get((group, version, name))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind, or None if the kind is not served."""
        group, _, version = api_version.rpartition("/")
        found = self._by_kind.get((group, version, kind))
        if found is not None:
            return found
        for resource in self._by_path.values():
            if resource.group == group and resource.version == version and resource.kind == kind:
                self._by_kind[(group, version, kind)] = resource
                return resource
        return None

    def all(self) -> list[Resource]:
        """Return all resources in discovery order."""
        return list(self._by_path.values())

    def of_table(self, table: str) -> Resource:
        """Return the built-in resource of a table, in version v1."""
        group, _, name = table.rpartition("/")
        return self._by_path[(group, "v1", name)]

    def by_table(self) -> dict[str, Resource]:
        """Return one resource for each table: the first in discovery order if several versions share the table."""
        found: dict[str, Resource] = {}
        for resource in self._by_path.values():
            found.setdefault(resource.table, resource)
        return found

    def serves(self, api_version: str) -> bool:
        """Return whether an API version is served."""
        group, _, version = api_version.rpartition("/")
        return (group, version) in self.versions

    def versions_of(self, group: str) -> list[str]:
        """Return the versions of a group, the preferred version first."""
        found = [version for each, version in self.versions if each == group]
        return sorted(found, key=version_rank)

    def put_group(self, group: str, version: str, entries: list[ResourceFacts]) -> None:
        """List a group with one version in discovery, if it is not listed yet. The caller serves its resources."""
        if group in self.groups:
            return
        self.changes += 1
        self.versions[(group, version)] = entries
        self.groups.append(group)

    def put_custom(self, group: str, version: str, resource: Resource, entries: list[ResourceFacts]) -> None:
        """Serve a custom resource in one version, replacing an earlier definition."""
        self.remove_custom(group, version, resource.name)
        self.changes += 1
        self.versions.setdefault((group, version), []).extend(entries)
        self._by_path[(group, version, resource.name)] = resource
        self.custom_versions[(group, version)] = self.custom_versions.get((group, version), 0) + 1
        if group not in self.groups:
            self.groups.append(group)

    def remove_custom(self, group: str, version: str, name: str) -> None:
        """Remove one version of a custom resource, served or not; a group without resources disappears."""
        self.unserved.pop((group, version, name), None)
        if self._by_path.pop((group, version, name), None) is None:
            return
        self.changes += 1
        self._by_kind.clear()
        self.custom_versions[(group, version)] -= 1
        if not self.custom_versions[(group, version)]:
            del self.custom_versions[(group, version)]
        left = [each for each in self.versions[(group, version)] if each.name.partition("/")[0] != name]
        if left:
            self.versions[(group, version)] = left
        else:
            del self.versions[(group, version)]
            if not any(each == group for each, _ in self.versions):
                self.groups.remove(group)


def _built_in(group: str, version: str, facts: ResourceFacts) -> Resource:
    api_version = f"{group}/{version}" if group else version
    kind_facts = schema().kinds.get(f"{api_version}/{facts.kind}")
    type_name = kind_facts.type if kind_facts is not None else ""
    go_type = api_facts().kinds.get(f"{api_version}/{facts.kind}", "")
    table = _SHARED_TABLES.get((group, facts.name)) or (f"{group}/{facts.name}" if group else facts.name)
    return Resource(
        group=group,
        version=version,
        name=facts.name,
        kind=facts.kind,
        namespaced=facts.namespaced,
        facts=facts,
        type_name=type_name or go_type,
        table=table,
        shape=shape_of(go_type) if go_type else None,
        fields=field_type(type_name) if type_name else field_type(""),
    )


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version, as in Kubernetes.

    Stable versions precede beta and alpha versions, and higher numbers precede lower ones: v2, v1, v1beta2, v1beta1, v1alpha1.
    Other names follow in alphabetical order.
    """
    found = _NUMBERED_VERSION.fullmatch(version)
    major, minor = (whole_number(found[1]), whole_number(found[3] or "0")) if found else (0, 0)
    if found is None or max(major, minor) > MAX_INT64:
        return (len(_STAGES), 0, 0, version)
    return (_STAGES.index(found[2]), -major, -minor, version)
