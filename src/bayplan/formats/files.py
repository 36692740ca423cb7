"""Find and read the files that a user names: paths, folders, patterns, or `-` for standard input; compressed with gzip or not."""

import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.base.text_encoding import is_utf16
from bayplan.formats.bounded_reading import MAX_FILE_VARIABLE, max_file_bytes, read_bounded

MANIFEST_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
"""Suffixes of the files that are read from a folder, also with `.gz`. A file named by the user may have any name."""

STANDARD_INPUT = "-"

ADDRESS = re.compile(r"[\w.-]+:[0-9]{1,5}")
"""A host and a port: the address of a server without its scheme."""

_GZIP_MAGIC = b"\x1f\x8b"
_OTHER_FORMATS = {b"PAR1": "a Parquet file", b"PK\x03\x04": "a ZIP archive", b"SQLite format 3\0": "an SQLite database"}
"""Formats that are never manifests, by the first bytes of their files."""


class InputFile(msgspec.Struct, frozen=True):
    """A file to read.

    Attributes:
        name: the name of the file in errors.
        path: the path; None for standard input.
        found: whether the file was found in a folder or by a pattern, and not named by the user.
    """

    name: str
    path: Path | None
    found: bool = False

    @property
    def suffix(self) -> str:
        """The suffix in lower case, without `.gz`; "" for standard input."""
        name = self.name.lower().removesuffix(".gz")
        return os.path.splitext(name)[1] if self.path is not None else ""


def find_files(paths: Sequence[str]) -> list[InputFile]:
    """Return the files that paths refer to, in the order given.

    A folder stands for all manifests in it and in its subfolders, sorted by path; a pattern (`*`, `?`, `[...]`, `**`)
    for all matching files, sorted.

    Raises:
        InputError: a path does not exist, a pattern matches nothing, a folder has no manifests, or there are no paths.
    """
    if not paths:
        raise InputError("input", wanted="at least one file, folder or pattern", got="none")
    files: list[InputFile] = []
    for text in paths:
        path = Path(text)
        if text == STANDARD_INPUT:
            files.append(InputFile("<stdin>", None))
        elif path.is_dir():
            files += _files_below(path)
        elif os.path.lexists(text):
            files.append(InputFile(text, path))
        elif glob.has_magic(text):
            matches = sorted(glob.glob(text, recursive=True))
            if not matches:
                raise InputError(text, wanted="a pattern that matches a file", got="no match")
            for match in matches:
                if os.path.isdir(match):
                    continue
                files.append(InputFile(match, Path(match), found=True))
        else:
            is_url = text.startswith(("http://", "https://")) or ADDRESS.fullmatch(text)
            hint = "kubectl get -o yaml, for a dump of the server's objects" if is_url else _similar(path)
            raise InputError(f"{text}: no such file or folder", hint=hint)
    return files


def _files_below(folder: Path) -> list[InputFile]:
    found = [
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if name.lower().removesuffix(".gz").endswith(MANIFEST_SUFFIXES)
    ]
    if not found:
        hint = " ".join(sorted({table_pattern(file) for file in table_files([str(folder)])}))
        wanted = f"a folder with {', '.join(MANIFEST_SUFFIXES)} files"
        raise InputError(str(folder), wanted=wanted, got="no such files", hint=hint)
    return [InputFile(name, Path(name), found=True) for name in sorted(found, key=lambda name: name.split(os.sep))]


def table_files(paths: Sequence[str]) -> list[InputFile]:
    """Return the files in folders among the paths that are named like tables of traces, which `find_files` leaves out."""
    return [
        InputFile(os.path.join(where, name), Path(where, name), found=True)
        for text in paths
        for where, _, names in os.walk(text)
        for name in sorted(names)
        if _table_suffix(name)
    ]


def table_pattern(file: InputFile) -> str:
    """Return the quoted pattern for all files with the folder and suffix of a file from `table_files`."""
    return f"'{os.path.join(os.path.dirname(file.name), '*')}{_table_suffix(file.name)}'"


def _table_suffix(name: str) -> str:
    """Return the suffix of a table of a trace, of which a folder alone names none; "" if it is another file."""
    return next((suffix for suffix in (".csv", ".csv.gz", ".csv.zst") if name.endswith(suffix)), "")


def _similar(path: Path) -> str:
    """Return a path in the same folder that is similar to a missing one, in quotes; "" if there is none."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return ""
    close = near_name(path.name, sorted(names))
    return f"'{path.parent / close}'" if close else ""


def read_bytes(file: InputFile, *, stdin: BinaryIO | None = None) -> bytes:
    """Return the content of a file. Decompress gzip, which is recognised by its first bytes.

    Raises:
        InputError: the file can't be read or decompressed, or is too large; or it is standard input and `stdin` is
        None.
    """
    most = max_file_bytes()
    hint = f"{MAX_FILE_VARIABLE}=4Gi in the environment"
    try:
        if file.path is not None:
            with file.path.open("rb") as opened:
                data = read_bounded(opened, file.name, most, hint=hint)
        elif stdin is not None:
            data = read_bounded(stdin, file.name, most, hint=hint)
        else:
            raise InputError("-: standard input is closed")
    except OSError as problem:
        raise InputError(file.name, got=(problem.strerror or str(problem)).lower(), wanted="a readable file") from None
    if is_utf16(data):
        raise InputError(file.name, wanted="UTF-8", got="UTF-16", hint="iconv -f utf-16 -t utf-8")
    if kind := next((kind for magic, kind in _OTHER_FORMATS.items() if data.startswith(magic)), ""):
        wanted = "YAML or JSON, or a table of a published trace (docs/traces.md)"
        raise InputError(file.name, wanted=wanted, got=kind)
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return read_bounded(gzip.GzipFile(fileobj=io.BytesIO(data)), file.name, most, hint=hint)
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(file.name, wanted="complete gzip data", got=str(problem).lower()) from None
