"""The follower's writes as API requests: generators, see `bayplan.client.request_steps`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, items, part, text
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.sync.followed_kinds import BY_PLURAL, ObjectRef
from bayplan.sync.follower import Follower
from bayplan.sync.memory import MEMORY_NAMESPACE
from bayplan.sync.sync_write import SyncWrite, Verb

_FORBIDDEN, _NOT_FOUND, _CONFLICT, _TOO_MANY = 403, 404, 409, 429
_INTERNAL_ERROR = 500
_UNAVAILABLE = (503, 504)
SERVER_ERRORS = (_INTERNAL_ERROR, *_UNAVAILABLE)
_BUSY = (_TOO_MANY, *SERVER_ERRORS, NO_ANSWER)
MAX_ERRORS = 5
"""Server errors after which the request of an object is not retried: they may concern only this object, as those of a webhook."""

_TEMPORARY = (_CONFLICT, *SERVER_ERRORS)
"""The statuses of writes that may succeed later although nothing changes in the source."""

_FIRST_PAUSE, _MAX_PAUSE = 0.05, 5.0
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Seconds before each attempt of a write that meets conflicts, as many attempts as client-go's ``RetryOnConflict`` makes."""

_CONFIG_MAPS = f"/api/v1/namespaces/{MEMORY_NAMESPACE}/configmaps"
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


def execute_write(follower: Follower, write: SyncWrite) -> RequestSteps[bool]:
    """Execute a write and report the outcome to the follower; return whether it failed, but may succeed later.

    After a conflict with another client, the write is repeated with the object's new version, but not forever: an
    admission webhook may answer every write with a conflict or a server error. Requests to a busy or unavailable
    server are retried.
    """
    if write.verb is Verb.CREATE:
        return (yield from _create(follower, write))
    if write.verb is Verb.UPDATE:
        return (yield from _update(follower, write))
    return (yield from _delete(follower, write))


def save_memory(documents: list[Document]) -> RequestSteps[ApiResponse | None]:
    """Write ConfigMaps of the memory; return None if all were written, else the first refusal."""
    for document in documents:
        path = f"{_CONFIG_MAPS}/{text(part(document, 'metadata'), 'name')}"
        read, creation = ApiRequest("GET", path), ApiRequest("POST", _CONFIG_MAPS, _encode(document))
        response = yield from send_write(read, ApiRequest("PUT", path, creation.body))
        if response.status == _NOT_FOUND:
            response = yield from send_write(read, creation)
        if response.status == _NOT_FOUND:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MEMORY_NAMESPACE}}
            yield from send_write(read, ApiRequest("POST", "/api/v1/namespaces", _encode(namespace)))
            response = yield from send_write(read, creation)
        if not response.ok:
            return response
    return None


def read_memory() -> RequestSteps[list[Document]]:
    """Return the ConfigMaps with the state of the sync.

    Raises:
        InputError: the target refuses to list them.
    """
    response = yield from send_with_retries(ApiRequest("GET", _CONFIG_MAPS))
    if not response.ok:
        raise InputError(f"the sync state in {_CONFIG_MAPS} can't be read: {response.message}")
    return items(_decode(response.body), "items")


def _create(follower: Follower, write: SyncWrite) -> RequestSteps[bool]:
    kind, ref = BY_PLURAL[write.ref.plural], write.ref
    response = ApiResponse(NO_ANSWER)
    for pause in _PAUSES:
        if pause:
            yield pause
        response = yield from send_write(
            read_request(ref), ApiRequest("POST", kind.path(ref.namespace), _encode(write.document))
        )
        if response.ok:
            return (yield from finish_creation(follower, write, _decode(response.body)))
        # Creating a default priority class that exists is forbidden, because there is a default already.
        is_forbidden_class = response.status == _FORBIDDEN and ref.plural == "priorityclasses"
        if response.status != _CONFLICT and not is_forbidden_class:
            break
        there = yield from send_with_retries(read_request(ref), max_errors=MAX_ERRORS)
        if there.ok:
            metadata = part(_decode(there.body), "metadata")
            follower.found(write, text(metadata, "uid"), int(text(metadata, "resourceVersion") or 0))
            return False
        if is_forbidden_class:
            break
    return _failed(follower, write, response)


def _failed(follower: Follower, write: SyncWrite, response: ApiResponse) -> bool:
    """Report a failed write to the follower; return whether it may succeed later."""
    follower.failed(write, response.message)
    return response.status in _TEMPORARY


def finish_creation(follower: Follower, write: SyncWrite, made: Document) -> RequestSteps[bool]:
    """Write the status of an object that was just created, and report the result to the follower.

    Return whether the status was not written, but may be later.

    Args:
        follower: the follower.
        write: the creation.
        made: the created object.
    """
    metadata = part(made, "metadata")
    last, _ = yield from _write_differences(follower, write, made)
    refused = None if last is None or last.ok or last.status == _NOT_FOUND else last
    if refused is not None:
        follower.note(write, refused.message)
    # The object is created, even if its status was refused.
    follower.done(write, text(metadata, "uid"), int(text(metadata, "resourceVersion") or 0))
    return refused is not None and refused.status in _TEMPORARY


def _update(follower: Follower, write: SyncWrite) -> RequestSteps[bool]:
    last, written = yield from _write_differences(follower, write, None)
    if last is None or last.ok or last.status == _NOT_FOUND:
        # If the object was deleted locally, the watch reports that.
        follower.done(write, written=written)
        return False
    return _failed(follower, write, last)


_LastResponse: TypeAlias = tuple[ApiResponse | None, bool]
"""The last response, or None if nothing differs; and whether anything was written."""


def _write_differences(follower: Follower, write: SyncWrite, here: Document | None) -> RequestSteps[_LastResponse]:
    """Write the differences of an object and its subresources.

    Args:
        follower: determines the differences.
        write: the write.
        here: the local object; None to read it. It is read again after a conflict.
    """
    kind, ref = BY_PLURAL[write.ref.plural], write.ref
    last, written = None, False
    for pause in _PAUSES:
        if pause:
            yield pause
        if here is None:
            response = yield from send_with_retries(read_request(ref), max_errors=MAX_ERRORS)
            if not response.ok:
                return response, written
            here = _decode(response.body)
            copied = text(part(part(here, "metadata"), "annotations"), SOURCE_UID)
            if copied not in ("", write.uid) and kind.kind != "Namespace":
                return None, written
        last, some = yield from _put_differences(follower, write, here)
        written = written or some
        if last is None or last.status != _CONFLICT:
            break
        here = None
    return last, written


def _put_differences(follower: Follower, write: SyncWrite, here: Document) -> RequestSteps[_LastResponse]:
    """Write the differences of an object to this version of it."""
    kind, ref = BY_PLURAL[write.ref.plural], write.ref
    puts, response, written = follower.merged(write, here), None, False
    while puts:
        put = puts.pop(0)
        path = kind.path(ref.namespace, ref.name, put.subresource)
        version = text(part(here, "metadata"), "resourceVersion") if put.subresource != "status" else ""
        response = yield from send_write(
            read_request(ref), ApiRequest("PUT", path, _encode(_at_version(version, put.document)))
        )
        if not response.ok:
            return response, written
        here, written = _decode(response.body), True
        if put.subresource == "status" and puts:
            # A status replaces any version, so the object may have changed since it was read.
            puts = [each for each in follower.merged(write, here) if each.subresource != "status"]
    return response, written


def _at_version(version: str, document: Document) -> Document:
    """Return a document that replaces only this version of the object, or any version if `version` is "".

    A status replaces any version, because the source's status takes precedence over concurrent writes of the local
    kubelet.
    """
    metadata = {name: value for name, value in part(document, "metadata").items() if name != "resourceVersion"}
    return {**document, "metadata": {**metadata, "resourceVersion": version} if version else metadata}


def _delete(follower: Follower, write: SyncWrite) -> RequestSteps[bool]:
    kind, ref = BY_PLURAL[write.ref.plural], write.ref
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": write.uid}}
    response = yield from send_write(
        read_request(ref), ApiRequest("DELETE", kind.path(ref.namespace, ref.name), _encode(options))
    )
    is_gone = response.status == _NOT_FOUND
    if response.status == _CONFLICT:
        # Usually another object has this name now.
        there = yield from send_with_retries(read_request(ref), max_errors=MAX_ERRORS)
        is_replaced = there.ok and text(part(_decode(there.body), "metadata"), "uid") not in ("", write.uid)
        is_gone = is_replaced or there.status == _NOT_FOUND
    if response.ok or is_gone:
        follower.done(write, written=response.ok)
        return False
    return _failed(follower, write, response)


def read_request(ref: ObjectRef) -> ApiRequest:
    """Return the request that reads an object."""
    return ApiRequest("GET", BY_PLURAL[ref.plural].path(ref.namespace, ref.name))


def send_write(read: ApiRequest, request: ApiRequest) -> RequestSteps[ApiResponse]:
    """Send a write, and return the response.

    It is retried while the server is busy or unavailable, but not forever if the server answers reads in the meantime.

    Args:
        read: reads the object, or one of several.
        request: the write.
    """
    while True:
        response = yield from send_with_retries(request, max_errors=MAX_ERRORS, errors=SERVER_ERRORS)
        if response.status not in _UNAVAILABLE:
            return response
        there = yield read
        if there.status not in (_TOO_MANY, NO_ANSWER, *_UNAVAILABLE):
            return response
        yield _FIRST_PAUSE
        yield from send_with_retries(read, max_errors=MAX_ERRORS)


def send_with_retries(
    request: ApiRequest, *, max_errors: int | None = None, errors: Collection[int] = (_INTERNAL_ERROR,)
) -> RequestSteps[ApiResponse]:
    """Send a request, and retry it while the server is busy or unavailable; return the response.

    Args:
        request: the request.
        max_errors: the maximum number of certain server errors, after which the last response is returned; None for no
            limit.
        errors: the statuses of these errors.
    """
    pause, count = _FIRST_PAUSE, 0
    while True:
        response = yield request
        count += response.status in errors
        if response.status not in _BUSY or count == max_errors:
            return response
        yield pause
        pause = min(2 * pause, _MAX_PAUSE)
