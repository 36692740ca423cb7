"""Checks a store's file, and writes its intact rows to a new file. The checked file is only read."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import msgspec

from bayplan.apiserver.store.pages import INTERIOR_INDEX, LEAF_INDEX, Cell, PageError, Pages
from bayplan.apiserver.store.store_file import (
    FORMAT,
    PUT,
    ROW,
    Row,
    counter_checksum,
    create_store,
    is_intact,
    item_of,
    row_of,
    store_problem,
)
from bayplan.apiserver.store.write_ahead_log import lost_transactions
from bayplan.base.errors import InputError

REVISION_GAP = 1_000_000
"""Added to the last known revision if the counter is lost, so that no revision is used twice."""

_MAX_CREDIBLE_FORMAT = 1000
_COLUMNS = 8
_LOCK_START, _LOCK_SIZE = 0x40000002, 510  # The bytes that SQLite locks for readers.
_COLUMNS_WITHOUT_CHECKSUM = 7
WANTED_FILE = "a database file of bayplan up --store"
Key = tuple[str, str, str]


class Damage(msgspec.Struct, frozen=True):
    """One damaged part of a store.

    Attributes:
        what: the object (``secrets default/a``), or the part of the file.
        page, offset: the page number and the offset in the file; 0 if unknown.
        problem: the error.
        is_lost: whether the damage loses an object.
    """

    what: str
    page: int
    offset: int
    problem: str
    is_lost: bool = True


class StoreReport(msgspec.Struct, frozen=True):
    """The intact rows of a store, and its damage.

    Attributes:
        rows: the intact rows by (table, namespace, name).
        damage: the damaged parts, in the order in which they were found.
        revision: the last used revision, or a later one if that is unknown.
        size: the size of the file in bytes.
    """

    rows: dict[Key, Row]
    damage: list[Damage]
    revision: int
    size: int

    @property
    def is_intact(self) -> bool:
        """Whether the store has no damage."""
        return not self.damage


def check_store(path: Path) -> StoreReport:
    """Return all readable rows of a store, and its damage.

    Raises:
        InputError: the file does not exist, is in use, has a newer format, or is not a store.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    with _copy(path) as (copy, damage):
        data = copy.read_bytes()
    reader = _Reader(data)
    reader.read()
    if not reader.rows and not data.startswith(b"SQLite format 3\0"):
        raise InputError(str(path), got="a file without a header and without readable objects", wanted=WANTED_FILE)
    return StoreReport(reader.rows, [*damage, *reader.damage], reader.revision, len(data))


def repair_store(path: Path, out: Path) -> StoreReport:
    """Write the intact rows of a store to a new store, and return the report on the old one.

    Raises:
        InputError: see `check_store`; or the new file exists, or cannot be written.
    """
    if os.path.lexists(out):
        raise InputError("--out", where=str(out), got="an existing file", wanted="a new file")
    report = check_store(path)
    try:
        create_store(out)
        with closing(sqlite3.connect(out, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            for row in report.rows.values():
                connection.execute(PUT + ROW, row)
            revision = report.revision
            connection.execute("UPDATE counter SET revision = ?, checksum = ?", (revision, counter_checksum(revision)))
            connection.execute("COMMIT")
    except (sqlite3.Error, OSError) as problem:
        raise store_problem(problem, out) from problem
    return report


@contextmanager
def _copy(path: Path) -> Iterator[tuple[Path, list[Damage]]]:
    """Yield the path of a copy of a store with its write-ahead log applied, and the damage that SQLite reports."""
    damage: list[Damage] = []
    with tempfile.TemporaryDirectory(prefix="bayplan-store-") as folder:
        copy = Path(folder) / "store"
        # Reject a store in use, because it could change during the copy.
        _check_unlocked(path)
        shutil.copyfile(path, copy)
        log = path.with_name(f"{path.name}-wal")
        if log.is_file():
            shutil.copyfile(log, copy.with_name("store-wal"))
        os.chmod(copy, stat.S_IRUSR | stat.S_IWUSR)
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                lost = lost_transactions(copy, connection)
                if lost:
                    damage.append(
                        Damage(
                            "write-ahead log",
                            0,
                            0,
                            f"{lost} transactions at its end can't be read; their writes are lost",
                        )
                    )
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if FORMAT < version < _MAX_CREDIBLE_FORMAT:
                    got = f"format {version} (written by a newer Bayplan)"
                    raise InputError(
                        "file", where=str(path), got=got, wanted=f"format {FORMAT} or older", hint="a newer Bayplan"
                    )
                lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(100)")]
                if lines != ["ok"]:
                    damage += [Damage("file", 0, 0, line, is_lost=False) for line in lines]
        except sqlite3.DatabaseError as problem:
            damage.append(Damage("file", 0, 0, str(problem), is_lost=False))
        yield copy, damage


def _check_unlocked(path: Path) -> None:
    """Raise if another process has the store open, which SQLite's lock on the file shows.

    Opening the file with SQLite to find out would create files next to it.

    Raises:
        InputError: the file is locked.
    """
    with path.open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, _LOCK_SIZE, _LOCK_START)
        except OSError:
            got = "a store that another process has locked"
            raise InputError("file", where=str(path), got=got, wanted="a store that is not in use") from None


class _Reader:
    """Reads the rows of a file: by walking the tree, then, if that finds damage, from unreferenced pages.

    Attributes:
        pages: the pages of the file.
        rows: the intact rows by key.
        damage: the damaged rows and pages.
        revision: the last used revision, or a later one if that is unknown.
    """

    def __init__(self, data: bytes) -> None:
        self.pages = Pages(data)
        self.rows: dict[Key, Row] = {}
        self.damage: list[Damage] = []
        self.revision = 0
        self._seen: set[int] = set()
        self._is_old = False

    def read(self) -> None:
        """Read the file, and set `rows`, `damage` and `revision`."""
        roots = self._roots()
        counter = self._counter(roots.get("counter", 0))
        root = roots.get("documents", 0)
        if root:
            self._walk(root, 0)
        else:
            self.damage.append(Damage("table of documents", 1, 0, "its first page is not known"))
        if self.damage:
            self._read_orphans()
        last = max((row[3] for row in self.rows.values()), default=0)
        self.revision = max(last, counter) if counter is not None else last + REVISION_GAP

    def _roots(self) -> dict[str, int]:
        """Return the number of each table's root page, by table name."""
        found: dict[str, int] = {}
        pending, seen = [1], set[int]()
        while pending:
            page = pending.pop()
            if page in seen or not 0 < page <= self.pages.count:
                continue
            seen.add(page)
            try:
                for cell in self.pages.cells(page):
                    values = cell.values or ()
                    if len(values) == 5 and values[0] == "table" and isinstance(values[3], int):
                        found[str(values[1])] = values[3]
                        if values[1] == "documents":
                            self._is_old = "checksum" not in str(values[4])
                    pending.append(cell.child)
                pending.append(self.pages.last_child(page))
            except PageError:
                continue
        self._seen |= seen
        return found

    def _counter(self, root: int) -> int | None:
        try:
            self._seen.add(root)
            for cell in self.pages.cells(root):
                values = cell.values or ()
                # The column `id` is the rowid, which SQLite does not store in the record.
                revision = values[1] if len(values) >= 2 else None
                if not isinstance(revision, int):
                    continue
                if self._is_old or (len(values) == 3 and counter_checksum(revision) == values[2]):
                    return revision
        except PageError:
            pass
        problem = "its checksum does not fit; revisions go on with a gap"
        self.damage.append(Damage("counter of revisions", root, 0, problem, is_lost=False))
        return None

    def _walk(self, page: int, depth: int) -> None:
        """Read a page and its children in key order."""
        if page in self._seen or not 0 < page <= self.pages.count or depth > 40:
            self.damage.append(Damage(self._between(), page, 0, "a reference to a page that is missing or used twice"))
            return
        self._seen.add(page)
        try:
            if self.pages.kind(page) not in (INTERIOR_INDEX, LEAF_INDEX):
                raise PageError("not a page of documents")
            for cell in self.pages.cells(page):
                if cell.child:
                    self._walk(cell.child, depth + 1)
                self._take(cell)
            if self.pages.kind(page) == INTERIOR_INDEX:
                self._walk(self.pages.last_child(page), depth + 1)
        except PageError as problem:
            offset = (page - 1) * self.pages.page_size
            self.damage.append(Damage(self._between(), page, offset, f"the page can't be read: {problem}"))

    def _take(self, cell: Cell) -> None:
        self._seen.update(cell.overflow)
        row = self._row(cell.values)
        if row is not None:
            self.rows[row[:3]] = row
            return
        problem = "its checksum does not fit" if cell.values is not None else "its record can't be read"
        self.damage.append(Damage(self._name(cell.values), cell.page, cell.offset, problem))

    def _row(self, values: tuple[object, ...] | None) -> Row | None:
        """Return the row in a record, or None if it is damaged or not a row.

        Compute the checksum if the file is old.
        """
        if values is None:
            return None
        if self._is_old and len(values) == _COLUMNS_WITHOUT_CHECKSUM:
            try:
                row = cast("Row", (*values, 0))
                return row_of(row[0], item_of(row))
            except (msgspec.MsgspecError, TypeError, ValueError, AttributeError):
                return None
        return cast("Row", values) if len(values) == _COLUMNS and is_intact(values) else None

    def _name(self, values: tuple[object, ...] | None) -> str:
        if values is None or len(values) < 3:
            return self._between()
        return name_of(str(values[0]), str(values[1]), str(values[2]))

    def _between(self) -> str:
        """Describe the position of objects whose keys are damaged by the last intact key before them."""
        last = next(reversed(self.rows), None)
        return "objects at the beginning" if last is None else f"objects after {name_of(*last)}"

    def _read_orphans(self) -> None:
        """Add the rows of pages that are unreachable because their parent pages are damaged."""
        unused = self.pages.freelist()
        for page in range(1, self.pages.count + 1):
            if page in self._seen or page in unused or self.pages.kind(page) not in (INTERIOR_INDEX, LEAF_INDEX):
                continue
            try:
                for cell in self.pages.cells(page):
                    row = self._row(cell.values)
                    known = None if row is None else self.rows.get(row[:3])
                    if row is not None and (known is None or known[3] < row[3]):
                        self.rows[row[:3]] = row
            except PageError:
                continue


def name_of(table: str, namespace: str, name: str) -> str:
    """Return the table, namespace and name of an object as text for messages."""
    return f"{table} {namespace}/{name}" if namespace else f"{table} {name}"
