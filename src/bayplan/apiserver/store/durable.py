"""Durability: one thread writes batches to an SQLite file, and a write is published when its batch is on disk.

While one batch is written, the next batch collects writes (group commit), so one fsync covers many writes. No
acknowledged write is ever lost, because responses and watch events wait for `until_durable`. The file has one row per
object, and a counter with the last revision, so that revisions are never reused even if the last write was a deletion.
The file has no history: after a restart, watches of earlier revisions must list again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.apiserver.store.store_file import (
    PUT,
    ROW,
    Row,
    counter_checksum,
    damaged_rows,
    is_intact,
    item_of,
    open_store,
    row_of,
    store_problem,
)
from bayplan.apiserver.store.table import Table
from bayplan.base.errors import InputError

_ROWS_AT_ONCE = 100


class DurableRecorder:
    """Makes the writes of a store durable in an SQLite file.

    Args:
        path: the path of the SQLite file; created if it does not exist.
        store: the empty store; it is filled from the file, and its writes are recorded from then on.
        on_failure: called on the event loop when a write to disk fails. From then on, no write can be acknowledged.

    Raises:
        InputError: the file cannot be used (see `open_store`), or an object in it is damaged.
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
        self._path = path
        self._connection = open_store(path)
        try:
            items, revision = _read_all(self._connection, path)
        except InputError:
            self._connection.close()
            raise
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        store.load(items, revision)
        store.recorder = self

    def record(self, write: Write) -> None:
        """Add a write to the next batch.

        Without a running event loop, batches are only written by `flush`. After `close`, writes are ignored.
        """
        if self._closed:
            return
        self._pending.append(write)
        if self._in_flight is None and not self._scheduled:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            self._scheduled = True
            loop.call_soon(self._start_write, loop)

    def reset(self, tables: Mapping[str, Table], revision: int) -> None:
        """Replace all objects in the file, synchronously and atomically."""
        self.flush()
        self._writer.submit(self._rewrite, tables, revision).result()

    def until_durable(self, revision: int) -> asyncio.Future[None] | None:
        """Return a future that is done when a revision is durable, or None if it already is."""
        if revision <= self._store.published:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._failed is not None:
            future.set_exception(self._failed)
        else:
            self._waiting.append((revision, future))
        return future

    def flush(self) -> None:
        """Write and publish all pending writes synchronously, for loading, resets and shutdown."""
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
        """Write all pending data unless a write has failed, and close the file."""
        if self._failed is None:
            self.flush()
        self._closed = True
        self._writer.shutdown()
        self._connection.close()

    def _start_write(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        if self._in_flight is not None or not self._pending or self._failed is not None:
            return
        batch, self._pending = self._pending, []
        writing = self._writer.submit(self._write, batch)
        self._in_flight = (batch, writing)
        writing.add_done_callback(lambda _: loop.call_soon_threadsafe(self._written, batch, writing, loop))

    def _written(self, batch: list[Write], writing: Future[None], loop: asyncio.AbstractEventLoop) -> None:
        if self._in_flight is None or self._in_flight[1] is not writing:
            return  # A flush has already published the batch.
        self._in_flight = None
        problem = writing.exception()
        if problem is not None:
            self._fail(
                store_problem(problem, self._path) if isinstance(problem, Exception) else RuntimeError(str(problem))
            )
            return
        self._publish(batch)
        self._start_write(loop)

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
        # The file has no history, so only the last write of each key in the batch counts.
        last: dict[tuple[str, str, str], Write] = {}
        for write in batch:
            last[(write.table, write.new.namespace, write.new.name)] = write
        gone = [key for key, write in last.items() if write.type == DELETED]
        kept = [row_of(write.table, write.new) for write in last.values() if write.type != DELETED]
        if not gone and len(kept) <= _ROWS_AT_ONCE:
            # A single statement is a transaction. A row has the last revision, so the counter need not store it.
            self._put(kept)
            return
        with self._transaction():
            self._connection.executemany(
                "DELETE FROM documents WHERE resource = ? AND namespace = ? AND name = ?", gone
            )
            self._put(kept)
            self._set_counter(batch[-1].revision)

    def _set_counter(self, revision: int) -> None:
        self._connection.execute(
            "UPDATE counter SET revision = ?, checksum = ?", (revision, counter_checksum(revision))
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield

    def _put(self, rows: list[Row]) -> None:
        # Insert many rows per statement: between statements, the loop's thread may take the GIL and hold it for a long time.
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            self._connection.execute(PUT + ", ".join([ROW] * len(some)), [value for row in some for value in row])

    def _rewrite(self, tables: Mapping[str, Table], revision: int) -> None:
        with self._transaction():
            self._connection.execute("DELETE FROM documents")
            for name, table in tables.items():
                self._put([row_of(name, item) for item in table.items()])
            self._set_counter(revision)


def _read_all(connection: sqlite3.Connection, path: Path) -> tuple[dict[str, list[Item]], int]:
    """Return all items by table, and the last revision.

    Raises:
        InputError: a checksum does not match, or the file cannot be read.
    """
    items: dict[str, list[Item]] = {}
    damaged: list[str] = []
    last = 0
    try:
        counters = connection.execute("SELECT revision, checksum FROM counter").fetchall()
        if len(counters) != 1 or counter_checksum(counters[0][0]) != counters[0][1]:
            damaged.append("the counter of revisions")
        else:
            last = counters[0][0]
        connection.text_factory = _text
        for row in connection.execute("SELECT * FROM documents"):
            if not is_intact(row):
                damaged.append(f"{row[0]} {row[1]}/{row[2]}" if row[1] else f"{row[0]} {row[2]}")
                continue
            item = item_of(row)
            last = max(last, item.revision)
            items.setdefault(row[0], []).append(item)
    except sqlite3.Error as problem:
        raise store_problem(problem, path) from problem
    finally:
        connection.text_factory = str
    if damaged:
        raise damaged_rows(path, damaged)
    return items, last


def _text(value: bytes) -> str:
    # Decoding a damaged name must not raise: `is_intact` reports it, because its checksum does not match.
    return value.decode("utf-8", "replace")
