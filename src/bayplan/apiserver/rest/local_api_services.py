"""Local APIServices: one for each group and version that the server itself serves, custom resources included.

Those of built-in groups are created when the server starts, and stay deleted until the next start. Those of custom
resources follow their definitions: they are created again after a deletion, and their spec is restored after a change.

Source: pkg/controlplane/apiserver/aggregator.go and kube-aggregator's controller autoregister, v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.kinds import api_services, custom_resources
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.rest.own_objects import create_missing
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.base.plain_data import Document, part, parts

_GROUP_PRIORITIES = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
"""The minimum priority of each built-in group in discovery."""

_VERSION_PRIORITIES = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}
"""The priorities of versions within their group; all others have `_VERSION_PRIORITY`."""

_VERSION_PRIORITY = 15
_CUSTOM_GROUP_PRIORITY, _CUSTOM_VERSION_PRIORITY = 1000, 100
_MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_AT_START, _ALWAYS = "onstart", "true"
"""Values of the label `_MANAGED`: created at the start of the server, or managed all the time."""


def create_local_api_services(backend: Backend) -> None:
    """Create the missing APIServices of built-in groups and of custom resources."""
    for group, version in list(backend.registry.versions):
        if group in _GROUP_PRIORITIES and not backend.registry.is_custom(group):
            priority = _VERSION_PRIORITIES.get((group, version), _VERSION_PRIORITY)
            _create(backend, _AT_START, _spec(group, version, _GROUP_PRIORITIES[group], priority))
    for group, version in backend.registry.custom_versions():
        _create(backend, _ALWAYS, _custom_spec(group, version))


def follow_write(backend: Backend, write: Write) -> None:
    """Keep the APIServices of custom resources up to date after a write of a definition or an APIService."""
    if write.table == custom_resources.DEFINITIONS:
        served = backend.registry.custom_versions()
        for group, version in _versions_of(write.old) | _versions_of(write.new):
            if (group, version) in served:
                _create(backend, _ALWAYS, _custom_spec(group, version))
            else:
                _remove(backend, group, version)
    elif write.table == api_services.TABLE and write.new.labels.get(_MANAGED) == _ALWAYS:
        _restore(backend, write)


def _restore(backend: Backend, write: Write) -> None:
    version, _, group = write.new.name.partition(".")
    if (group, version) not in backend.registry.custom_versions():
        return
    if write.type == DELETED:
        _create(backend, _ALWAYS, _custom_spec(group, version))
        return
    current = backend.store.get(api_services.TABLE, write.new.key)
    if current is None or current.revision != write.revision:
        return  # A later write, such as that of the condition, has been followed already.
    document = decode_item(current)
    if part(document, "spec") != _custom_spec(group, version):
        resource = backend.registry.by_table()[api_services.TABLE]
        backend.put(resource, {**document, "spec": _custom_spec(group, version)})


def _versions_of(item: Item | None) -> dict[tuple[str, str], None]:
    if item is None:
        return {}
    spec = part(decode_item(item), "spec")
    return {(str(spec.get("group")), str(each["name"])): None for each in parts(spec, "versions") if each.get("served")}


def _remove(backend: Backend, group: str, version: str) -> None:
    item = backend.store.get(api_services.TABLE, ("", f"{version}.{group}"))
    if item is not None and item.labels.get(_MANAGED) == _ALWAYS:
        backend.remove(backend.registry.by_table()[api_services.TABLE], decode_item(item))


def _create(backend: Backend, managed: str, spec: Document) -> None:
    name = f"{spec['version']}.{spec.get('group', '')}"
    document: Document = {"metadata": {"name": name, "labels": {_MANAGED: managed}}, "spec": spec}
    create_missing(backend, "apiregistration.k8s.io", "apiservices", document)


def _spec(group: str, version: str, group_priority: int, version_priority: int) -> Document:
    of_group: Document = {"group": group} if group else {}
    priorities: Document = {"groupPriorityMinimum": group_priority, "versionPriority": version_priority}
    return {**of_group, "version": version, **priorities}


def _custom_spec(group: str, version: str) -> Document:
    return _spec(group, version, _CUSTOM_GROUP_PRIORITY, _CUSTOM_VERSION_PRIORITY)
