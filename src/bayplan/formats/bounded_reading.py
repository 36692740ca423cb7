"""Read files, pipes and gzip streams up to a maximum size, so that endless input causes an error instead of using up memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from bayplan.base.errors import ConfigurationError, InputError
from bayplan.objects.quantity import value

DEFAULT_MAX_FILE_BYTES = 2**30
"""Maximum size of one input file, decompressed. A dump of 50,000 objects has about 250 MB."""

MAX_FILE_VARIABLE = "BAYPLAN_MAX_FILE"
"""The environment variable that overrides the maximum size, e.g. ``4Gi``."""

MAX_CONFIGURATION_BYTES = 16 * 2**20
"""Maximum size of a scheduler configuration. Real ones have some kilobytes."""

_PIECE_BYTES = 2**20


class ByteStream(Protocol):
    """A file, a pipe, or a stream that decompresses either."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; b"" at the end."""
        ...


def max_file_bytes() -> int:
    """Return the maximum size of an input file.

    Raises:
        InputError: the environment variable is not a quantity above zero.
    """
    text = os.environ.get(MAX_FILE_VARIABLE)
    if text is None:
        return DEFAULT_MAX_FILE_BYTES
    try:
        found = value(text)
    except InputError:
        found = 0
    if found <= 0:
        raise InputError(MAX_FILE_VARIABLE, got=repr(text), wanted="a quantity of bytes above zero", hint="'4Gi'")
    return found


def read_bounded(stream: ByteStream, name: str, max_bytes: int, *, hint: str = "") -> bytes:
    """Return the rest of a stream.

    Args:
        stream: the stream to read.
        name: the name of the file, for errors.
        max_bytes: the maximum number of bytes.
        hint: how to raise the maximum, for errors.

    Raises:
        InputError: the stream is longer than `max_bytes`.
        OSError: the stream can't be read.
    """
    pieces: list[bytes] = []
    left = max_bytes
    while piece := stream.read(min(_PIECE_BYTES, left + 1)):
        left -= len(piece)
        if left < 0:
            wanted = f"a file of at most {_shown(max_bytes)}"
            raise InputError(name, wanted=wanted, got="a larger one", hint=hint)
        pieces.append(piece)
    return b"".join(pieces)


def read_configuration_bytes(path: Path, *, wanted: str = "a configuration file") -> bytes:
    """Return the content of a scheduler configuration file.

    Args:
        path: the path of the file.
        wanted: the expected content of the file, for errors.

    Raises:
        ConfigurationError: the file can't be read.
        InputError: the file is too large.
    """
    try:
        with path.open("rb") as file:
            return read_bounded(file, str(path), MAX_CONFIGURATION_BYTES)
    except OSError as problem:
        got = (problem.strerror or str(problem)).lower()
        raise ConfigurationError(str(path), wanted=wanted, got=got) from None


def _shown(size: int) -> str:
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size:,} bytes"
