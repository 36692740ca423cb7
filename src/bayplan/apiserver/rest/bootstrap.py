"""The initial objects of a cluster: namespaces, the system priority classes, and the Service `default/kubernetes`."""

from __future__ import annotations

from bayplan.apiserver.kinds.defaults import apply_defaults
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.api_endpoints import publish_api_server
from bayplan.apiserver.rest.backend import Backend
from bayplan.base.plain_data import Document

NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
_CLASSES = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def bootstrap(backend: Backend) -> None:
    """Store those initial objects that do not exist yet."""
    for name in NAMESPACES:
        _store(backend, "", "namespaces", {"metadata": {"name": name}})
    for name, value, description in _CLASSES:
        document: Document = {"metadata": {"name": name}, "value": value, "description": description}
        _store(backend, "scheduling.k8s.io", "priorityclasses", document)
    publish_api_server(backend)


def _store(backend: Backend, group: str, resource_name: str, document: Document) -> None:
    resource = backend.registry.find(group, "v1", resource_name)
    assert resource is not None
    assert resource.shape is not None
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    if backend.store.get(resource.table, ("", str(metadata["name"]))) is not None:
        return
    read = resource.shape.read(document)
    assert isinstance(read, dict)
    apply_defaults(resource.type_name, read)
    info = RequestInfo("create", resource)
    writing.create(backend, info, read, WriteOptions(manager="kube-apiserver"))
