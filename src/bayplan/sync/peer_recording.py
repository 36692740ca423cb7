"""Recordings of kube-scheduler-simulator: a line of JSON for each event, ``{"time": ..., "event": "Add", "resource": {...}}``.

They have no header and do not say where the cluster's state at the beginning ends. It is what is added in the beginning, before
anything else happens, and is older than the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bayplan.base.errors import InputError
from bayplan.objects.meta import parse_time_ns
from bayplan.sync.document import Document, part, text
from bayplan.sync.feed import Changed, Listed
from bayplan.sync.followed_kinds import BY_KIND, FOLLOWED_KINDS
from bayplan.sync.recording import read_lines
from bayplan.sync.timed_change import RecordingHeader, TimedChange

_ADD, _UPDATE, _DELETE = "Add", "Update", "Delete"


class PeerLine(msgspec.Struct):
    """One event."""

    time: str
    event: str
    resource: Document


_decode = msgspec.json.Decoder(PeerLine).decode


class PeerRecording:
    """Read a recording of kube-scheduler-simulator.

    Args:
        path: of the file.
        first: its first line.
    """

    def __init__(self, path: Path, first: PeerLine) -> None:
        self._path = path
        kinds = tuple(kind.plural for kind in FOLLOWED_KINDS)
        self.header = RecordingHeader("kube-scheduler-simulator", _time_ns(first, f"{path}:1"), kinds)

    def changes(self) -> Iterator[TimedChange]:
        """See `bayplan.sync.timed_change.Recording`."""
        beginning: dict[str, list[Document]] | None = {kind: [] for kind in self.header.kinds}
        for number, raw in enumerate(read_lines(self._path), start=1):
            where = f"{self._path}:{number}"
            try:
                line = _decode(raw)
            except msgspec.MsgspecError as problem:
                raise InputError("recording", where=where, got=str(problem)) from None
            if line.event not in (_ADD, _UPDATE, _DELETE):
                raise InputError("event", where=where, got=repr(line.event), wanted="Add, Update or Delete")
            kind = BY_KIND.get(text(line.resource, "kind"))
            if kind is None:
                continue
            if beginning is not None and line.event == _ADD and self._is_older(line.resource):
                beginning[kind.plural].append(line.resource)
                continue
            if beginning is not None:
                yield from _lists(beginning)
                beginning = None
            offset_ns = max(_time_ns(line, where) - self.header.started_ns, 0)
            yield TimedChange(offset_ns, Changed(kind.plural, line.resource, deleted=line.event == _DELETE))
        if beginning is not None:
            yield from _lists(beginning)

    def _is_older(self, resource: Document) -> bool:
        created = text(part(resource, "metadata"), "creationTimestamp")
        return not created or parse_time_ns(created) <= self.header.started_ns


def _lists(beginning: dict[str, list[Document]]) -> Iterator[TimedChange]:
    for plural, documents in beginning.items():
        yield TimedChange(0, Listed(plural, documents))


def _time_ns(line: PeerLine, where: str) -> int:
    try:
        return parse_time_ns(line.time)
    except InputError:
        wanted = "a time such as 2025-04-28T10:00:00.5Z"
        raise InputError("time", where=where, got=repr(line.time), wanted=wanted) from None
