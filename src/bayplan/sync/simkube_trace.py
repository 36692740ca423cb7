"""Traces of SimKube (format 2, MessagePack or JSON): applied and deleted workloads, and the run times of their pods.

A trace mostly has workloads, whose pods the target's controllers create; bare pods are applied without their node. The annotation
``bayplan.io/run-time`` sets the pods' run time on the virtual kubelet. If the run times of several pods of one owner are known, all
its pods get their mean, because a template has one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part, text
from bayplan.cluster.run_time import FOREVER, RUN_TIME_ANNOTATION
from bayplan.formats.files import InputFile, read_bytes
from bayplan.sync.timed_change import Applied, RecordingHeader, TimedChange
from bayplan.sync.translation import without_tokens

TRACE_VERSION = 2
_SERVER_SET = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "ownerReferences",
)
_TEMPLATES = {"Pod": (), "CronJob": ("spec", "jobTemplate", "spec", "template")}
_USUAL_TEMPLATE = ("spec", "template")
_END_BY_THEMSELVES = ("Pod", "Job", "CronJob")
"""Kinds whose pods may end by themselves."""


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[Document] = []
    deleted_objs: list[Document] = []


_Lives = dict[int, list[Document | str]]
"""Timelines of pods by template: ``{"Running": START}``, ``{"Finished": [START, END]}``, or the text ``Empty``."""


class SimKubeTrace(msgspec.Struct):
    """A trace in a JSON file. The owners of pods are strings that contain JSON."""

    version: int
    events: list[_Event]
    pod_lifecycles: dict[str, _Lives] = {}

    def lives(self) -> dict[tuple[str, str], _Lives]:
        """Return the timelines of pods by owner (``apiVersion.kind``, ``namespace/name``), then by template."""
        decode = msgspec.json.Decoder(tuple[str, str]).decode
        return {decode(owner): lives for owner, lives in self.pod_lifecycles.items()}


class _PackedTrace(msgspec.Struct):
    """A trace in a MessagePack file."""

    version: int
    events: list[_Event]
    pod_lifecycles: dict[tuple[str, str], _Lives] = {}

    def lives(self) -> dict[tuple[str, str], _Lives]:
        return self.pod_lifecycles


class SimKubeRecording:
    """A trace of SimKube; a `bayplan.sync.timed_change.Recording`.

    Args:
        path: the path of the file, for messages.
        trace: the content of the trace.

    Raises:
        InputError: the trace has a different version.
    """

    def __init__(self, path: Path, trace: SimKubeTrace | _PackedTrace) -> None:
        if trace.version != TRACE_VERSION:
            got, wanted = f"version {trace.version}", f"version {TRACE_VERSION}"
            raise InputError("SimKube trace", where=str(path), got=got, wanted=wanted)
        self._events = sorted(trace.events, key=lambda event: event.ts)
        self._run_seconds = _run_seconds(trace, str(path))
        started_ns = self._events[0].ts * SECOND_NS if self._events else 0
        self.header = RecordingHeader("simkube", started_ns, (), applies=True)

    def changes(self) -> Iterator[TimedChange]:
        """Yield all applied and deleted workloads, in order of time; see `bayplan.sync.timed_change.Recording`."""
        for event in self._events:
            offset_ns = event.ts * SECOND_NS - self.header.started_ns
            for document in event.applied_objs:
                yield TimedChange(offset_ns, Applied(self._as_applied(document)))
            for document in event.deleted_objs:
                yield TimedChange(offset_ns, Applied(document, deleted=True))

    def _as_applied(self, document: Document) -> Document:
        """Return an object to apply, with the run time of its pods."""
        metadata = {name: each for name, each in part(document, "metadata").items() if name not in _SERVER_SET}
        applied: Document = {name: each for name, each in document.items() if name != "status"} | {"metadata": metadata}
        kind = text(document, "kind")
        owner = (
            f"{document.get('apiVersion')}.{kind}",
            f"{metadata.get('namespace', 'default')}/{metadata.get('name')}",
        )
        seconds = self._run_seconds.get(owner)
        if kind == "Pod":
            left_out = ("nodeName", "serviceAccountName", "serviceAccount")
            spec = {name: each for name, each in part(document, "spec").items() if name not in left_out}
            applied["spec"] = without_tokens(spec)
        path = _TEMPLATES.get(kind, _USUAL_TEMPLATE)
        if seconds is not None:
            applied = _annotated(applied, path, f"{seconds}s")
        elif kind in _END_BY_THEMSELVES:
            # No end is known, so the target's default run time must not apply.
            applied = _annotated(applied, path, FOREVER)
        return applied


def read_simkube(path: Path, first: bytes) -> SimKubeRecording | None:
    """Return the trace in a file, or None if the file is not a trace.

    Args:
        path: the path of the file.
        first: the first bytes, unpacked.
    """
    packed = first[:1] and (first[0] & 0xF0 == 0x80 or first[0] in (0xDE, 0xDF))
    if not packed and not first.lstrip().startswith(b"{"):
        return None
    data = read_bytes(InputFile(str(path), path))
    try:
        trace = (
            msgspec.msgpack.decode(data, type=_PackedTrace) if packed else msgspec.json.decode(data, type=SimKubeTrace)
        )
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return SimKubeRecording(path, trace)


def _run_seconds(trace: SimKubeTrace | _PackedTrace, where: str) -> dict[tuple[str, str], int]:
    """Return the mean run time of the finished pods of each owner, in seconds; owners without finished pods are omitted."""
    try:
        owners = trace.lives()
    except msgspec.MsgspecError as problem:
        raise InputError("pod_lifecycles", where=where, got=str(problem), wanted='["kind", "namespace/name"]') from None
    found: dict[tuple[str, str], int] = {}
    for owner, by_template in owners.items():
        known = [each for lives in by_template.values() for each in lives if isinstance(each, dict)]
        finished = [each["Finished"] for each in known if "Finished" in each]
        spans = [each[1] - each[0] for each in finished if isinstance(each, list) and len(each) == 2]
        if spans:
            found[owner] = max(round(sum(spans) / len(spans)), 0)
    return found


def _annotated(document: Document, path: tuple[str, ...], run_time: str) -> Document:
    """Return a document with the run time annotation on the object (a template) at a path in it."""
    if path:
        return {**document, path[0]: _annotated(part(document, path[0]), path[1:], run_time)}
    metadata = part(document, "metadata")
    annotations = {**part(metadata, "annotations"), RUN_TIME_ANNOTATION: run_time}
    return {**document, "metadata": {**metadata, "annotations": annotations}}
