"""Local APIServices: one for each group and version that the server itself serves, custom resources included.

Those of built-in groups are created when the server starts, and stay deleted until the next start. Those of custom
resources are synced with their definitions: they are created again after a deletion, and their spec is restored after a
change as long as they have the label of managed ones.

Source: pkg/controlplane/apiserver/aggregator.go and kube-aggregator's controller autoregister, v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.kinds import api_services
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.rest.own_objects import create_missing, delete_own
from bayplan.apiserver.store.item import Write
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
        if group in _GROUP_PRIORITIES and (group, version) not in backend.registry.custom_versions:
            priority = _VERSION_PRIORITIES.get((group, version), _VERSION_PRIORITY)
            _create(backend, _AT_START, _spec(group, version, _GROUP_PRIORITIES[group], priority))
    for group, version in list(backend.registry.custom_versions):
        _sync(backend, f"{version}.{group}")


def sync_api_services_of(backend: Backend, resource: Resource, write: Write) -> None:
    """Sync the APIServices of the versions that a definition declares, or declared before the write."""
    names: dict[str, None] = {}
    for item in (write.old, write.new):
        if item is not None:
            spec = part(decode_item(item), "spec")
            names |= {f"{each['name']}.{spec.get('group')}": None for each in parts(spec, "versions")}
    for name in names:
        _sync(backend, name)


def sync_api_service(backend: Backend, resource: Resource, write: Write) -> None:
    """Sync a written APIService."""
    _sync(backend, write.new.name)


def _sync(backend: Backend, name: str) -> None:
    """Create, restore or delete the APIService with this name, as its custom resources require.

    An existing one is changed only if it is labelled as managed all the time.
    """
    version, _, group = name.partition(".")
    wanted = _custom_spec(group, version) if (group, version) in backend.registry.custom_versions else None
    item = backend.store.get(api_services.TABLE, ("", name))
    if item is None:
        if wanted is not None:
            _create(backend, _ALWAYS, wanted)
    elif item.labels.get(_MANAGED) == _ALWAYS:
        document = decode_item(item)
        if wanted is None:
            delete_own(backend, api_services.TABLE, name)
        elif part(document, "spec") != wanted:
            resource = backend.registry.of_table(api_services.TABLE)
            backend.put(resource, backend.updated(resource, document, {**document, "spec": wanted}))


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
