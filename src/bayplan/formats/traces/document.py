"""Read Trace files: the files of a trace, the part to select, and the size of the machine that amounts are fractions of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.base.near_names import near_name
from bayplan.formats.documents import Document
from bayplan.formats.files import InputFile, find_files
from bayplan.formats.trace import Trace
from bayplan.formats.traces.reader import ReadOptions
from bayplan.formats.traces.reading import READERS, TraceTable, detect_table, read_trace
from bayplan.formats.traces.selection import Selection
from bayplan.formats.traces.shapes import MachineSize
from bayplan.formats.typed_documents import Part, placed, read_typed

API_VERSION = "bayplan.io/v1alpha1"
KIND = "Trace"

Count: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]


class Machine(Part, frozen=True, kw_only=True):
    """The size of one machine, see `MachineSize`. `type`: the kind of machine, for traces with several."""

    cpu: str = "64"
    memory: str = "256Gi"
    gpus: Annotated[int, Meta(ge=0, le=1000)] = 0
    pods: Count = 1000
    type: str = ""


class TraceDocument(Part, frozen=True, kw_only=True):
    """The fields of a Trace file, with paths relative to it. `bayplan.formats.traces.selection.Selection` has the selection."""

    api_version: Literal["bayplan.io/v1alpha1"]
    kind: Literal["Trace"]
    format: str = ""
    files: tuple[str, ...] = ()
    tables: Mapping[str, tuple[str, ...]] = {}
    start: str = field(name="from", default="0s")
    until: str | None = None
    running: bool = True
    sample: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    limit: Count | None = None
    machine: Machine = Machine()
    nodes: Count | None = None
    skip_invalid: bool = False


def read_document(document: Document, folder: str) -> Trace:
    """Return the trace that a Trace document describes.

    Args:
        document: the document.
        folder: the folder of its file, which paths are relative to.

    Raises:
        InputError: the document (with file and line) or a file that it names is invalid.
    """
    found = read_typed(document, TraceDocument, kind=KIND, api_version=API_VERSION)
    try:
        _check_format(found)
        options = _options(found)
        return read_trace(_files(found, folder), options)
    except InputError as problem:
        raise (placed(problem, document) if problem.what.startswith(f"{KIND} $") else problem) from None


def _options(found: TraceDocument) -> ReadOptions:
    from_ns = read_long_duration(found.start, what=f"{KIND} $.from")
    until_ns = None if found.until is None else read_long_duration(found.until, what=f"{KIND} $.until")
    if until_ns is not None and until_ns <= from_ns:
        raise InputError(f"{KIND} $.until", wanted=f"a time after from ({found.start})", got=repr(found.until))
    machine = found.machine
    return ReadOptions(
        selection=Selection(
            from_ns=from_ns,
            until_ns=until_ns,
            running=found.running,
            sample=found.sample,
            seed=found.seed,
            limit=found.limit,
        ),
        machine=MachineSize.of(cpu=machine.cpu, memory=machine.memory, gpus=machine.gpus, pods=machine.pods),
        machine_type=machine.type,
        nodes=found.nodes,
        skip_invalid=found.skip_invalid,
    )


def _check_format(found: TraceDocument) -> None:
    if found.format and found.format not in READERS:
        hint = near_name(found.format, READERS)
        wanted = f"one of {', '.join(READERS)}"
        raise InputError(f"{KIND} $.format", wanted=wanted, got=repr(found.format), hint=repr(hint) if hint else "")
    tables = READERS[found.format].tables if found.format else {}
    for name in found.tables:
        if name not in tables:
            wanted = (
                f"a table of {found.format} ({', '.join(tables)})" if tables else "$.format, which defines the tables"
            )
            raise InputError(f"{KIND} $.tables.{name}", wanted=wanted, got=repr(name))


def _files(found: TraceDocument, folder: str) -> list[tuple[InputFile, TraceTable]]:
    files: list[tuple[InputFile, TraceTable]] = []
    for name, paths in found.tables.items():
        files += [(file, TraceTable(READERS[found.format], name)) for file in _found(paths, folder)]
    for file in _found(found.files, folder):
        table = detect_table(file)
        if table is None:
            wanted = "a table of a trace under its published name, or with its table name under $.tables"
            raise InputError(f"{KIND} $.files", wanted=wanted, got=repr(file.name))
        if found.format and table.reader.name != found.format:
            raise InputError(
                f"{KIND} $.files",
                wanted=f"tables of {found.format}",
                got=f"{file.name}, a table of {table.reader.name}",
            )
        files.append((file, table))
    if not files:
        raise InputError(f"{KIND} $.files", wanted="at least one file", got="none")
    return files


def _found(paths: tuple[str, ...], folder: str) -> list[InputFile]:
    return find_files([os.path.join(folder, path) for path in paths]) if paths else []
