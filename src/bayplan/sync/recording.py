"""Bayplan's recordings: a JSON line as header, then a line per change; compressed with gzip if the name ends in ``.gz``.

::

    {"bayplan_recording": 1, "bayplan": "0.1.0", "started_ns": 1795284595000000000, "kinds": ["nodes", "pods"], "redacted": false}
    {"ns": 0, "list": "nodes", "items": [{...}, ...], "more": true}
    {"ns": 0, "list": "nodes", "items": [{...}]}
    {"ns": 1730000000, "put": "pods", "object": {...}}
    {"ns": 2940000000, "delete": "pods", "object": {"metadata": {...}}}

The list of a kind may have several lines; all except the last have ``more``. An incomplete recording ends with its last
whole line.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time
from bayplan.base.plain_data import Document, items, part
from bayplan.base.version import __version__
from bayplan.objects.kinds import decode, encode
from bayplan.sync.feed import Bookmark, Changed, FeedChange, Listed, PartListed
from bayplan.sync.followed_kinds import BY_PLURAL, SPREAD_OWNERS, FollowedKind
from bayplan.sync.timed_change import RecordingHeader, TimedChange
from bayplan.sync.translation import workload_spec

_COPIED_ANNOTATIONS = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "bayplan.io/")
_LEFT_OUT_OF_CONTAINERS = ("command", "args", "env", "envFrom")


def redacted(kind: FollowedKind, document: Document) -> Document:
    """Return an object with only names, labels, uids, times, and the fields that the scheduler reads.

    If an object can't be decoded, only its metadata is kept.
    """
    metadata = part(document, "metadata")
    kept: Document = {
        name: metadata[name]
        for name in ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")
        if name in metadata
    }
    for name in ("deletionTimestamp", "ownerReferences"):
        if name in metadata:
            kept[name] = metadata[name]
    annotations = {
        name: value for name, value in part(metadata, "annotations").items() if name.startswith(_COPIED_ANNOTATIONS)
    }
    if annotations:
        kept["annotations"] = annotations
    if kind.kind == "RuntimeClass":
        read: Document = {name: document[name] for name in ("handler", "overhead", "scheduling") if name in document}
    else:
        try:
            read = encode(decode({**document, "apiVersion": kind.api_version, "kind": kind.kind}))
        except InputError:
            read = {}
    if (kind.api_version, kind.kind) in SPREAD_OWNERS:
        read["spec"] = workload_spec(part(read, "spec"))
        part(part(part(read, "spec"), "template"), "metadata").pop("annotations", None)
    pod_specs = (part(read, "spec"), part(part(part(read, "spec"), "template"), "spec"))
    for pod_spec in pod_specs:
        for container in items(pod_spec, "containers") + items(pod_spec, "initContainers"):
            for name in _LEFT_OUT_OF_CONTAINERS:
                container.pop(name, None)
    return {**read, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": kept}


FORMAT_VERSION = 1
LIST_LINE = 500
"""Maximum number of listed objects per line."""

_encode = msgspec.json.encode


class HeaderLine(msgspec.Struct, kw_only=True):
    """The first line of a recording."""

    bayplan_recording: int
    bayplan: str = ""
    kubernetes: str = ""
    started_at: str = ""
    started_ns: int = 0
    kinds: list[str] = []
    redacted: bool = False


class _Line(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line after the first.

    One of `listed`, `put` and `delete` is the plural name of a kind, the others are empty.
    """

    ns: int
    listed: str = msgspec.field(name="list", default="")
    items: list[Document] = []
    more: bool = False
    put: str = ""
    delete: str = ""
    object: Document = {}


class RecordingWriter:
    """Writes a recording.

    Args:
        path: the path of the file, which is replaced; compressed if it ends in ``.gz``.
        header: the description of the recording.

    Raises:
        InputError: the file can't be written.
    """

    def __init__(self, path: Path, header: RecordingHeader) -> None:
        self.changes = 0
        self._header = header
        try:
            # A timestamp in the gzip header would make equal recordings differ.
            plain = path.open("wb")
            self._plain = plain
            self._file: IO[bytes] = (
                cast("IO[bytes]", gzip.GzipFile("", "wb", fileobj=plain, mtime=0)) if path.suffix == ".gz" else plain
            )
        except OSError as problem:
            raise InputError("recording", where=str(path), got=(problem.strerror or str(problem)).lower()) from None
        line = HeaderLine(
            bayplan_recording=FORMAT_VERSION,
            bayplan=__version__,
            kubernetes=header.kubernetes,
            started_at=format_time(header.started_ns),
            started_ns=header.started_ns,
            kinds=list(header.kinds),
            redacted=header.redacted,
        )
        self._file.write(_encode(line) + b"\n")

    def write(self, now_ns: int, change: FeedChange) -> None:
        """Write a change with its time, nanoseconds since 1970."""
        if isinstance(change, Bookmark | PartListed):
            return  # The complete list of the kind follows these.
        offset_ns = max(now_ns - self._header.started_ns, 0)
        self.changes += 1
        if isinstance(change, Listed):
            documents = [self._recorded(each, change.plural) for each in change.documents]
            for start in range(0, len(documents) or 1, LIST_LINE):
                part = documents[start : start + LIST_LINE]
                more = start + LIST_LINE < len(documents)
                self._line(_Line(ns=offset_ns, listed=change.plural, items=part, more=more))
        elif change.deleted:
            self._line(_Line(ns=offset_ns, delete=change.plural, object=change.document))
        else:
            recorded = self._recorded(change.document, change.plural)
            self._line(_Line(ns=offset_ns, put=change.plural, object=recorded))

    def _recorded(self, document: Document, plural: str) -> Document:
        if self._header.redacted:
            return redacted(BY_PLURAL[plural], document)
        metadata = cast("Document", document.get("metadata") or {})
        return {**document, "metadata": {name: each for name, each in metadata.items() if name != "managedFields"}}

    def _line(self, line: _Line) -> None:
        self._file.write(_encode(line) + b"\n")

    def flush(self) -> None:
        """Flush everything to the file, so that it can be read after a crash."""
        self._file.flush()
        self._plain.flush()

    def close(self) -> None:
        """Finish and close the file."""
        self._file.close()
        self._plain.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BayplanRecording:
    """One of Bayplan's recordings; a `bayplan.sync.timed_change.Recording`.

    Args:
        path: the path of the file.
        header: the first line of the file.
    """

    def __init__(self, path: Path, header: HeaderLine) -> None:
        if header.bayplan_recording != FORMAT_VERSION:
            got, wanted = f"version {header.bayplan_recording}", f"version {FORMAT_VERSION}"
            raise InputError("recording", where=str(path), got=got, wanted=wanted, hint="a newer Bayplan")
        self._path = path
        kinds = tuple(kind for kind in header.kinds if kind in BY_PLURAL)
        self.header = RecordingHeader("bayplan", header.started_ns, kinds, header.kubernetes, header.redacted)

    def changes(self) -> Iterator[TimedChange]:
        """Read all changes, in order; see `bayplan.sync.timed_change.Recording`."""
        decode = msgspec.json.Decoder(_Line).decode
        collected: list[Document] = []
        for number, raw in enumerate(read_lines(self._path), start=1):
            if number == 1:
                continue
            try:
                line = decode(raw)
            except msgspec.MsgspecError as problem:
                raise InputError(
                    "recording", where=f"{self._path}:{number}", wanted="a line of a recording", got=str(problem)
                ) from None
            if line.listed:
                collected += line.items
                if not line.more:
                    yield TimedChange(line.ns, Listed(line.listed, collected))
                    collected = []
            elif line.put or line.delete:
                change = Changed(line.put or line.delete, line.object, deleted=bool(line.delete))
                yield TimedChange(line.ns, change)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file, compressed or not; an incomplete last line is skipped.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as lines:
            while (line := lines.readline()).endswith(b"\n"):
                yield line
            if _is_whole(line):
                yield line
    except EOFError:
        return
    except OSError as problem:
        raise InputError("recording", where=str(path), got=(problem.strerror or str(problem)).lower()) from None


def _is_whole(line: bytes) -> bool:
    """Return whether a last line without a line break is complete."""
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True
