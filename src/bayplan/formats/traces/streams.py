"""Read files as streams of whole lines: plain, gzip or Zstandard, one block at a time, with a maximum line length."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.formats.bounded_reading import ByteStream
from bayplan.formats.files import InputFile

BLOCK_BYTES = 2**20
"""Number of bytes to read at once."""

MAX_LINE_BYTES = 2**24
"""Maximum length of a line, so that a file without line breaks causes an error instead of using up memory."""

HEAD_BYTES = 2**16
"""Number of bytes at the start of a file to read in order to recognise its table."""

_GZIP = b"\x1f\x8b"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


@contextmanager
def open_stream(file: InputFile) -> Iterator[ByteStream]:
    """Open a file and decompress it while it is read. Gzip and Zstandard are recognised by their first bytes.

    Raises:
        InputError: the file can't be opened, or is standard input.
        MissingExtra: the file is compressed with Zstandard, and PyArrow is not installed.
    """
    if file.path is None:
        raise InputError("trace: a trace can't be read from standard input", hint="a file")
    try:
        raw = io.BufferedReader(file.path.open("rb", buffering=0), BLOCK_BYTES)
    except OSError as problem:
        raise InputError(file.name, got=(problem.strerror or str(problem)).lower(), wanted="a readable file") from None
    with raw:
        try:
            head = raw.peek(4)[:4]
        except OSError as problem:
            got = (problem.strerror or str(problem)).lower()
            raise InputError(file.name, got=got, wanted="a readable file") from None
        if head.startswith(_GZIP):
            yield gzip.GzipFile(fileobj=raw)
        elif head.startswith(_ZSTANDARD):
            with named_extras():
                import pyarrow
            yield cast("ByteStream", pyarrow.CompressedInputStream(raw, "zstd"))
        else:
            yield raw


def read_head(file: InputFile) -> bytes:
    """Return the first bytes of a file, decompressed.

    Raises:
        InputError: see `open_stream`.
    """
    with open_stream(file) as stream:
        return next(blocks(stream, file.name, size=HEAD_BYTES), b"")


def blocks(stream: ByteStream, name: str, *, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a stream, at most `size` at a time.

    Raises:
        InputError: the file can't be read or decompressed.
    """
    while True:
        try:
            block = stream.read(size)
        except (OSError, EOFError, zlib.error) as problem:
            raise InputError(name, wanted="complete compressed data", got=str(problem).lower()) from None
        if not block:
            return
        yield block


def line_blocks(stream: ByteStream, name: str) -> Iterator[bytes]:
    """Yield the bytes of a stream in blocks of whole lines. The last line may lack its line feed.

    Raises:
        InputError: a line is longer than `MAX_LINE_BYTES`, or the file can't be read or decompressed.
    """
    rest = b""
    for block in blocks(stream, name):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(name, wanted=f"lines of at most {MAX_LINE_BYTES // 2**20} MiB", got="a longer one")
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest:
        yield rest
