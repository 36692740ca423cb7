"""CustomResourceDefinitions after a write: which custom resources are served, the accepted names, and the end of a deletion.

Source: the controllers of apiextensions-apiserver v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.kinds import custom_resources, definition_status
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.store.item import DELETED, Write
from bayplan.base.plain_data import Document, part, texts


def serve_stored_definitions(backend: Backend) -> None:
    """Serve the custom resources of the stored definitions, and no others: the store may have been loaded or restored."""
    stored = {item.name: item for item in backend.store.between(custom_resources.DEFINITIONS)}
    for resource in backend.registry.all():
        if resource.custom is not None and f"{resource.name}.{resource.group}" not in stored:
            backend.registry.remove_custom(resource.group, resource.version, resource.name)
    for item in stored.values():
        definition = decode_item(item)
        if definition_status.is_established(definition):
            backend.serve_custom(definition)


def refresh_definition(backend: Backend, resource: Resource, write: Write) -> None:
    """Serve the custom resources of a written definition, or stop serving those of a deleted one."""
    definition = decode_item(write.new)
    if write.type != DELETED:
        _accept_names(backend, resource, definition)
        return
    backend.stop_custom(definition)
    for other in _others(backend, definition):
        _accept_names(backend, resource, other)


def _accept_names(backend: Backend, resource: Resource, definition: Document) -> None:
    """Serve the custom resources of a definition if its names are accepted, and store the new status."""
    status = definition_status.accepted_status(definition, backend.now(), _others(backend, definition))
    if definition_status.is_established(definition if status is None else {"status": status}):
        backend.serve_custom(definition)
    if status is not None and not part(definition, "metadata").get("deletionTimestamp"):
        backend.put(resource, backend.with_status(resource, definition, status))


def _others(backend: Backend, definition: Document) -> list[Document]:
    """Return the other definitions of a definition's group."""
    name, group = part(definition, "metadata").get("name"), part(definition, "spec").get("group")
    stored = [decode_item(item) for item in backend.store.between(custom_resources.DEFINITIONS) if item.name != name]
    return [each for each in stored if part(each, "spec").get("group") == group]


def end_definition(backend: Backend, resource: Resource, write: Write) -> None:
    """Remove a definition that is being deleted after the deletion of its last object."""
    if write.type == DELETED:
        remove_terminating(backend, resource.table)


def remove_terminating(backend: Backend, table: str) -> None:
    """Remove the definition of a table's objects if it is being deleted and no objects are left."""
    group, _, plural = table.partition("/")
    resource = backend.registry.of_table(custom_resources.DEFINITIONS)
    item = backend.store.get(custom_resources.DEFINITIONS, ("", f"{plural}.{group}"))
    if item is None or len(backend.store.table(table)):
        return
    definition = backend.document(resource, item)
    metadata = part(definition, "metadata")
    finalizers = texts(metadata, "finalizers")
    if not metadata.get("deletionTimestamp") or definition_status.CLEANUP not in finalizers:
        return
    status = definition_status.deleting_status(definition, backend.now(), done=True)
    definition = backend.with_status(resource, definition, status)
    metadata = part(definition, "metadata")
    metadata["finalizers"] = [each for each in finalizers if each != definition_status.CLEANUP]
    if metadata["finalizers"]:
        backend.put(resource, definition)
    else:
        del metadata["finalizers"]
        backend.remove(resource, definition)


def begin_instance_deletion(backend: Backend, definition: Document) -> None:
    """Store in the status of a terminating definition that its objects are being deleted."""
    resource = backend.registry.of_table(custom_resources.DEFINITIONS)
    status = definition_status.deleting_status(definition, backend.now(), done=False)
    backend.put(resource, backend.with_status(resource, definition, status))
