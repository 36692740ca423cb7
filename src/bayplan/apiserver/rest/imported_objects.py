"""Import of whole objects from another cluster, including their status, in one write.

This combines a create and a status update. Watches see the object once, in its final state, so a running pod of the
other cluster never appears as pending. Errors are those of a create or a status update.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from bayplan.apiserver.fields import managed
from bayplan.apiserver.kinds.conversion import from_storage, to_storage
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import target_of
from bayplan.apiserver.rest.decoding import decode_value
from bayplan.apiserver.rest.writing import Written
from bayplan.base.plain_data import Document, part


def create_with_status(
    backend: Backend, info: RequestInfo, value: Mapping[str, object], options: WriteOptions
) -> Written:
    """Store a new object with its status; without a status, behave like a create.

    Args:
        backend: the backend of the API.
        info: the create request.
        value: the object as a JSON value.
        options: the options of the write; `dry_run` is ignored.

    Raises:
        ApiError: the object or its status is rejected, or its name is taken. In these cases nothing is stored.
    """
    resource, strategy = info.resource, backend.strategy(info.resource)
    decoded = decode_value(target_of(resource), dict(value), [], options.validation)
    document = decoded.document
    status = document.get("status") if value.get("status") and resource.has_status else None
    managers = writing.begin_create(backend, info, document, options)
    made = writing.new_object(backend, info, document, options, imported=True)
    made.warnings = [*decoded.warnings, *made.warnings]
    if isinstance(status, dict) and not strategy.keeps_status_on_create:
        made.document, managers = _with_status(backend, info, made.document, status, managers, options)
    writing.set_managers(made.document, managers)
    made.item = backend.put(resource, made.document)
    return made


def _with_status(
    backend: Backend,
    info: RequestInfo,
    made: Document,
    status: Document,
    managers: managed.Managers,
    options: WriteOptions,
) -> tuple[Document, managed.Managers]:
    """Update the status of a new object; return the object and its field managers."""
    resource, strategy = info.resource, backend.strategy(info.resource)
    info = replace(info, verb="update", name=str(part(made, "metadata")["name"]), subresource="status")
    owner = writing.ownership(backend, info, options)
    # Only the status can change, so compare only the status.
    before: Document = {"status": made.get("status") or {}}
    managers = managed.after_update(owner, before, {"status": status}, managers)
    context = backend.context(resource, info.namespace, info.subresource)
    stored, was = to_storage(resource, {**made, "status": status}), to_storage(resource, made)
    strategy.prepare_status(context, stored, was)
    writing.raise_invalid(resource, {"name": info.name}, strategy.validate_status(context, stored, was))
    return from_storage(resource, stored), managers
