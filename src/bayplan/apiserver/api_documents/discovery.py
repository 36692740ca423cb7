"""Discovery documents: the served groups, versions and resources, as separate documents and in aggregated form."""

from __future__ import annotations

import hashlib

import msgspec

from bayplan.apiserver.model.resources import ResourceRegistry
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.base.plain_data import Document

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_versions(address: str) -> Document:
    """Return the document of ``/api``."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def group_list(registry: ResourceRegistry) -> Document:
    """Return the document of ``/apis``."""
    groups = [_group(registry, name) for name in registry.groups if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: ResourceRegistry, name: str) -> Document | None:
    """Return the document of ``/apis/GROUP``, or None if the group is not served."""
    if not name or name not in registry.groups:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(registry, name)


def _group(registry: ResourceRegistry, name: str) -> Document:
    versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in registry.versions_of(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(registry: ResourceRegistry, group: str, version: str) -> Document | None:
    """Return the document of ``/apis/GROUP/VERSION`` or ``/api/v1``, or None if the version is not served."""
    entries = registry.versions.get((group, version))
    if entries is None:
        return None
    head: Document = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    listed = [msgspec.to_builtins(each) for each in entries]
    return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": listed}


def aggregated(registry: ResourceRegistry, *, core: bool) -> Document:
    """Return the aggregated document of ``/api`` (the core group) or ``/apis`` (all other groups)."""
    items = []
    for name in registry.groups:
        if (name == "") is core:
            versions = [
                {"version": version, "resources": _aggregated_resources(registry.versions[(name, version)])}
                | {"freshness": "Current"}
                for version in registry.versions_of(name)
            ]
            items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    head: Document = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    return {**head, "items": items}


def _aggregated_resources(entries: list[ResourceFacts]) -> list[Document]:
    found: dict[str, Document] = {}
    for entry in entries:
        name, _, subresource = entry.name.partition("/")
        kind: Document = {"group": entry.group, "version": entry.version, "kind": entry.kind}
        if not subresource:
            found[name] = _aggregated_resource(entry, kind)
        else:
            owner = found.get(name)
            if owner is not None:
                listed = owner.setdefault("subresources", [])
                assert isinstance(listed, list)
                listed.append({"subresource": subresource, "responseKind": kind, "verbs": list(entry.verbs)})
    return list(found.values())


def _aggregated_resource(entry: ResourceFacts, kind: Document) -> Document:
    resource: Document = {
        "resource": entry.name,
        "responseKind": kind,
        "scope": "Namespaced" if entry.namespaced else "Cluster",
        "singularResource": entry.singular_name,
        "verbs": list(entry.verbs),
    }
    if entry.short_names:
        resource["shortNames"] = list(entry.short_names)
    if entry.categories:
        resource["categories"] = list(entry.categories)
    return resource


def etag(document: Document) -> str:
    """Return the ETag of an aggregated document: a hash of its JSON without kind and apiVersion."""
    bare = {name: value for name, value in document.items() if name not in ("kind", "apiVersion")}
    return f'"{hashlib.sha512(msgspec.json.encode(bare)).hexdigest().upper()}"'
