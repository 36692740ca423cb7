"""Batches of writes, for targets that are Bayplan servers: creations with their status, and deletions.

Every write has the same outcome as a single request. Replacements, which batches do not support, and the writes of a
batch that is rejected as a whole, use the requests of `bayplan.sync.writing`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bayplan.base.plain_data import Document
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import ApiRequest
from bayplan.sync.followed_kinds import BY_PLURAL
from bayplan.sync.follower import Follower
from bayplan.sync.sync_write import SyncWrite, Verb
from bayplan.sync.writing import (
    SERVER_ERRORS,
    execute_write,
    finish_creation,
    read_request,
    send_with_retries,
    send_write,
)

BATCH = 500
"""Maximum number of writes in a batch."""

BATCHES_AT_ONCE = 2
"""Number of concurrent batches: one batch is executed while the next is in transit."""

MAX_BATCH_BYTES = 8 << 20
"""Maximum size of a request in bytes; larger batches are split, with at least one write per request."""

PROBES = 8
"""Server errors after which the server is assumed not to support batch writes (about 6 s)."""

_PATH = "/bayplan/v1/objects"
_LINES = "application/jsonl"
_CONFLICT = 409
_FIRST_SERVER_ERROR = 500
_encode = msgspec.json.encode
_log = logging.getLogger("bayplan.sync")


class _Outcome(msgspec.Struct):
    """The outcome of one write; see `bayplan.http_api.document_batch.Outcome`."""

    outcome: str
    code: int
    uid: str = ""
    resource_version: str = "0"
    message: str = ""
    object: Document | None = None


class _Outcomes(msgspec.Struct):
    items: list[_Outcome]


class UnfinishedWrite(NamedTuple):
    """A write that must be finished by single requests, and the created object; None if nothing was written yet."""

    write: SyncWrite
    made: Document | None


_outcomes = msgspec.json.Decoder(_Outcomes).decode


def supports_batches() -> RequestSteps[bool]:
    """Return whether the target supports batches.

    A proxy may return its own errors for unknown paths forever: after `PROBES` errors the result is False.
    """
    probe = ApiRequest("POST", _PATH, b"\n", _LINES)
    response = yield from send_with_retries(probe, max_errors=PROBES, errors=SERVER_ERRORS)
    if response.status >= _FIRST_SERVER_ERROR:
        _log.warning("the target refuses batches: %s; using single requests", response.message)
    return response.ok and _read(response.body, 0) is not None


def fits_batch(write: SyncWrite) -> bool:
    """Return whether a batch supports a write."""
    return write.verb is not Verb.UPDATE


def execute_batch(follower: Follower, writes: Sequence[SyncWrite]) -> RequestSteps[list[UnfinishedWrite]]:
    """Execute writes as batches and report their outcomes to the follower; return the unfinished writes."""
    unfinished: list[UnfinishedWrite] = []
    for some, body in _parts(writes):
        # Pods are complete after their creation, so the response need not contain the objects.
        objects = "objects=1" if any(write.ref.plural != "pods" for write in some) else ""
        response = yield from send_write(read_request(some[0].ref), ApiRequest("POST", _PATH, body, _LINES, objects))
        outcomes = _read(response.body, len(some)) if response.ok else None
        if outcomes is None:
            unfinished += [UnfinishedWrite(write, None) for write in some]
            continue
        for write, outcome in zip(some, outcomes, strict=True):
            left = _report(follower, write, outcome)
            if left is not None:
                unfinished.append(left)
    return unfinished


def _parts(writes: Sequence[SyncWrite]) -> Iterator[tuple[list[SyncWrite], bytes]]:
    """Yield groups of writes, each with its request body; a body exceeds `MAX_BATCH_BYTES` only with a single write."""
    some: list[SyncWrite] = []
    lines: list[bytes] = []
    size = 0
    for write in writes:
        line = _encode(write.document if write.verb is Verb.CREATE else _deletion(write))
        if lines and size + len(line) > MAX_BATCH_BYTES:
            yield some, b"\n".join(lines)
            some, lines, size = [], [], 0
        some.append(write)
        lines.append(line)
        size += len(line)
    if some:
        yield some, b"\n".join(lines)


def _deletion(write: SyncWrite) -> Document:
    kind, ref = BY_PLURAL[write.ref.plural], write.ref
    names: Document = {"name": ref.name, "namespace": ref.namespace, "uid": write.uid}
    named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": names}
    return {"delete": named, "grace_period_seconds": 0}


def _read(body: bytes, count: int) -> list[_Outcome] | None:
    """Return the outcomes in a response, or None if their number differs from the number of writes."""
    try:
        found = _outcomes(body).items
    except msgspec.DecodeError:
        return None
    return found if len(found) == count else None


def _report(follower: Follower, write: SyncWrite, outcome: _Outcome) -> UnfinishedWrite | None:
    """Report the outcome of a write to the follower; return the write if it is unfinished."""
    if outcome.outcome in ("deleted", "absent"):
        follower.done(write, written=outcome.outcome == "deleted")
    elif outcome.outcome == "exists":
        # Another client created the object, or this is a retry.
        follower.found(write, outcome.uid, int(outcome.resource_version))
    elif outcome.outcome == "refused" and (
        outcome.code == _CONFLICT or outcome.code >= _FIRST_SERVER_ERROR or "status" in (write.document or {})
    ):
        # Single requests repeat a write after a conflict or a server error, and create the object even if only its
        # status was refused.
        return UnfinishedWrite(write, None)
    elif outcome.outcome != "created":
        follower.failed(write, outcome.message)
    elif _is_complete(follower, write, outcome.object):
        follower.done(write, outcome.uid, int(outcome.resource_version))
    else:
        return UnfinishedWrite(write, outcome.object)
    return None


def _is_complete(follower: Follower, write: SyncWrite, made: Document | None) -> bool:
    """Return whether a created object is complete. Pods that were created with their status always are."""
    puts = follower.merged(write, made or write.document or {})
    return not puts or write.ref.plural == "pods"


def finish(follower: Follower, unfinished: UnfinishedWrite) -> RequestSteps[bool]:
    """Finish a write that a batch did not execute completely; see `execute_write`."""
    write, made = unfinished
    return (yield from execute_write(follower, write) if made is None else finish_creation(follower, write, made))
