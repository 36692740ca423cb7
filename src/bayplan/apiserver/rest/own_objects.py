"""Objects that the API server itself creates and deletes, without asking admission policies or webhooks."""

from __future__ import annotations

from bayplan.apiserver.kinds.defaults import apply_defaults
from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo, WriteOptions
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import MANAGER, Backend
from bayplan.apiserver.rest.deleting import delete
from bayplan.base.plain_data import Document, part


def create_missing(
    backend: Backend, group: str, resource_name: str, document: Document, *, manager: str = MANAGER
) -> None:
    """Create an object in version v1 of a group, with defaults; do nothing if an object has its name.

    No admission policy or webhook is asked: the object that caused the creation is already stored.

    Args:
        backend: the backend of the API.
        group: the API group; "" for the core group.
        resource_name: the plural, e.g. `namespaces`.
        document: the object, without kind and apiVersion.
        manager: the field manager.

    Raises:
        ApiError: validation rejects the object.
    """
    resource = backend.registry.find(group, "v1", resource_name)
    assert resource is not None
    assert resource.shape is not None
    metadata = part(document, "metadata")
    namespace = str(metadata.get("namespace") or "")
    if backend.store.get(resource.table, (namespace, str(metadata["name"]))) is not None:
        return
    read = resource.shape.read(document)
    assert isinstance(read, dict)
    apply_defaults(resource.type_name, read)
    info, options = RequestInfo("create", resource, namespace), WriteOptions(manager=manager)
    managers = writing.begin_create(backend, info, read, options)
    made = writing.new_object(backend, info, read, options, imported=True)
    writing.set_managers(made.document, managers)
    backend.put(resource, made.document)


def delete_own(backend: Backend, table: str, name: str) -> None:
    """Delete a cluster-scoped object if it exists; it stays terminating as long as it has finalizers."""
    if backend.store.get(table, ("", name)) is not None:
        info = RequestInfo("delete", backend.registry.of_table(table), name=name)
        delete(backend, info, DeleteOptions(), admitted=True)
