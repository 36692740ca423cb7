"""The store: tables of documents under one revision counter, with history, watches, snapshots, and an interface for durability.

Only the thread of the event loop uses it, and nothing here waits: reading an item and committing its successor is one
step, which makes optimistic locking safe. Every write to any table gets a new revision, and none is used
twice. History is bounded by number and by bytes; a request for older revisions raises `Compacted`.

Controllers can run over this store: `bayplan.apiserver.store` stores documents, they work on typed objects, and their
change events are made from the journal of writes (docs/adr/0009).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from bayplan.apiserver.store.item import ADDED, DELETED, MODIFIED, Item, Write
from bayplan.apiserver.store.listeners import Aspect, Listeners
from bayplan.apiserver.store.table import Key, Table
from bayplan.base.errors import InvariantError

MAX_WRITES = 100_000
MAX_BYTES = 64 * 1024 * 1024


class Compacted(Exception):
    """History does not reach back to a revision.

    Attributes:
        oldest: the oldest available revision.
    """

    def __init__(self, wanted: int, oldest: int) -> None:
        self.wanted = wanted
        self.oldest = oldest
        super().__init__(f"revision {wanted} is older than {oldest}")


class Recorder(Protocol):
    """The component that makes writes durable (`bayplan.apiserver.store.durable`)."""

    def record(self, write: Write) -> None:
        """Record a write; it is durable when the recorder has published it."""

    def reset(self, tables: Mapping[str, Table], revision: int) -> None:
        """Replace all records."""

    def settled(self, revision: int) -> Awaitable[None] | None:
        """Return an awaitable until a revision is durable, or None if it is."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The documents at one point in time. Taking or restoring it takes as long as listing the tables."""

    revision: int
    tables: Mapping[str, tuple[Mapping[Key, Item], list[Key]]]


class Store:
    """Documents of all resources.

    Args:
        max_writes: the maximum number of writes in the history.
        max_bytes: the maximum size of the documents that only the history still holds, in bytes.

    Attributes:
        revision: the revision of the last write.
        published: the revision of the last write that watches and lists may return; less than `revision` only while a write
            waits for the disk.
        compacted: the history starts after this revision.
        epoch: counts compactions, resets and restores; a watch of an earlier epoch has a gap.
    """

    def __init__(self, *, max_writes: int = MAX_WRITES, max_bytes: int = MAX_BYTES) -> None:
        self.revision = 0
        self.published = 0
        self.compacted = 0
        self.epoch = 0
        self.recorder: Recorder | None = None
        self._tables: dict[str, Table] = {}
        self._order: deque[Write] = deque()
        self._bytes = 0
        self._most_writes = max_writes
        self._most_bytes = max_bytes
        self._listeners: dict[str, Listeners] = {}
        self._next_listener = 0
        self._on_gap: dict[int, Callable[[], None]] = {}
        self._followers: list[Callable[[Write], None]] = []

    # --- reading ------------------------------------------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """Return a table; it is created on first use."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(name)
        return found

    def table_names(self) -> list[str]:
        """Return the names of the non-empty tables, in the order of their creation."""
        return [name for name, table in self._tables.items() if len(table)]

    def get(self, table: str, key: Key) -> Item | None:
        """Return an item, or None."""
        found = self._tables.get(table)
        return None if found is None else found.get(key)

    def between(self, table: str, namespace: str = "", *, start: str = "", at: int | None = None) -> list[Item]:
        """Return items in the order of their keys, current or at a revision.

        Args:
            table: name of the table.
            namespace: the namespace, or empty for all.
            start: the key to begin with (see `Table.between`).
            at: the revision; None for the current one.

        Raises:
            Compacted: the history does not reach back that far.
        """
        found = self.table(table)
        if at is None or at >= self.revision:
            return found.between(namespace, start)
        if at < self.compacted:
            raise Compacted(at, self.compacted)
        past = Table(table)
        past.thaw(found.freeze())
        for write in reversed(found.log):
            if write.revision <= at:
                break
            if write.old is not None:
                past.put(write.old)
            else:
                past.remove(write.new.key)
        return past.between(namespace, start)

    def since(self, table: str, revision: int) -> list[Write]:
        """Return the published writes to a table after a revision, oldest first.

        Raises:
            Compacted: the history does not reach back that far.
        """
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        found: list[Write] = []
        for write in reversed(self.table(table).log):
            if write.revision <= revision:
                break
            if write.revision <= self.published:
                found.append(write)
        found.reverse()
        return found

    def written_after(self, revision: int) -> list[Write]:
        """Return the writes to all tables after a revision in the history, durable or not, newest first.

        For in-process writers that need the result of their write.
        """
        return list(takewhile(lambda write: write.revision > revision, reversed(self._order)))

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, table: str, item: Item) -> Write:
        """Store an item whose revision is the next one.

        Raises:
            InvariantError: it has a different revision.
        """
        self._check(item)
        found = self.table(table)
        old = found.get(item.key)
        found.put(item)
        return self._commit(found, Write(ADDED if old is None else MODIFIED, table, item.revision, old, item, {}))

    def remove(self, table: str, last: Item) -> Write:
        """Remove an item.

        Args:
            table: name of the table.
            last: the final document, whose revision is the next one.

        Raises:
            InvariantError: the item does not exist, or `last` has a different revision.
        """
        self._check(last)
        found = self.table(table)
        old = found.get(last.key)
        if old is None:
            raise InvariantError(f"removal of {table} {last.key}, which is not stored")
        found.remove(last.key)
        return self._commit(found, Write(DELETED, table, last.revision, old, last, {}))

    def _check(self, item: Item) -> None:
        if item.revision != self.revision + 1:
            raise InvariantError(f"a write of revision {item.revision} after revision {self.revision}")

    def _commit(self, table: Table, write: Write) -> Write:
        self.revision = write.revision
        table.log.append(write)
        self._order.append(write)
        self._bytes += _bytes_held_by(write)
        while len(self._order) > self._most_writes or self._bytes > self._most_bytes:
            self._forget_oldest()
        if self.recorder is not None:
            self.recorder.record(write)
        else:
            self.publish(write)
        for follower in self._followers:
            follower(write)
        return write

    def _forget_oldest(self) -> None:
        oldest = self._order.popleft()
        self._tables[oldest.table].log.popleft()
        self._bytes -= _bytes_held_by(oldest)
        self.compacted = oldest.revision

    # --- watching -----------------------------------------------------------------------------------------------------

    def publish(self, write: Write) -> None:
        """Publish a write. Called in the order of revisions: at once, or when it is durable."""
        self.published = self.table(write.table).published = write.revision
        listeners = self._listeners.get(write.table)
        if listeners is not None:
            listeners.emit(write)
            # All watches have received it: drop its frames, with which the history would take twice the memory.
            write.frames.clear()

    def settled(self, revision: int) -> Awaitable[None] | None:
        """Return an awaitable until a revision may be published, or None if it may be."""
        if revision <= self.published or self.recorder is None:
            return None
        return self.recorder.settled(revision)

    def listen(
        self,
        table: str,
        listener: Callable[[Write], None],
        on_gap: Callable[[], None],
        *,
        aspect: Aspect | None = None,
    ) -> int:
        """Call a function for every published write to a table, and a second one if the history has a gap.

        Args:
            table: name of the table.
            listener: the function to call with each write.
            on_gap: the function to call when the history has a gap.
            aspect: the aspect of the relevant items; writes to other items may be skipped.

        Returns:
            A token for `unlisten`.
        """
        self._next_listener = token = self._next_listener + 1
        self._listeners.setdefault(table, Listeners()).add(token, listener, aspect)
        self._on_gap[token] = on_gap
        return token

    def unlisten(self, table: str, token: int) -> None:
        """Remove a listener."""
        if table in self._listeners:
            self._listeners[table].discard(token)
        self._on_gap.pop(token, None)

    def follow(self, follower: Callable[[Write], None], on_gap: Callable[[], None]) -> None:
        """Call a function for every write to any table once it is committed, durable or not, and for each gap.

        For components that share the store's process and lifetime (`bayplan.apiserver.bridge`); use `listen` to publish writes.
        """
        self._followers.append(follower)
        self._next_listener += 1
        self._on_gap[self._next_listener] = on_gap

    # --- history and snapshots ----------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Drop all history; later lists and watches of earlier revisions raise `Compacted`."""
        self.compacted = self.revision
        self._order.clear()
        self._bytes = 0
        for table in self._tables.values():
            table.log.clear()

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the current documents."""
        return Snapshot(self.revision, {name: table.freeze() for name, table in self._tables.items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the documents of a snapshot; an empty one is a reset.

        The revision increases, and watches end, because they can't continue across a restore; clients list again.
        """
        for name, table in self._tables.items():
            table.thaw(snapshot.tables.get(name, ({}, [])))
        self.revision += 1
        self.compact()
        self.epoch += 1
        if self.recorder is not None:
            self.recorder.reset(self._tables, self.revision)
        self.published = self.revision
        for on_gap in list(self._on_gap.values()):
            on_gap()

    def load(self, items: Mapping[str, list[Item]], revision: int) -> None:
        """Fill an empty store with the durable documents, in the order of keys or not."""
        for name, found in items.items():
            table = self.table(name)
            for item in sorted(found, key=lambda each: each.key):
                table.put(item)
        self.revision = self.published = self.compacted = revision

    def check_invariants(self) -> None:
        """Check the tables, the order of writes and the counters for consistency.

        Raises:
            InvariantError: the tables, writes or counters are inconsistent.
        """
        for table in self._tables.values():
            keys = [item.key for item in table.between("", "")]
            if keys != sorted(set(keys)) or len(keys) != len(table):
                raise InvariantError(f"the keys of {table.name} are out of order")
            if any(item.revision > self.revision for item in table.items()):
                raise InvariantError(f"{table.name} holds a revision that was never given")
        revisions = [write.revision for write in self._order]
        if revisions != sorted(set(revisions)) or sum(len(table.log) for table in self._tables.values()) != len(
            revisions
        ):
            raise InvariantError("the log of writes is out of order")


def _bytes_held_by(write: Write) -> int:
    """Return the size of the documents that a write in the history keeps in memory: replaced and deleted ones."""
    deleted = len(write.new.raw) if write.type == DELETED else 0
    return deleted if write.old is None else deleted + len(write.old.raw)
