"""The verb ``update``: PUT of an object or its status."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.merging import with_whole_values
from bayplan.apiserver.kinds.conversion import from_storage, to_storage
from bayplan.apiserver.model.errors import ApiError, bad_request, not_found
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.preconditions import check_uid, find_namespace, sent_revision
from bayplan.apiserver.rest.writing import Written
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.plain_data import Document, part


def update(backend: Backend, info: RequestInfo, new: Document, options: WriteOptions) -> Written:
    """Replace an object, or create it if its kind allows that.

    Args:
        backend: the backend of the API.
        info: the request.
        new: the decoded object with defaults, in the API version of the request.
        options: the options of the write.

    Raises:
        ApiError: the object does not exist or has changed in the meantime, or the change is rejected.
    """
    resource, strategy = info.resource, backend.strategy(info.resource)
    metadata = part(new, "metadata")
    check_place(info, metadata)
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None:
        if not strategy.create_on_update:
            raise not_found(resource.name, resource.group, info.name)
        check_uid(resource, info, str(metadata.get("uid") or ""), {}, dry_run=options.dry_run)
        sent_revision(new)
        if not options.dry_run:  # Only upstream's storage removes the version.
            metadata.pop("resourceVersion", None)
        return writing.create(backend, info, new, options)
    old = backend.document(resource, item)
    check_uid(resource, info, str(metadata.get("uid") or ""), old, dry_run=options.dry_run)
    writing.check_version(resource, info, new, old, required=not strategy.unconditional_update)
    managers = managers_after(backend, info, old, new, options)
    find_namespace(backend, info)
    return writing.change(backend, info, old, new, managers, options)


def check_place(info: RequestInfo, metadata: Document) -> None:
    """Raise if the name or namespace of a changed object differ from the path; set a missing namespace.

    Raises:
        ApiError: the values differ, or the name is missing.
    """
    name = metadata.get("name") or ""
    if info.resource.namespaced:
        check_namespace(info, metadata)
        metadata["namespace"] = info.namespace
    else:
        metadata.pop("namespace", None)
    if not name:
        raise undeterminable_name(info)
    if name != info.name:
        raise writing.wrong_name(str(name), info.name)


def undeterminable_name(info: RequestInfo) -> ApiError:
    """Return the error for an object without a name."""
    return bad_request(f"the name of the object ({info.name} based on URL) was undeterminable: name must be provided")


def check_namespace(info: RequestInfo, metadata: Document) -> None:
    """Raise if an object has a namespace that differs from the path.

    Raises:
        ApiError: the values differ.
    """
    if (metadata.get("namespace") or "") not in ("", info.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def managers_after(
    backend: Backend, info: RequestInfo, old: Document, new: Document, options: WriteOptions
) -> managed.Managers:
    """Return the field managers after an update or a patch.

    If the client sent `managedFields` that can be decoded, they first replace the stored entries.
    """
    metadata = part(new, "metadata")
    sent = metadata.get("managedFields")
    if sent is None and isinstance(metadata, Emptied):
        sent = metadata.empties.get("managedFields")
    managers, is_tracked = stored_managers(backend, info.resource, old), False
    resource = info.resource
    # An empty list resets the managers, except in custom resources: upstream drops it there.
    if not info.subresource and isinstance(sent, list) and (sent or resource.custom is None):
        own = {} if sent in ([], [{}]) else managed.decode_sent(sent, resource.fields, resource.api_version)
        managers, is_tracked = (managers, False) if own is None else (own, bool(own))
    metadata.pop("managedFields", None)
    request = writing.ownership(backend, info, options)
    # Conversion to the stored version can add fields, such as annotations, which have owners, too.
    shown = from_storage(info.resource, to_storage(info.resource, new))
    return managed.after_update(request, old, shown, managers, is_tracked=is_tracked)


def stored_managers(backend: Backend, resource: Resource, old: Document) -> managed.Managers:
    """Return the managers of a stored object, adjusted to changes of a custom resource's schema since it was stored.

    Source: sigs.k8s.io/structured-merge-diff/v6 (typed/reconcile_schema.go).
    """
    metadata = part(old, "metadata")
    managers = managed.decode(metadata.get("managedFields"))
    if int(str(metadata.get("resourceVersion") or 0)) >= resource.schema_revision:
        return managers
    for who, owned in managers.items():
        found = backend.in_group(resource, owned.api_version)
        if found is not None:
            managers[who] = replace(owned, fields=with_whole_values(found.fields, owned.fields))
    return managers
