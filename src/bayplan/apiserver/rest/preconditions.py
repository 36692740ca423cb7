"""Preconditions of a write: the uid and version of the stored object, or that there is none, and an existing namespace."""

from __future__ import annotations

from bayplan.apiserver.model.errors import ApiError, already_exists, conflict, not_found
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.item import Item
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote


def check_uid(resource: Resource, info: RequestInfo, wanted: str, old: Document, *, dry_run: bool = False) -> None:
    """Raise if the stored object has a different uid, because it was deleted and another object was created with its name.

    Args:
        resource: the resource.
        info: the request.
        wanted: the required uid; empty for any.
        old: the stored object, or an empty document if it does not exist.
        dry_run: whether the write is a dry run, for the message.

    Raises:
        ApiError: the uid differs.
    """
    found = str(part(old, "metadata").get("uid") or "")
    if wanted and wanted != found:
        why = storage_error(resource, info, wanted, found, dry_run=dry_run)
        raise conflict(resource.name, resource.group, info.name, why)


_MAX_DIGITS = 21
"""Digits of a revision that are read: one more than the largest has."""
_PREFIXES = {
    "replicationcontrollers": "controllers",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "services": "services/specs",
    "networking.k8s.io/ingresses": "ingress",
}
"""Prefixes of etcd keys that differ from the resource name, by table."""


def storage_error(resource: Resource, info: RequestInfo, wanted: str, found: str, *, dry_run: bool = False) -> str:
    """Return the message of upstream's storage layer for a uid that differs from the required uid."""
    place = f"{info.namespace}/{info.name}" if info.namespace else info.name
    extension = resource.custom is not None or resource.group == "apiextensions.k8s.io"
    prefix = resource.table if extension else _PREFIXES.get(resource.table, resource.name)
    root = "" if dry_run else "/registry"
    return (
        f"StorageError: invalid object, Code: 4, Key: {root}/{prefix}/{place}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )


def check_free(backend: Backend, info: RequestInfo, metadata: Document) -> None:
    """Raise if the name of a new object is taken.

    Raises:
        ApiError: an object has the name; it may be terminating.
    """
    resource, name = info.resource, str(metadata["name"])
    found = backend.store.get(resource.table, (info.namespace, name))
    if found is not None:
        going = bool(part(backend.document(resource, found), "metadata").get("deletionTimestamp"))
        generated = bool(metadata.get("generateName"))
        raise already_exists(resource.name, resource.group, name, going=going, generated=generated)


def find_namespace(backend: Backend, info: RequestInfo) -> Item | None:
    """Return the namespace of a request, or None if the resource has none.

    Raises:
        ApiError: the namespace does not exist. This can only happen to a change if the namespace was removed too early.
    """
    if not info.resource.namespaced:
        return None
    item = backend.store.get("namespaces", ("", info.namespace))
    if item is None:
        raise not_found("namespaces", "", info.namespace)
    return item


def sent_revision(document: Document) -> int:
    """Return the version of an object as a number; 0 for none.

    Raises:
        ApiError: it is not a number of 64 bits.
    """
    sent = str(part(document, "metadata").get("resourceVersion") or "0")
    is_number = sent.isascii() and sent.isdigit()
    # A longer number may be too long for Python, too.
    digits = sent.lstrip("0")[:_MAX_DIGITS] or "0"
    if not is_number or int(digits) >= 2**64:
        problem = "value out of range" if is_number else "invalid syntax"
        raise ApiError(500, f"strconv.ParseUint: parsing {quote(sent)}: {problem}", reason="")
    return int(digits)


def has_revision(document: Document) -> bool:
    """Return whether a new object has a version other than 0. As in upstream, one that is not a number does not count."""
    try:
        return sent_revision(document) != 0
    except ApiError:
        return False
