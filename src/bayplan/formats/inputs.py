"""The entry point for reading files: from paths to bytes, to documents with positions, and to objects with warnings.

`load_inputs` returns typed objects, for simulations and questions. `read_objects` returns documents, for the API server
and a sync, which decode them like request bodies.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile, find_files, read_bytes, table_files, table_pattern
from bayplan.formats.manifest import LoadWarning, Manifest, PlainObject, WarningKind
from bayplan.formats.manifests import GeneratedNames, ManifestLoader
from bayplan.formats.trace import Trace

if TYPE_CHECKING:
    from bayplan.formats.documents import Document, ReportMalformed
    from bayplan.formats.traces.reading import TraceTable

LoadProgress = Callable[[str, int], None]
"""Called with the current file and the number of documents read so far, after every 1,000 documents and at the end of each file."""

_PROGRESS_STEP = 1000
_SHOWN_TABLES = 3
_YAML = (".yaml", ".yml")


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The loaded input: all manifests together, and the trace.

    Attributes:
        manifest: the objects of all manifests; empty if none were given.
        trace: the trace; None if none was given.
    """

    manifest: Manifest
    trace: Trace | None


def read_objects(
    paths: Sequence[str], *, stdin: BinaryIO | None = None, report: ReportMalformed | None = None
) -> Iterator[PlainObject]:
    """Yield the objects of manifests and dumps, as written.

    Args:
        paths: files, folders, patterns and `-`; see `bayplan.formats.files.find_files`.
        stdin: the stream for `-`.
        report: called with each document that is invalid or not an object, in order; the others are yielded.

    Raises:
        InputError: a file can't be found or read, or without `report`, a document is invalid or not an object.
    """
    from bayplan.formats.documents import MalformedDocument, read_documents

    for file in find_files(paths):
        for document in read_documents(read_bytes(file, stdin=stdin), file.name, suffix=file.suffix, report=report):
            try:
                value = document.value_with_kind()
            except InputError as error:
                if report is None:
                    raise
                report(MalformedDocument.of(document.number, error))
            else:
                yield PlainObject(value, str(document.source))


def load_inputs(
    paths: Sequence[str],
    *,
    stdin: BinaryIO | None = None,
    strict: bool = False,
    progress: LoadProgress | None = None,
    names: GeneratedNames | None = None,
) -> Inputs:
    """Read manifests and traces, e.g. `nodes.csv pods.csv extra.yaml`.

    Tables of traces are recognised by name and header (see `bayplan.formats.traces.reading.detect_table`); everything
    else is a manifest. A Trace document can name further tables and select a part of them. Pods of manifests may be
    bound to nodes of the trace. Tables in folders are not read; without a trace, they cause a warning.

    Args:
        paths: see `bayplan.formats.files.find_files`; `-` must be a manifest.
        stdin: the stream for `-`.
        strict: whether to refuse input that otherwise causes a warning.
        progress: see `LoadProgress`.
        names: see `ManifestLoader`.

    Raises:
        InputError: a file is invalid (see `bayplan.formats.manifests` and `bayplan.formats.traces`), or there are
            several traces, or an object of the manifests has the name of a node or pod of the trace.
    """
    manifests: list[InputFile] = []
    tables: list[tuple[InputFile, TraceTable]] = []
    for file in find_files(paths):
        table = _table(file)
        if table is None:
            manifests.append(file)
        else:
            tables.append((file, table))
    loader = ManifestLoader(strict=strict, names=names)
    with _collector_paused():
        trace = _read_trace(tables)
        for file in manifests:
            trace = _load_file(loader, file, stdin, progress, trace)
        nodes, pods = (trace.nodes, trace.pods) if trace is not None else ((), ())
        manifest = loader.finish([node.metadata.name for node in nodes], (each.pod for each in pods))
    if trace is None:
        _warn_of_tables(manifest, paths, strict=strict)
    else:
        _check_names(manifest, trace)
    return Inputs(manifest=manifest, trace=trace)


def load_documents(
    documents: Iterable[Document],
    *,
    strict: bool = False,
    known_nodes: Collection[str] = (),
    names: GeneratedNames | None = None,
) -> Manifest:
    """Load documents that have already been read, for example parts of another document.

    Args:
        documents: the documents with their positions.
        strict: whether to refuse input that otherwise causes a warning.
        known_nodes: the names of nodes from other input, to which pods may be bound.
        names: see `ManifestLoader`.
    """
    loader = ManifestLoader(strict=strict, names=names)
    for document in documents:
        loader.take(document)
    return loader.finish(known_nodes)


def _table(file: InputFile) -> TraceTable | None:
    if file.path is None or file.suffix in _YAML:
        return None
    # Return before importing the trace readers for YAML: their import takes longer than reading a small manifest.
    from bayplan.formats.traces.reading import detect_table

    return detect_table(file)


def _check_names(manifest: Manifest, trace: Trace) -> None:
    """Raise InputError if a node or pod of the manifests has the name of one of the trace, which would replace it."""
    sources = {(each.kind.kind, each.typed.key): each.source for each in manifest.loaded}
    sources = {key: source for key, source in sources.items() if key[0] in ("Node", "Pod")}
    if not sources:
        return
    for name in chain((("Node", node.key) for node in trace.nodes), (("Pod", timed.pod.key) for timed in trace.pods)):
        if name in sources:
            kind, key = name
            wanted = f"a name that no {kind.lower()} of the trace has"
            raise InputError(f"{kind} $.metadata.name", where=str(sources[name]), wanted=wanted, got=f"'{key}'")


def _warn_of_tables(manifest: Manifest, paths: Sequence[str], *, strict: bool) -> None:
    """Warn of tables of traces in folders, where only manifests are read.

    Raises:
        InputError: there are such tables, and the load is strict.
    """
    tables: list[InputFile] = []
    others: dict[str, str] = {}
    for file in table_files(paths):
        if _is_table(file):
            tables.append(file)
        else:
            others.setdefault(table_pattern(file), file.name)
    if not tables:
        return
    # A pattern must match tables only, so tables next to other files with their suffix are named one by one.
    patterns = dict.fromkeys(table_pattern(file) for file in tables)
    named = dict.fromkeys(file.name if (pattern := table_pattern(file)) in others else pattern for file in tables)
    moved = ""
    if len(named) > _SHOWN_TABLES:
        moved = ", after moving " + ", ".join(others[pattern] for pattern in patterns if pattern in others)
        named = patterns
    shown = [file.name for file in tables[:_SHOWN_TABLES]]
    what = f"{', '.join(shown)}{' and others' * (len(tables) > _SHOWN_TABLES)}"
    problem, hint = "in folders, only manifests are read", " ".join(dict.fromkeys([*paths, *named])) + moved
    if strict:
        raise InputError(f"{what}: {problem}; refused because of --strict", hint=hint)
    kind = WarningKind.UNREAD_TABLES
    problem += "; this trace is ignored"
    manifest.warnings.append(
        LoadWarning(kind=kind, where=os.path.dirname(tables[0].name), what=what, problem=problem, hint=hint)
    )


def _is_table(file: InputFile) -> bool:
    try:
        # Reading a pipe may never end.
        return os.path.isfile(file.name) and _table(file) is not None
    except InputError:
        return False


def _read_trace(tables: Sequence[tuple[InputFile, TraceTable]]) -> Trace | None:
    if not tables:
        return None
    from bayplan.formats.traces.reading import read_trace

    return read_trace(tables)


def _load_file(
    loader: ManifestLoader,
    file: InputFile,
    stdin: BinaryIO | None,
    progress: LoadProgress | None,
    trace: Trace | None,
) -> Trace | None:
    """Load a file of documents. Return the given trace, or that of a Trace document in the file."""
    # Imported here because tables of traces can be read without YAML.
    from bayplan.formats.documents import read_documents

    loader.begin(file)
    before = loader.documents
    for document in read_documents(read_bytes(file, stdin=stdin), file.name, suffix=file.suffix):
        if _is_trace(document):
            from bayplan.formats.traces.document import read_document

            if trace is not None:
                raise InputError(
                    "Trace", where=document.where(), wanted="one trace", got=f"a second one ({trace.format})"
                )
            trace = read_document(document, os.path.dirname(file.name) if file.path is not None else "")
            loader.documents += 1
            continue
        loader.take(document)
        if progress is not None and loader.documents % _PROGRESS_STEP == 0:
            progress(file.name, loader.documents)
    if loader.documents == before:
        raise InputError(file.name, wanted="at least one object", got="a file without documents")
    if progress is not None:
        progress(file.name, loader.documents)
    return trace


def _is_trace(document: Document) -> bool:
    value = document.value
    return isinstance(value, dict) and value.get("kind") == "Trace" and value.get("apiVersion") == "bayplan.io/v1alpha1"


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause cyclic garbage collection: loading creates no cycles, and collections would repeatedly scan all loaded objects.

    A host that keeps a large manifest may call `gc.freeze()` after the load, for the same reason.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
