"""The condition Available of APIServices, set after a write of an APIService, or of what its API is reached through."""

from __future__ import annotations

from bayplan.apiserver.kinds import api_services
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.base.plain_data import part


def refresh_api_service(backend: Backend, resource: Resource, write: Write) -> None:
    """Set the condition of a written APIService."""
    if write.type != DELETED:
        _refresh(backend, write.new)


def refresh_api_services_of(backend: Backend, resource: Resource, write: Write) -> None:
    """Set the conditions of the APIServices whose Service, or an EndpointSlice of this Service, was written."""
    services: dict[tuple[str, str], None] = {}
    for item in (write.old, write.new):
        if item is not None:
            is_slice = write.table == api_services.SLICES
            name = item.labels.get(api_services.SERVICE_NAME, "") if is_slice else item.name
            services[(item.namespace, name)] = None
    for document in backend.all(api_services.TABLE):
        if api_services.is_remote(document) and api_services.service_key(document) in services:
            item = backend.store.get(api_services.TABLE, ("", str(part(document, "metadata").get("name"))))
            if item is not None:
                _refresh(backend, item)


def _refresh(backend: Backend, item: Item) -> None:
    resource = backend.registry.of_table(api_services.TABLE)
    document = decode_item(item)
    status = api_services.available_status(backend, document)
    if status is not None:
        backend.put(resource, backend.with_status(resource, document, status))
