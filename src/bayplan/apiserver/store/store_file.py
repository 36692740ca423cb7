"""The file of a durable store: rows and checksums, permissions, and a message for each reason why it is unusable."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import sqlite3
import stat
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.write_ahead_log import lost_transactions
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError

FORMAT = 2
"""Version of the file format, stored in SQLite's `user_version`.

Files of format 1 have the value 0 and no checksums.
"""

APPLICATION_ID = 0x42617970  # "Bayp", to distinguish a store from another program's database.

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, uid TEXT NOT NULL,
    facts BLOB NOT NULL, raw BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (
    id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT 0);
"""

Row = tuple[str, str, str, int, str, bytes, bytes, int]
PUT = "INSERT OR REPLACE INTO documents VALUES "
ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"

_TYPES = (str, str, str, int, str, bytes, bytes, int)
_decode = msgspec.msgpack.Decoder(tuple[dict[str, str], dict[str, str]]).decode


def row_of(table: str, item: Item) -> Row:
    """Return the row of an item, with its checksum."""
    facts = msgspec.msgpack.encode((item.labels, item.fields))
    key = f"{table}\0{item.namespace}\0{item.name}\0{item.revision}\0{item.uid}\0{len(facts)}\0".encode()
    checksum = zlib.crc32(item.raw, zlib.crc32(facts, zlib.crc32(key)))
    return (table, item.namespace, item.name, item.revision, item.uid, facts, item.raw, checksum)


def is_intact(row: Sequence[object]) -> bool:
    """Return whether a row has values of the right types and a matching checksum."""
    if len(row) != len(_TYPES) or any(type(value) is not kind for value, kind in zip(row, _TYPES, strict=True)):
        return False
    table, namespace, name, revision, uid, facts, raw, checksum = row
    assert isinstance(facts, bytes)
    assert isinstance(raw, bytes)
    key = f"{table}\0{namespace}\0{name}\0{revision}\0{uid}\0{len(facts)}\0".encode("utf-8", "surrogatepass")
    return zlib.crc32(raw, zlib.crc32(facts, zlib.crc32(key))) == checksum


def item_of(row: Row) -> Item:
    """Return the item in an intact row."""
    _, namespace, name, revision, uid, facts, raw, _ = row
    labels, fields = _decode(facts)
    return Item(raw, revision, namespace, name, uid, labels, fields)


def counter_checksum(revision: int) -> int:
    """Return the checksum of a counter with this revision."""
    return zlib.crc32(b"%d" % revision)


MODE = 0o600
BUSY_TIMEOUT_S = 2.0
_WHAT = "file of --store"
_COMPANION = "SQLite file next to the --store file"
PAGE_BYTES = 16 * 1024
"""Page size of a new store.

A page of SQLite's default 4 KiB holds at most 1 KB of a row, and the rest takes a separate page: an event of 1.4 KB
took 4.7 KB of the file. Writes take the same CPU time with both sizes.
"""
_HEADER = 100
_MAGIC = b"SQLite format 3\0"
_log = logging.getLogger("bayplan.apiserver")


def open_store(path: Path) -> sqlite3.Connection:
    """Return an exclusive connection to a store; create the file if it does not exist.

    The mode of the file becomes 0600.

    Raises:
        InputError: the file is damaged, truncated, read-only, locked, of a newer format, or not a store; its folder is
            missing or writable by everyone; or the disk is full. Each reason has its own message.
    """
    _check_folder(path)
    try:
        if os.path.lexists(path):
            _check_file(path)
        else:
            create_store(path)
        return _connect(path)
    except (sqlite3.Error, OSError) as problem:
        raise store_problem(problem, path) from problem


# --- before SQLite opens it -------------------------------------------------------------------------------------------


def _check_folder(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"--store {path}: no folder {str(folder)!r}", hint=f"mkdir -p {folder}")
    mode = folder.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        got = f"a folder that every user can write to ({stat.filemode(mode)})"
        raise InputError(
            _WHAT,
            where=str(path),
            got=got,
            wanted="a folder that other users can't write to",
            hint=f"chmod o-w {folder}",
        )
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        got = f"{str(folder)!r}, which can't be written to"
        raise InputError(
            _WHAT, where=str(path), got=got, wanted="a writable folder, for the file and its write-ahead log"
        )
    for suffix in ("-wal", "-shm", "-journal"):
        _check_companion(path.with_name(path.name + suffix))


def _check_companion(path: Path) -> None:
    """Raise if one of SQLite's other files is a link, or a file that another user may have planted."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), 0):
        if stat.S_ISLNK(status.st_mode):
            got = "a symbolic link"
        else:
            got = (
                "a file that another user owns"
                if stat.S_ISREG(status.st_mode)
                else "something other than a regular file"
            )
        raise InputError(_COMPANION, where=str(path), got=got, wanted="no file, or a regular file that you own")


def create_store(path: Path) -> None:
    """Create an empty store under a temporary name and rename it: a killed process leaves no partial store."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # SQLite copies the mode of the file to its write-ahead log.
    os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE))
    try:
        connection = sqlite3.connect(partial, isolation_level=None)
        try:
            _make(connection)
        finally:
            connection.close()
        os.rename(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _check_file(path: Path) -> None:
    """Raise if the file is not a readable and writable SQLite file, or is truncated."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise InputError(
            _WHAT,
            where=str(path),
            got=f"a symbolic link to {os.readlink(path)!r}, which does not exist",
            wanted="a store, or a new file",
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            _WHAT, where=str(path), got="something other than a regular file", wanted="a store, or a new file"
        )
    if not status.st_size:
        hint = "a backup; or remove the file to start with an empty cluster"
        raise InputError(_WHAT, where=str(path), got="an empty file", wanted="a store", hint=hint)
    if not os.access(path, os.R_OK, effective_ids=True):
        raise InputError(_WHAT, where=str(path), got="a file that can't be read", wanted="a readable file")
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER and _MAGIC.startswith(header[: len(_MAGIC)]):
        raise _truncated(path, len(header), _HEADER)
    if not header.startswith(_MAGIC):
        got = f"a file that begins with {header[:16]!r} (damaged, or not a store)"
        raise InputError(_WHAT, where=str(path), got=got, wanted="a store", hint=_check_hint(path))
    if not os.access(path, os.W_OK, effective_ids=True):
        got = f"a read-only file ({stat.filemode(status.st_mode)})"
        raise InputError(_WHAT, where=str(path), got=got, wanted="a writable file", hint=f"chmod u+w {path}")


def _restrict(path: Path) -> None:
    """Set mode 0600 on a store that others can read, because it may contain Secrets.

    Earlier releases created such files.
    """
    mode = path.stat().st_mode
    if mode & 0o077:
        _log.warning("other users could read %s (%s); its mode is now 0600", path, stat.filemode(mode))
        for each in (path, path.with_name(f"{path.name}-wal")):
            if each.exists():
                each.chmod(MODE)


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Overwrite deleted data, which may be Secrets, with zeros.
        connection.execute("PRAGMA secure_delete = ON")
        found, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        _check_owner(path, found, version, tables)
        _restrict(path)
        lost = lost_transactions(path, connection)
        if lost > 1:
            got = f"a damaged one: {lost} transactions in its write-ahead log can't be read"
            raise InputError(_WHAT, where=str(path), got=got, wanted="an intact store", hint=_check_hint(path))
        if lost:
            _log.warning("%s: the last transaction was not written in full, so it is not in the store", path)
        if tables:
            damage = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
            if damage != ["ok"]:
                raise _damaged(path, "; ".join(damage[0].replace("\n", " ").split("  ")))
        if not tables:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if not tables:
            _make(connection)
        elif version < FORMAT:
            _upgrade(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_owner(path: Path, found: int, version: int, tables: set[str]) -> None:
    ours = {"documents", "counter"} <= tables
    if tables and found != APPLICATION_ID:
        if ours:
            raise _damaged(path, f"application id {found:#x} in the header")
        raise InputError(_WHAT, where=str(path), got="another program's database", wanted="a store")
    if tables and not ours:
        raise _damaged(path, "a table is missing")
    if version > FORMAT:
        got = f"format {version} (written by a newer Bayplan, or damaged)"
        raise InputError(_WHAT, where=str(path), got=got, wanted=f"format {FORMAT} or older", hint=_check_hint(path))


def _make(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    insert = f"INSERT INTO counter VALUES (0, 0, {counter_checksum(0)})"
    connection.executescript(f"BEGIN; {SCHEMA} {insert}; PRAGMA user_version = {FORMAT}; COMMIT;")


def _upgrade(connection: sqlite3.Connection) -> None:
    """Add checksums to all rows of a file of format 1."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        for table in ("documents", "counter"):
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            if "checksum" not in columns:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
        rows = connection.execute(
            "SELECT resource, namespace, name, revision, uid, facts, raw FROM documents"
        ).fetchall()
        sums = ((row_of(row[0], item_of((*row, 0)))[-1], *row[:3]) for row in rows)
        connection.executemany(
            "UPDATE documents SET checksum = ? WHERE resource = ? AND namespace = ? AND name = ?", sums
        )
        for (revision,) in connection.execute("SELECT revision FROM counter").fetchall():
            connection.execute("UPDATE counter SET checksum = ?", (counter_checksum(revision),))
        connection.execute(f"PRAGMA user_version = {FORMAT}")


# --- messages ---------------------------------------------------------------------------------------------------------


def store_problem(problem: Exception, path: Path) -> InputError:
    """Return the InputError for an error of SQLite or of the operating system about a store."""
    if isinstance(problem, InputError):
        return problem
    if isinstance(problem, OSError):
        return _os_problem(problem, path)
    name = getattr(problem, "sqlite_errorname", "")
    where = str(path)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return InputError(
            _WHAT,
            where=where,
            got="a store that another process has locked",
            wanted="a store that is not in use",
        )
    if name.startswith("SQLITE_FULL"):
        return InputError(_WHAT, where=where, got="no space left on the disk", wanted="a disk with free space")
    if name.startswith("SQLITE_CANTOPEN"):
        got = f"a file that can't be opened ({problem})"
        return InputError(_WHAT, where=where, got=got, wanted="a store that can be opened and written")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        got = f"a read-only file or folder ({problem})"
        return InputError(_WHAT, where=where, got=got, wanted="a writable store")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_SCHEMA", "SQLITE_ERROR", "SQLITE_FORMAT")):
        pages = _missing_pages(path)
        return _truncated(path, *pages) if pages is not None else _damaged(path, str(problem))
    if name.startswith("SQLITE_IOERR"):
        got = f"a read or write error ({name.removeprefix('SQLITE_').lower()})"
        return InputError(
            _WHAT, where=where, got=got, wanted="a working disk with free space and without a file size limit"
        )
    return InputError(_WHAT, where=where, got=str(problem), wanted="a usable store")


def _os_problem(problem: OSError, path: Path) -> InputError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(_WHAT, where=str(path), got="no space left on the disk", wanted="a disk with free space")
    got = f"{(problem.strerror or str(problem)).lower()}"
    if problem.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        got = f"a read-only file or folder ({got})"
    return InputError(_WHAT, where=str(path), got=got, wanted="a writable file")


def _missing_pages(path: Path) -> tuple[int, int] | None:
    """Return the size of a file and the size that its header states, in bytes; None if the file is not smaller."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
        size = path.stat().st_size
    except OSError:
        return None
    if len(header) < _HEADER:
        return size, _HEADER
    page_size: int = struct.unpack_from(">H", header, 16)[0]
    expected: int = struct.unpack_from(">I", header, 28)[0] * (65536 if page_size == 1 else page_size)
    return (size, expected) if size < expected else None


def _truncated(path: Path, size: int, expected: int) -> InputError:
    got = f"a truncated file: {size:,} of {expected:,} bytes"
    return InputError(_WHAT, where=str(path), got=got, wanted="a complete store", hint=_check_hint(path))


def _damaged(path: Path, what: str) -> InputError:
    return InputError(
        _WHAT, where=str(path), got=f"a damaged store ({what})", wanted="an intact store", hint=_check_hint(path)
    )


def damaged_rows(path: Path, names: list[str]) -> InputError:
    """Return the InputError for rows with wrong checksums."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    return _damaged(path, f"{format_count(len(names), 'checksum mismatch')}: {shown}")


def _check_hint(path: Path) -> str:
    return f"bayplan store check {path}"
