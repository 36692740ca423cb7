"""The store: tables of items under one revision counter, with history, watches, snapshots and optional durability.

Only the thread of the event loop uses the store, and no method waits. Reading an item and committing its successor is
therefore one step, which makes optimistic locking safe. Every write to any table gets a new revision, and no revision
is used twice. The history is limited to a number of writes and bytes; a request for older revisions raises `Compacted`.

The store holds encoded objects. Controllers work on typed objects, and get their change events from the history
(`bayplan.apiserver.bridge`, docs/adr/0009).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from bayplan.apiserver.store.item import ADDED, DELETED, MODIFIED, Item, Write
from bayplan.apiserver.store.listeners import Aspect, Listeners
from bayplan.apiserver.store.table import Key, Table
from bayplan.base.errors import InvariantError

_log = logging.getLogger("bayplan.apiserver")

MAX_WRITES = 100_000
MAX_BYTES = 64 * 1024 * 1024


class Compacted(Exception):
    """The history does not reach back to a revision.

    Attributes:
        wanted: the requested revision.
        oldest: the oldest available revision.
    """

    def __init__(self, wanted: int, oldest: int) -> None:
        self.wanted = wanted
        self.oldest = oldest
        super().__init__(f"revision {wanted} is older than {oldest}")


class Recorder(Protocol):
    """The component that makes writes durable (`bayplan.apiserver.store.durable`)."""

    def record(self, write: Write) -> None:
        """Record a write, and call `Store.publish` with it when it is durable."""

    def reset(self, tables: Mapping[str, Table], revision: int) -> None:
        """Replace all recorded objects with the contents of these tables."""

    def until_durable(self, revision: int) -> Awaitable[None] | None:
        """Return an awaitable that is done when a revision is durable, or None if it already is."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The items of all tables at one revision. Taking or restoring a snapshot copies no items."""

    revision: int
    tables: Mapping[str, tuple[Mapping[Key, Item], list[Key]]]


class Store:
    """The stored objects of all resources.

    Args:
        max_writes: the maximum number of writes in the history.
        max_bytes: the maximum size in bytes of the items that only the history holds.

    Attributes:
        revision: the revision of the last write.
        published: the revision of the last write that watches and lists may return. It is less than `revision` only
            while writes wait for the disk.
        compacted: the history contains the writes after this revision.
        epoch: the number of restores, including resets; a watch of an earlier epoch has a gap.
        recorder: makes writes durable; None for a store in memory.
        bugs: the last unexpected exception of the listeners to each table.
    """

    def __init__(self, *, max_writes: int = MAX_WRITES, max_bytes: int = MAX_BYTES) -> None:
        self.revision = 0
        self.published = 0
        self.compacted = 0
        self.epoch = 0
        self.recorder: Recorder | None = None
        self.bugs: dict[str, Exception] = {}
        self._tables: dict[str, Table] = {}
        self._order: deque[Write] = deque()
        self._bytes = 0
        self._most_writes = max_writes
        self._most_bytes = max_bytes
        self._listeners: dict[str, Listeners] = {}
        self._next_listener = 0
        self._on_gap: dict[int, Callable[[], None]] = {}
        self._followers: list[Callable[[Write], None]] = []
        self._on_restore: list[Callable[[], None]] = []

    # --- reading ------------------------------------------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """Return a table; create it on first use."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(name)
        return found

    def table_names(self) -> list[str]:
        """Return the names of the non-empty tables in the order of their creation."""
        return [name for name, table in self._tables.items() if len(table)]

    def get(self, table: str, key: Key) -> Item | None:
        """Return an item, or None if it does not exist."""
        found = self._tables.get(table)
        return None if found is None else found.get(key)

    def between(self, table: str, namespace: str = "", *, start: str = "", at: int | None = None) -> list[Item]:
        """Return items sorted by key, either the current ones or those at an earlier revision.

        Args:
            table: the name of the table.
            namespace: the namespace, or empty for all.
            start: the key to start at (see `Table.between`).
            at: the revision; None for the current one.

        Raises:
            Compacted: the history does not reach back to the revision.
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
            Compacted: the history does not reach back to the revision.
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
        """Return the writes to all tables after a revision, newest first, as far as the history has them.

        Includes writes that are not yet durable: for in-process writers that need the result of their own write.
        """
        return list(takewhile(lambda write: write.revision > revision, reversed(self._order)))

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, table: str, item: Item) -> Write:
        """Store an item whose revision must be the next revision, and return the write.

        Raises:
            InvariantError: the item has a different revision.
        """
        self._check(item)
        found = self.table(table)
        old = found.get(item.key)
        found.put(item)
        return self._commit(found, Write(ADDED if old is None else MODIFIED, table, item.revision, old, item, {}))

    def remove(self, table: str, last: Item) -> Write:
        """Remove an item, and return the write.

        Args:
            table: the name of the table.
            last: the last state of the object, with the next revision.

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
        """Pass a write to the listeners. An exception of one affects neither the others nor the client that has written.

        The caller publishes in revision order: immediately, or when the write is durable.
        """
        self.published = self.table(write.table).published = write.revision
        listeners = self._listeners.get(write.table)
        if listeners is not None:
            for token, listener in listeners.interested_in(write):
                try:
                    listener(write)
                except Exception as problem:
                    _log.exception("a listener to %s failed", write.table)
                    self.bugs[f"listener to {write.table}"] = problem
                    self._report_gap(token)
            # All watches have received the write. The history would take twice the memory with its frames.
            write.frames.clear()

    def _report_gap(self, token: int) -> None:
        """Report to a listener that it has missed a write."""
        on_gap = self._on_gap.get(token)
        if on_gap is not None:
            try:
                on_gap()
            except Exception as problem:
                _log.exception("a listener failed to handle a gap")
                self.bugs["listener after a gap"] = problem

    def until_durable(self, revision: int) -> Awaitable[None] | None:
        """Return an awaitable that is done when a revision may be published, or None if it already may."""
        if revision <= self.published or self.recorder is None:
            return None
        return self.recorder.until_durable(revision)

    def listen(
        self,
        table: str,
        listener: Callable[[Write], None],
        on_gap: Callable[[], None],
        *,
        aspect: Aspect | None = None,
    ) -> int:
        """Call a function for every published write to a table, and a second function when the history gets a gap.

        Args:
            table: the name of the table.
            listener: called with each write.
            on_gap: called when a restore makes a gap in the history.
            aspect: a value that all relevant items have; writes of other items are skipped. None for all writes.

        Returns:
            A token for `unlisten`.
        """
        self._next_listener = token = self._next_listener + 1
        self._listeners.setdefault(table, Listeners()).add(token, listener, aspect)
        self._on_gap[token] = on_gap
        return token

    def unlisten(self, table: str, token: int) -> None:
        """Remove the listener with this token from a table."""
        if table in self._listeners:
            self._listeners[table].discard(token)
        self._on_gap.pop(token, None)

    def follow(self, follower: Callable[[Write], None], on_gap: Callable[[], None]) -> None:
        """Call a function for every committed write, durable or not, and a second function for gaps in the history.

        For components that share the store's process and lifetime (`bayplan.apiserver.bridge`). To show writes to
        clients, use `listen`.
        """
        self._followers.append(follower)
        self.on_restore(on_gap)

    def on_restore(self, function: Callable[[], None]) -> None:
        """Call a function after each restore, before clients are notified. For components that live as long as the store."""
        self._on_restore.append(function)

    # --- history and snapshots ----------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Drop the whole history. From then on, lists and watches of earlier revisions raise `Compacted`."""
        self.compacted = self.revision
        self._order.clear()
        self._bytes = 0
        for table in self._tables.values():
            table.log.clear()

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the current items."""
        return Snapshot(self.revision, {name: table.freeze() for name, table in self._tables.items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Replace all items with the items of a snapshot; an empty snapshot resets the store.

        The revision increases. Watches cannot continue across a restore, so they end, and clients list again.
        """
        for name, table in self._tables.items():
            table.thaw(snapshot.tables.get(name, ({}, [])))
        self.revision += 1
        self.compact()
        self.epoch += 1
        if self.recorder is not None:
            self.recorder.reset(self._tables, self.revision)
        self.published = self.revision
        for function in (*self._on_restore, *self._on_gap.values()):
            function()

    def load(self, items: Mapping[str, list[Item]], revision: int) -> None:
        """Fill an empty store with durable items in any order, and set the last revision."""
        for name, found in items.items():
            table = self.table(name)
            for item in sorted(found, key=lambda each: each.key):
                table.put(item)
        self.revision = self.published = self.compacted = revision

    def check_invariants(self) -> None:
        """Raise if the tables, the history and the counters are inconsistent.

        Raises:
            InvariantError: an inconsistency was found.
        """
        for table in self._tables.values():
            keys = [item.key for item in table.between("", "")]
            if keys != sorted(set(keys)) or len(keys) != len(table):
                raise InvariantError(f"the keys of {table.name} are out of order")
            if any(item.revision > self.revision for item in table.items()):
                raise InvariantError(f"{table.name} contains a revision that was never assigned")
        revisions = [write.revision for write in self._order]
        if revisions != sorted(set(revisions)) or sum(len(table.log) for table in self._tables.values()) != len(
            revisions
        ):
            raise InvariantError("the log of writes is out of order")


def _bytes_held_by(write: Write) -> int:
    """Return the size in bytes of the items that exist only because this write is in the history."""
    deleted = len(write.new.raw) if write.type == DELETED else 0
    return deleted if write.old is None else deleted + len(write.old.raw)
