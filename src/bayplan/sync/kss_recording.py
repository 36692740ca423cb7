"""Recordings of kube-scheduler-simulator: one JSON line per event, ``{"time": ..., "event": "Add", "resource": ...}``.

Its recorder watches namespaces, priority classes, storage classes, claims, nodes, volumes and pods, and writes all
events. There is no header, and the end of the initial state is not marked: initial objects are additions, kind after
kind, mixed with changes of earlier kinds. So an added object that is older than the recording counts as initial. Times
are those of the recorder's machine, in its time zone, taken before the event is queued for writing, so they may go back
slightly. A deletion has only the name of the object; a deletion during an interruption of the watch is never written.

Source: simulator/recorder of that project, and docs of its command ``sched-recorder``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.base.plain_data import Document, part, text
from bayplan.sync.feed import Changed, Listed
from bayplan.sync.followed_kinds import BY_KIND, FOLLOWED_KINDS, FollowedKind
from bayplan.sync.recording import read_lines
from bayplan.sync.timed_change import RecordingHeader, TimedChange

_ADD, _UPDATE, _DELETE = "Add", "Update", "Delete"


class KssLine(msgspec.Struct):
    """One event."""

    time: str
    event: str
    resource: Document


_decode = msgspec.json.Decoder(KssLine).decode


class KssRecording:
    """A recording of kube-scheduler-simulator; a `bayplan.sync.timed_change.Recording`.

    Args:
        path: the path of the file.
        first: the first line of the file.
    """

    def __init__(self, path: Path, first: KssLine) -> None:
        self._path = path
        kinds = tuple(kind.plural for kind in FOLLOWED_KINDS)
        self.header = RecordingHeader("kube-scheduler-simulator", _time_ns(first, f"{path}:1"), kinds)

    def changes(self) -> Iterator[TimedChange]:
        """See `bayplan.sync.timed_change.Recording`. The file is read twice: for the initial objects, and for the changes."""
        beginning: dict[str, list[Document]] = {kind: [] for kind in self.header.kinds}
        for kind, line, _, is_initial in self._lines():
            if is_initial:
                beginning[kind.plural].append(line.resource)
        yield from _lists(beginning)
        for kind, line, where, is_initial in self._lines():
            if not is_initial:
                offset_ns = max(_time_ns(line, where) - self.header.started_ns, 0)
                change = Changed(kind.plural, line.resource, deleted=line.event == _DELETE)
                yield TimedChange(offset_ns, change)

    def _lines(self) -> Iterator[tuple[FollowedKind, KssLine, str, bool]]:
        """Yield the events of synced kinds: kind, line, place in the file, and whether the event adds an initial object."""
        only_additions = True
        for number, raw in enumerate(read_lines(self._path), start=1):
            where = f"{self._path}:{number}"
            try:
                line = _decode(raw)
            except msgspec.MsgspecError as problem:
                raise InputError("recording", where=where, wanted="a line of a recording", got=str(problem)) from None
            if line.event not in (_ADD, _UPDATE, _DELETE):
                raise InputError("event", where=where, got=repr(line.event), wanted="Add, Update or Delete")
            kind = BY_KIND.get(text(line.resource, "kind"))
            if kind is None:
                continue
            created = text(part(line.resource, "metadata"), "creationTimestamp")
            # Without creation times, only the order is known.
            older = parse_time_ns(created) <= self.header.started_ns if created else only_additions
            is_initial = line.event == _ADD and older
            only_additions = only_additions and is_initial
            yield kind, line, where, is_initial


def _lists(beginning: dict[str, list[Document]]) -> Iterator[TimedChange]:
    for plural, documents in beginning.items():
        yield TimedChange(0, Listed(plural, documents))


def _time_ns(line: KssLine, where: str) -> int:
    try:
        return parse_time_ns(line.time)
    except InputError:
        wanted = "a time such as 2025-04-28T10:00:00.5Z"
        raise InputError("time", where=where, got=repr(line.time), wanted=wanted) from None
