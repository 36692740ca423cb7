"""Many objects in one request: each is created or deleted completely or not at all, and has an outcome of its own.

Nothing is rolled back if an entry fails. The outcome of a refused object contains the reason. If the object exists, the
outcome is ``exists``, so a client whose response was lost can send the batch again. Other requests are served between
slices of some milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated

import msgspec

from bayplan.apiserver.model.errors import ApiError, bad_request
from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import deleting
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.imported_objects import create_with_status
from bayplan.base.plain_data import Plain, part

MAX_BATCH_BYTES = 32 << 20
SLICE_NS = 2_000_000
"""Duration of a slice, after which other tasks run. A single object may take longer."""


_AN_OBJECT = msgspec.Meta(
    description="A Kubernetes object, as in the Kubernetes API.", extra_json_schema={"type": "object"}
)


class Outcome(msgspec.Struct, omit_defaults=True):
    """The outcome of one entry of a batch.

    Attributes:
        outcome: ``created``, ``exists`` (nothing was changed), ``deleted``, ``absent`` (nothing to delete) or
            ``refused``.
        code: the status code that the Kubernetes API would have returned.
        message: the error message, if the entry was refused.
        kind, namespace, name: the kind, namespace and name of the object.
        uid, resource_version: those of the object, or of its last version if it was deleted.
        warnings: the API's warnings to the client.
        object: the created object, if requested.
    """

    outcome: str
    code: int
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    message: str = ""
    warnings: list[str] = []
    object: Annotated[msgspec.Raw, _AN_OBJECT] | msgspec.UnsetType = msgspec.UNSET


class Batch(msgspec.Struct):
    """The response to a batch: outcomes in the order of the entries, and the number of entries by outcome."""

    items: list[Outcome]
    created: int = 0
    exists: int = 0
    deleted: int = 0
    absent: int = 0
    refused: int = 0


class _Deletion(msgspec.Struct, forbid_unknown_fields=True):
    """An entry that deletes an object: names of the object, its required UID if given, and grace seconds as in DeleteOptions."""

    delete: Plain
    grace_period_seconds: int | None = None


class _List(msgspec.Struct):
    items: list[msgspec.Raw]
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")


class _TypeOfItems(msgspec.Struct):
    kind: str
    api_version: str


_UNTOLD = _TypeOfItems("", "")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class BatchWriter:
    """Writes batches one at a time, in slices. Other tasks wait for at most one slice, however many batches there are.

    Args:
        backend: the backend of the API.

    Attributes:
        turn: the lock to hold while writing many objects at once.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.turn = asyncio.Lock()

    async def write(self, body: bytes, manager: str, *, objects: bool = False) -> Batch:
        """Execute a batch.

        Args:
            body: the entries, one per line, or a List. An entry is an object to create, or ``{"delete": names of an
                object}``.
            manager: the field manager.
            objects: whether the response contains the created objects.
        """
        entries, types = _entries(body)
        options = WriteOptions(manager=manager)
        batch = Batch([])
        async with self.turn:
            end_ns = time.perf_counter_ns() + SLICE_NS
            for entry in entries:
                outcome = _execute(self._backend, entry, types, options, objects=objects)
                batch.items.append(outcome)
                setattr(batch, outcome.outcome, getattr(batch, outcome.outcome) + 1)
                if time.perf_counter_ns() > end_ns:
                    await asyncio.sleep(0)
                    end_ns = time.perf_counter_ns() + SLICE_NS
        return batch


def _entries(body: bytes) -> tuple[Iterator[bytes | msgspec.Raw], _TypeOfItems]:
    """Return the entries of a body, and the default kind and version of entries: items of a PodList are Pods."""
    try:
        found = msgspec.json.decode(body, type=_List)
    except _UNREADABLE:
        return iter([body] if _is_one(body) else [line for line in body.split(b"\n") if line.strip()]), _UNTOLD
    kind = found.kind.removesuffix("List")
    return iter(found.items), _TypeOfItems(kind, found.api_version if kind else "")


def _is_one(body: bytes) -> bool:
    """Return whether a body is a single JSON value, possibly on several lines."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except _UNREADABLE:
        return False
    return True


def _execute(
    backend: Backend, entry: bytes | msgspec.Raw, types: _TypeOfItems, options: WriteOptions, *, objects: bool
) -> Outcome:
    result = Outcome("refused", HTTPStatus.BAD_REQUEST)
    try:
        value: object = msgspec.json.decode(entry)
        if not isinstance(value, dict):
            result.message = f"an entry is an object, not {type(value).__name__}"
        elif "delete" in value and "kind" not in value:
            _delete(backend, msgspec.convert(value, _Deletion), result)
        else:
            _create(backend, {"apiVersion": types.api_version, "kind": types.kind, **value}, result, options, objects)
    except _UNREADABLE as problem:
        result.message = f"unreadable: {problem}"
    except ApiError as problem:
        result.code, result.message = problem.code, problem.message
    return result


def _create(backend: Backend, value: Plain, result: Outcome, options: WriteOptions, objects: bool) -> None:
    resource, name = _place(backend, value, result)
    info = RequestInfo("create", resource, result.namespace)
    there = backend.store.get(resource.table, (result.namespace, name)) if name else None
    try:
        made = create_with_status(backend, info, value, options)
    except ApiError as problem:
        # A default priority class that exists is forbidden, because there is a default already.
        if problem.code in (HTTPStatus.CONFLICT, HTTPStatus.FORBIDDEN) and there is not None:
            result.outcome, result.uid, result.resource_version = "exists", there.uid, str(there.revision)
        raise
    item = made.item
    assert item is not None
    result.outcome, result.code = "created", HTTPStatus.CREATED
    result.name, result.uid, result.resource_version, result.warnings = (
        item.name,
        item.uid,
        str(item.revision),
        made.warnings,
    )
    if objects:
        result.object = msgspec.Raw(backend.encode(resource, item))


def _delete(backend: Backend, entry: _Deletion, result: Outcome) -> None:
    resource, name = _place(backend, entry.delete, result)
    uid = part(entry.delete, "metadata").get("uid")
    info = RequestInfo("delete", resource, result.namespace, name)
    wanted = DeleteOptions(entry.grace_period_seconds, uid=str(uid) if uid else None)
    try:
        deleted = deleting.delete(backend, info, wanted, admitted=True)
    except ApiError as problem:
        if problem.code in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            result.outcome = "absent"
        raise
    metadata = part(deleted.document, "metadata")
    result.outcome, result.code = "deleted", HTTPStatus.OK
    result.uid, result.resource_version = str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")


def _place(backend: Backend, value: Plain, result: Outcome) -> tuple[Resource, str]:
    """Return the resource and the name of an object, and set kind, namespace and name in the outcome.

    Raises:
        ApiError: the kind is not served, or its objects are requests that are never stored, such as Bindings.
    """
    version, kind = str(value.get("apiVersion") or ""), str(value.get("kind") or "")
    resource = backend.registry.by_kind(version, kind)
    if resource is None:
        raise bad_request(f"{version or 'no apiVersion'} {kind or 'no kind'} is not a served kind")
    if "get" not in resource.facts.verbs:
        raise bad_request(f"{version} {kind} is not stored, so it can't be in a batch")
    metadata = part(value, "metadata")
    result.kind, result.name = resource.kind, str(metadata.get("name") or "")
    result.namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    return resource, result.name
