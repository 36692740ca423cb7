"""The entry point for traces: recognise the trace and table of each file, and read all files of one trace."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.base.text_encoding import is_utf16
from bayplan.formats.files import InputFile
from bayplan.formats.trace import Trace
from bayplan.formats.traces import alibaba_2017, alibaba_2018, alibaba_gpu_2020, azure_2020, borg_2019, openb, philly
from bayplan.formats.traces.reader import ReadOptions, TraceReader
from bayplan.formats.traces.streams import read_head

READERS: Mapping[str, type[TraceReader]] = {
    each.name: each
    for each in (
        alibaba_2017.Reader,
        alibaba_2018.Reader,
        alibaba_gpu_2020.Reader,
        openb.Reader,
        azure_2020.Reader,
        borg_2019.Reader,
        philly.Reader,
    )
}
"""The readers by the names of their formats."""

_PACKED = re.compile(r"\.(gz|zst)$")
_SUFFIX = re.compile(r"\.(csv|json|jsonl|sqlite3?|db)$")
_SHARD = re.compile(r"-\d+(-of-\d+)?$")


class TraceTable(NamedTuple):
    """A table of a trace: the reader of the trace, and the name of the table."""

    reader: type[TraceReader]
    table: str


def detect_table(file: InputFile) -> TraceTable | None:
    """Recognise the table in a file by the file's name and first row; None if the file's name is that of a manifest.

    Raises:
        InputError: Bayplan does not read this table, the file is not a table of a trace, or the file is unreadable.
    """
    if file.path is None:
        return None
    base = _PACKED.sub("", file.path.name.lower())
    suffix = _SUFFIX.search(base)
    if "." in base and suffix is None:
        return None
    stem = _SHARD.sub("", _SUFFIX.sub("", base))
    for reader in READERS.values():
        if stem in reader.unused:
            got = f"{stem} of {reader.title}: {reader.unused[stem]}"
            raise InputError(file.name, wanted="a table of tasks or machines", got=got, hint="without this file")
    named = [TraceTable(each, stem) for each in READERS.values() if stem in each.tables and each is not openb.Reader]
    if len(named) == 1:
        return named[0]
    if not named and (suffix is None or suffix[1] in ("json", "jsonl")):
        return None
    head = read_head(file)
    if named or (suffix is not None and suffix[1] == "csv"):
        return _by_columns(file, head, named)
    if not head.startswith(azure_2020.MAGIC):
        wanted = "a CSV or JSON Lines trace, or an uncompressed SQLite database (Azure 2020)"
        raise InputError(file.name, wanted=wanted, got="a file in another format")
    return TraceTable(azure_2020.Reader, "database")


def read_trace(files: Sequence[tuple[InputFile, TraceTable]], options: ReadOptions | None = None) -> Trace:
    """Read all files of one trace, each with its table, in the order that the reader needs.

    Raises:
        InputError: the files are of different traces, or the reader refuses one.
    """
    (first, (reader_type, _)), *others = files
    for file, (other, _) in others:
        if other is not reader_type:
            wanted = f"files of one trace ({first.name} is {reader_type.title})"
            raise InputError(file.name, wanted=wanted, got=other.title)
    reader = reader_type(options or ReadOptions(), {table for _, (_, table) in files})
    for table in reader_type.tables:
        for file, (_, name) in files:
            if name == table:
                reader.read(table, file)
    return reader.finish()


def _by_columns(file: InputFile, head: bytes, named: Sequence[TraceTable]) -> TraceTable:
    """Return the table of a CSV file: among tables with the file's name, by the number of columns; else by the header."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    columns = [name.strip() for name in first.split(",")]
    for each in named:
        if len(each.reader.tables[each.table]) == len(columns):
            return each
    if named:
        wanted = " or ".join(f"{len(each.reader.tables[each.table])} columns ({each.reader.title})" for each in named)
        raise InputError("table", where=f"{file.name}:1", wanted=wanted, got=f"{len(columns)} columns")
    for reader in READERS.values():
        for table, wanted_columns in reader.tables.items():
            if wanted_columns and set(wanted_columns) <= set(columns):
                return TraceTable(reader, table)
    if is_utf16(head):
        raise InputError(file.name, wanted="UTF-8", got="UTF-16", hint="iconv -f utf-16 -t utf-8")
    for wanted_columns in openb.Reader.tables.values():
        missing = [name for name in wanted_columns if name not in columns]
        if len(missing) * 2 < len(wanted_columns):
            wanted = f"the columns {','.join(wanted_columns)} ({openb.Reader.title})"
            without = f"a header without {' and '.join(missing)}"
            close = near_name(missing[0], (name for name in columns if name not in wanted_columns))
            hint = f"{missing[0]} instead of {close}" if close else ""
            raise InputError("table", where=f"{file.name}:1", wanted=wanted, got=without, hint=hint)
    openb_tables = " or ".join(",".join(each) for each in openb.Reader.tables.values())
    wanted = f"a header with {openb_tables}, or a file of another trace under its published name (docs/traces.md)"
    got, hint = repr(first if len(first) <= 60 else first[:57] + "..."), ""
    if len(columns) == 1 and (";" in first or "\t" in first):
        hint = "commas between columns"
    raise InputError("table", where=f"{file.name}:1", wanted=wanted, got=got, hint=hint)
