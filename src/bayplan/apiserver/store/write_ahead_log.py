"""SQLite's write-ahead log: finds transactions in it that SQLite can no longer read.

SQLite reads the log up to the first frame with a wrong checksum, and treats the rest as the remains of a crash. That is
right at the end of the log, but loses acknowledged writes if a frame in the middle is damaged. Each frame contains the
salts of its log, so the frames after the damaged frame can still be counted.
"""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

_HEADER = 32
_FRAME_HEADER = 24
_BIG_ENDIAN_MAGIC = 0x377F0683


def lost_transactions(path: Path, connection: sqlite3.Connection) -> int:
    """Return the number of transactions in the log that SQLite ignores.

    A single transaction may be a write that a power failure interrupted.

    Args:
        path: the path of the database.
        connection: an exclusive connection to the database that has already read from it.
    """
    commits = _commits(path.with_name(f"{path.name}-wal"))
    if not commits:
        return 0
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return sum(1 for frame in commits if frame > max(frames, 0))


def _commits(path: Path) -> list[int]:
    """Return the numbers, from 1, of the frames that end a transaction, including damaged ones."""
    try:
        size = path.stat().st_size
        with path.open("rb") as log:
            header = log.read(_HEADER)
            if len(header) < _HEADER:
                return []
            page_size: int = struct.unpack_from(">I", header, 8)[0]
            if not 512 <= page_size <= 65536 or page_size & (page_size - 1):
                page_size = 4096
            salts = header[16:24] if _is_valid(header) else b""
            found = []
            for number in range(1, (size - _HEADER) // (page_size + _FRAME_HEADER) + 1):
                log.seek(_HEADER + (number - 1) * (page_size + _FRAME_HEADER))
                frame = log.read(_FRAME_HEADER)
                salts = salts or frame[8:16]
                if frame[8:16] == salts and struct.unpack_from(">I", frame, 4)[0]:
                    found.append(number)
            return found
    except FileNotFoundError:
        return []


def _is_valid(header: bytes) -> bool:
    order = ">" if struct.unpack_from(">I", header)[0] == _BIG_ENDIAN_MAGIC else "<"
    first = second = 0
    for low, high in struct.iter_unpack(f"{order}II", header[:24]):
        first = (first + low + second) & 0xFFFFFFFF
        second = (second + high + first) & 0xFFFFFFFF
    return bool((first, second) == struct.unpack_from(">II", header, 24))
