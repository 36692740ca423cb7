"""Many writes in one request, where the cluster here is a Bayplan: creations with their status, and deletions.

Every write keeps the outcome that it would have had by itself. What a batch can't do (replace what is there), and what becomes of a
batch that is refused as a whole, is left to the requests of `bayplan.sync.writing`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bayplan.base.plain_data import Document
from bayplan.client.requests import ApiRequest
from bayplan.sync.followed_kinds import BY_PLURAL
from bayplan.sync.follower import Follower
from bayplan.sync.sync_write import SyncWrite, Verb
from bayplan.sync.writing import Exchange, carry_out, finish_creation, send_patiently

BATCH = 500
"""So many writes are one batch, at most."""

BATCHES_AT_ONCE = 2
"""One is being written while the next one is on its way."""

MOST_BYTES = 8 << 20
"""A batch is sent in parts where it is larger; a part has at least one write."""

PROBES = 8
"""So often it is asked whether batches are taken where the answer is that it can't be told now. That is for 6 s."""

_PATH = "/bayplan/v1/objects"
_LINES = "application/jsonl"
_CONFLICT = 409
_SERVER_ERRORS = 500
_encode = msgspec.json.encode
_log = logging.getLogger("bayplan.sync")


class _Outcome(msgspec.Struct):
    """See `bayplan.http_api.document_batch.Outcome`."""

    outcome: str
    code: int
    uid: str = ""
    resource_version: str = "0"
    message: str = ""
    object: Document | None = None


class _Outcomes(msgspec.Struct):
    items: list[_Outcome]


class Unfinished(NamedTuple):
    """A write that is to be finished by requests of its own; with the object as it was made, or None where nothing was done yet."""

    write: SyncWrite
    made: Document | None


_outcomes = msgspec.json.Decoder(_Outcomes).decode


def takes_batches() -> Exchange[bool]:
    """Find out whether the cluster here takes batches.

    A proxy may have an error of its own for what it does not know, and have it always: after `PROBES` of them the answer is no.
    """
    response = yield from send_patiently(ApiRequest("POST", _PATH, b"\n", _LINES), most_errors=PROBES)
    if response.status >= _SERVER_ERRORS:
        _log.warning("the cluster here refuses batches: %s; all goes in single requests", response.message)
    return response.ok and _read(response.body, 0) is not None


def fits_batch(write: SyncWrite) -> bool:
    """Say whether a batch can do a write."""
    return write.verb is not Verb.UPDATE


def carry_out_batch(follower: Follower, writes: Sequence[SyncWrite]) -> Exchange[list[Unfinished]]:
    """Carry out writes and report to the follower what came of them, but for those that are returned."""
    unfinished: list[Unfinished] = []
    for some, body in _parts(writes):
        # Of pods nothing is left to be done when they are made whole, so that nobody has to look at them.
        objects = "objects=1" if any(write.ref.plural != "pods" for write in some) else ""
        response = yield from send_patiently(ApiRequest("POST", _PATH, body, _LINES, objects))
        outcomes = _read(response.body, len(some)) if response.ok else None
        if outcomes is None:
            unfinished += [Unfinished(write, None) for write in some]
            continue
        for write, outcome in zip(some, outcomes, strict=True):
            left = _report(follower, write, outcome)
            if left is not None:
                unfinished.append(left)
    return unfinished


def _parts(writes: Sequence[SyncWrite]) -> Iterator[tuple[list[SyncWrite], bytes]]:
    """Yield writes as bodies that are not too large."""
    some: list[SyncWrite] = []
    lines: list[bytes] = []
    size = 0
    for write in writes:
        line = _encode(write.document if write.verb is Verb.CREATE else _deletion(write))
        if lines and size + len(line) > MOST_BYTES:
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
    """Return the outcomes in an answer; None where it is none for so many writes."""
    try:
        found = _outcomes(body).items
    except msgspec.DecodeError:
        return None
    return found if len(found) == count else None


def _report(follower: Follower, write: SyncWrite, outcome: _Outcome) -> Unfinished | None:
    """Tell the follower what became of a write; return it where something is left to be done."""
    if outcome.outcome in ("deleted", "absent"):
        follower.done(write)
    elif outcome.outcome == "exists":
        # Somebody else has made it, or this is the second try.
        follower.found(write, outcome.uid, int(outcome.resource_version))
    elif outcome.outcome == "refused" and "status" in (write.document or {}):
        # It may be the status alone that is refused: by itself the object would be made nevertheless.
        return Unfinished(write, None)
    elif outcome.outcome != "created":
        follower.failed(write, outcome.message, retry=outcome.code == _CONFLICT)
    elif _is_as_wanted(follower, write, outcome.object):
        follower.done(write, outcome.uid, int(outcome.resource_version))
    else:
        return Unfinished(write, outcome.object)
    return None


def _is_as_wanted(follower: Follower, write: SyncWrite, made: Document | None) -> bool:
    """Say whether nothing is left to be written about an object that was made; of a pod made whole nothing ever is."""
    puts = follower.merged(write, made or write.document or {})
    return not puts or write.ref.plural == "pods"


def finish(follower: Follower, unfinished: Unfinished) -> Exchange[None]:
    """Finish a write that a batch could not do, or not to the end; report to the follower what came of it."""
    write, made = unfinished
    yield from carry_out(follower, write) if made is None else finish_creation(follower, write, made)
