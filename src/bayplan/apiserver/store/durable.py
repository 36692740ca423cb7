"""Durability: writes go to an SQLite file in batches, by one thread; they are published when their batch is on disk.

While a batch is being written the next one gathers (group commit), so that one fsync covers many writes. Nothing that
was acknowledged can be lost: answers and watch events wait for `settled`. The file holds one row a document, and the last
revision where no row has it, so that revisions are never given twice; and no history: watches from before a restart are told
to list again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.apiserver.store.table import Table
from bayplan.base.errors import InputError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, uid TEXT NOT NULL,
    facts BLOB NOT NULL, raw BLOB NOT NULL, PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (0, 0);
"""
Row = tuple[str, str, str, int, str, bytes, bytes]

_ROWS_AT_ONCE = 100
_APPLICATION_ID = 0x42617970  # "Bayp", so that another program's database is not taken for a store.


class DurableRecorder:
    """The recorder of a store.

    Args:
        path: of the SQLite file; made when it is not there.
        store: is filled from the file, and records into it from then on.
        on_failure: is called, in the loop, when the disk refuses: nothing can be acknowledged any more.

    Raises:
        InputError: the file is not a store, or another process has it.
    """

    def __init__(self, path: Path, store: Store, *, on_failure: Callable[[Exception], None]) -> None:
        self._store = store
        self._on_failure = on_failure
        self._pending: list[Write] = []
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._failed: Exception | None = None
        self._in_flight: tuple[list[Write], Future[None]] | None = None
        self._scheduled = False
        self._closed = False
        self._connection = _open(path)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        items, revision = _read_all(self._connection)
        store.load(items, revision)
        store.recorder = self

    def record(self, write: Write) -> None:
        """Take a write into the next batch. Without a running loop nothing is written before `flush`, and after `close` never."""
        if self._closed:
            return
        self._pending.append(write)
        if self._in_flight is None and not self._scheduled:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            self._scheduled = True
            loop.call_soon(self._hand_over, loop)

    def reset(self, tables: Mapping[str, Table], revision: int) -> None:
        """Replace all documents, before returning: a rare step, and all or nothing."""
        self.flush()
        self._writer.submit(self._rewrite, tables, revision).result()

    def settled(self, revision: int) -> asyncio.Future[None] | None:
        """Return what to await until a revision is durable; None when it is."""
        if revision <= self._store.published:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._failed is not None:
            future.set_exception(self._failed)
        else:
            self._waiting.append((revision, future))
        return future

    def flush(self) -> None:
        """Write and publish all there is before returning. For loading, for resets, and for the end."""
        if self._in_flight is not None:
            batch, writing = self._in_flight
            self._in_flight = None
            writing.result()
            self._publish(batch)
        batch, self._pending = self._pending, []
        if batch:
            self._writer.submit(self._write, batch).result()
            self._publish(batch)

    def close(self) -> None:
        """Write what is pending, and close the file."""
        if self._failed is None:
            self.flush()
        self._closed = True
        self._writer.shutdown()
        self._connection.close()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        if self._in_flight is not None or not self._pending or self._failed is not None:
            return
        batch, self._pending = self._pending, []
        writing = self._writer.submit(self._write, batch)
        self._in_flight = (batch, writing)
        writing.add_done_callback(lambda _: loop.call_soon_threadsafe(self._written, batch, writing, loop))

    def _written(self, batch: list[Write], writing: Future[None], loop: asyncio.AbstractEventLoop) -> None:
        if self._in_flight is None or self._in_flight[1] is not writing:
            return  # A flush was quicker.
        self._in_flight = None
        problem = writing.exception()
        if problem is not None:
            self._fail(problem if isinstance(problem, Exception) else RuntimeError(str(problem)))
            return
        self._publish(batch)
        self._hand_over(loop)

    def _fail(self, problem: Exception) -> None:
        self._failed = problem
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(problem)
        self._on_failure(problem)

    def _publish(self, batch: list[Write]) -> None:
        for write in batch:
            self._store.publish(write)
        last = batch[-1].revision
        while self._waiting and self._waiting[0][0] <= last:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _write(self, batch: list[Write]) -> None:
        # The last write of a key is all that has to reach the disk.
        last: dict[tuple[str, str, str], Write] = {}
        for write in batch:
            last[(write.table, write.new.namespace, write.new.name)] = write
        gone = [key for key, write in last.items() if write.type == DELETED]
        kept = [_row(write.table, write.new) for write in last.values() if write.type != DELETED]
        if not gone and len(kept) <= _ROWS_AT_ONCE:
            # One statement is a transaction of its own. The last revision is that of a row, so the counter need not know it.
            self._put(kept)
            return
        with self._transaction():
            self._connection.executemany(
                "DELETE FROM documents WHERE resource = ? AND namespace = ? AND name = ?", gone
            )
            self._put(kept)
            self._connection.execute("UPDATE counter SET revision = ?", (batch[-1].revision,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield

    def _put(self, rows: list[Row]) -> None:
        # Many rows a statement: between two statements the loop's thread takes Python's lock, and gives it back late.
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            self._connection.execute(_PUT + ", ".join([_ROW] * len(some)), [value for row in some for value in row])

    def _rewrite(self, tables: Mapping[str, Table], revision: int) -> None:
        with self._transaction():
            self._connection.execute("DELETE FROM documents")
            for name, table in tables.items():
                self._put([_row(name, item) for item in table.items()])
            self._connection.execute("UPDATE counter SET revision = ?", (revision,))


_PUT = "INSERT OR REPLACE INTO documents VALUES "
_ROW = "(?, ?, ?, ?, ?, ?, ?)"


def _row(table: str, item: Item) -> Row:
    facts = msgspec.msgpack.encode((item.labels, item.fields))
    return (table, item.namespace, item.name, item.revision, item.uid, facts, item.raw)


def _open(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and found != _APPLICATION_ID:
            raise InputError("file of --store", where=str(path), got="another program's database", wanted="a store")
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        connection.commit()
    except sqlite3.Error as problem:
        raise InputError(
            f"file of --store ({problem})", where=str(path), wanted="a store that no other process uses"
        ) from problem
    return connection


def _read_all(connection: sqlite3.Connection) -> tuple[dict[str, list[Item]], int]:
    items: dict[str, list[Item]] = {}
    last = int(connection.execute("SELECT revision FROM counter").fetchone()[0])
    decode = msgspec.msgpack.Decoder(tuple[dict[str, str], dict[str, str]]).decode
    for resource, namespace, name, revision, uid, facts, raw in connection.execute("SELECT * FROM documents"):
        labels, fields = decode(facts)
        last = max(last, revision)
        items.setdefault(resource, []).append(Item(raw, revision, namespace, name, uid, labels, fields))
    return items, last
