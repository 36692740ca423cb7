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
    stored = [decode_item(item) for item in backend.store.between(custom_resources.DEFINITIONS)]
    established = [each for each in stored if definition_status.is_established(each)]
    names = {part(each, "metadata").get("name") for each in established}
    for resource in backend.registry.all():
        if resource.custom is not None and f"{resource.name}.{resource.group}" not in names:
            backend.registry.remove_custom(resource.group, resource.version, resource.name)
    backend.accepted_names.clear()
    for definition in stored:
        backend.accepted_names.put(definition)
    for definition in established:
        backend.serve_custom(definition)


def refresh_definition(backend: Backend, resource: Resource, write: Write) -> None:
    """Serve the custom resources of a written definition, or stop serving those of a deleted one."""
    definition = decode_item(write.new)
    if write.type != DELETED:
        backend.accepted_names.put(definition)
        _accept_names(backend, resource, definition)
        return
    backend.stop_custom(definition)
    for name in backend.accepted_names.remove(write.new.name):
        waiting = backend.find(custom_resources.DEFINITIONS, "", name)
        if waiting is not None:
            _accept_names(backend, resource, waiting)


def _accept_names(backend: Backend, resource: Resource, definition: Document) -> None:
    """Store the status of a definition if it changes because names are accepted; serve its custom resources if not.

    The write of a status refreshes the definition again. The status of a terminating one stays.
    """
    terminating = part(definition, "metadata").get("deletionTimestamp")
    status = None
    if not terminating:
        status = definition_status.accepted_status(definition, backend.now(), backend.accepted_names)
    if status is not None:
        backend.put(resource, backend.with_status(resource, definition, status))
    elif definition_status.is_established(definition):
        backend.serve_custom(definition)


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
