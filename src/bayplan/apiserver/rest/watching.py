"""The verb ``watch``: initial events or events since a revision, bookmarks, and the reasons to end.

Each watch has a buffer, which the store's listener fills and the connection drains. Each write is encoded once per
format and shared by all watches with this format. If a client does not read, its watch ends when the buffer is full,
and the client has to list again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from bayplan.apiserver.admission.outgoing import CallsNeededError
from bayplan.apiserver.kinds.default_functions import TEMPLATE_GENERATION
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.requests import ListOptions, RequestInfo
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.listing import too_large
from bayplan.apiserver.rest.negotiation import Form
from bayplan.apiserver.rest.reaching import reaches
from bayplan.apiserver.rest.rendering import encode_document, event_frame, render_error, render_item, watch_form
from bayplan.apiserver.rest.selection import Selection
from bayplan.apiserver.rest.writing import zero_document
from bayplan.apiserver.store.item import ADDED, DELETED, MODIFIED, Item, Write
from bayplan.apiserver.store.store import Compacted
from bayplan.apiserver.tables.table import INCLUDE
from bayplan.base.plain_data import part

MAX_BUFFERED_BYTES = 16 * 1024 * 1024
BOOKMARK_SECONDS = 60.0
_ZERO_REPLICAS = ("apps/deployments", "apps/replicasets", "apps/statefulsets")
"""Tables whose bookmarks show 0 replicas: a bookmark is an empty object of Go's internal type, which has a number of replicas."""
_ZERO_ANNOTATIONS = {"apps/daemonsets": {TEMPLATE_GENERATION: "0"}}
"""Annotations of bookmarks that represent fields of Go's internal type, by table."""
_BEFORE_TIMEOUT = 2.0
_MIN_TIMEOUT = 1800
_SLICE = 500
_FAREWELL = "k8s.io/initial-events-end"


class Watch:
    """One watch.

    Args:
        backend: the backend of the API.
        info: the request.
        options: the start, the timeout, and whether to send bookmarks.
        chosen: the selection of the options.
        form: the format of the objects in events.
        request_timeout: the timeout of the request in seconds, if `options` has none; 0 for the default of 30 minutes.
        include: the part of each object that a table's rows include.

    Attributes:
        cut_off: set when the buffer is full, which ends the watch.
    """

    def __init__(
        self,
        backend: Backend,
        info: RequestInfo,
        options: ListOptions,
        chosen: Selection,
        form: Form,
        request_timeout: float = 0.0,
        include: str = INCLUDE,
    ) -> None:
        self._request_timeout = request_timeout
        self._backend = backend
        self._info = info
        self._resource = info.resource
        self._options = options
        self._selection = chosen
        self._encode, self._frame_key = watch_form(backend, info, form, include)
        self._form = form
        self._include = include
        self._first_table = form.kind == "Table"
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self.cut_off: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = False
        self._seen = 0
        self._reported = 0
        self._token = 0

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield pieces of the body until the watch ends."""
        seconds = self._options.timeout_seconds or self._request_timeout
        deadline = asyncio.get_running_loop().time() + (seconds if seconds else _MIN_TIMEOUT)
        try:
            async for piece in self._begin(deadline):
                yield piece
            if not self._ended:
                async for piece in self._follow(deadline):
                    yield piece
        finally:
            self._stop()

    async def _begin(self, deadline: float) -> AsyncIterator[bytes]:
        """Start listening to the store, and yield the initial objects or queue the writes since a revision."""
        store, options = self._backend.store, self._options
        since, initial = options.resource_version, options.send_initial_events
        wants_items = initial if initial is not None else not since
        aspect = self._selection.aspect
        if initial and not await reaches(self._backend, since or 0, deadline):
            self._ended = True
            problem = too_large(since or 0, store.revision)
            yield event_frame("ERROR", render_error(problem, self._form), self._form)
            return
        # Listen only now: the list below contains the writes during the wait.
        self._token = store.listen(self._resource.table, self._on_write, self._on_gap, aspect=aspect)
        if wants_items:
            items = [
                item for item in store.between(self._resource.table, self._selection.namespace)
                if self._selection.matches(item)
            ]  # fmt: skip
            self._seen = self._reported = store.revision
            waiting = store.until_durable(self._seen)
            if waiting is not None:
                # Wait until the items are durable: clients must not receive a write that a crash could still lose.
                await waiting
            if items and self._is_for_lists:
                self._ended = True
                return
            for at in range(0, len(items), _SLICE):
                yield b"".join(self._frame_of(ADDED, item) for item in items[at : at + _SLICE])
                await asyncio.sleep(0)
            if initial and options.bookmarks:
                yield self._bookmark(self._seen, farewell=True)
            return
        since = since or store.revision
        self._seen = self._reported = since
        try:
            if self._resource.schema_revision > since:
                # Upstream serves a changed definition from a new cache, which has no history.
                raise Compacted(since, store.revision)
            for write in store.since(self._resource.table, since):
                self._on_write(write)
                write.frames.clear()
        except Compacted as problem:
            self._ended = True
            yield self._error(problem)
        self._seen = max(self._seen, min(since, store.revision))

    async def _follow(self, deadline: float) -> AsyncIterator[bytes]:
        """Yield events until the deadline, a gap in history, or a full buffer."""
        loop = asyncio.get_running_loop()
        next_bookmark = self._next_bookmark(loop.time(), deadline)
        while True:
            if self._buffer:
                pieces, self._buffer, self._buffered = self._buffer, [], 0
                yield b"".join(pieces)
                continue
            now = loop.time()
            if self._ended or now >= deadline:
                return
            if now >= next_bookmark:
                next_bookmark = self._next_bookmark(now, deadline)
                # This watch has sent or filtered out every published write of the table, so a bookmark may report it.
                seen = max(self._seen, self._backend.store.table(self._resource.table).published)
                if self._options.bookmarks and seen > self._reported:
                    yield self._bookmark(seen, farewell=False)
            alarm = self._alarm
            if alarm is None or alarm.when() != min(deadline, next_bookmark):
                self._stop_alarm()
                self._alarm = loop.call_at(min(deadline, next_bookmark), self._ring)
            self._waiter = loop.create_future()
            await self._waiter

    def _next_bookmark(self, now: float, deadline: float) -> float:
        before_end = deadline - _BEFORE_TIMEOUT
        if before_end <= now:
            return min(now + 1.0, deadline)
        return min(now + BOOKMARK_SECONDS, before_end)

    def _wake(self) -> None:
        """Resume `_follow`, which then checks the buffer and the clock."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _ring(self) -> None:
        self._alarm = None
        self._wake()

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _stop(self) -> None:
        self._stop_alarm()
        self._backend.store.unlisten(self._resource.table, self._token)

    def _on_gap(self) -> None:
        """End the watch with an error: it cannot continue after the store was reset or a snapshot restored."""
        self._buffer.append(self._error(Compacted(self._seen, self._backend.store.revision)))
        self._ended = True
        self._wake()

    def _on_write(self, write: Write) -> None:
        if write.revision <= self._seen:
            return
        self._seen = write.revision
        chosen = self._selection
        before = write.old is not None and chosen.matches(write.old)
        after = write.type != DELETED and chosen.matches(write.new)
        if after:
            self._push(write, MODIFIED if before else ADDED, write.new)
        elif before:
            self._push(write, DELETED, write.new)

    @property
    def _is_for_lists(self) -> bool:
        """Whether the client requested a list kind. Events have no lists, so the watch ends at the first object."""
        return self._form.wanted.endswith("List")

    def _push(self, write: Write, kind: str, item: Item) -> None:
        if self._is_for_lists:
            self._ended = True
            self._wake()
            return
        key = (kind, self._frame_key)
        frame = None if self._first_table else write.frames.get(key)
        if frame is None:
            if kind == DELETED and write.old is not None and write.type != DELETED:
                # For the client, an object that leaves the selection is deleted: send its previous state with the
                # write's revision.
                item = _with_revision(write.old, write.revision)
            shared = not self._first_table
            try:
                frame = self._frame_of(kind, item)
            except (CallsNeededError, ApiError):
                # End the watch: the client lists again, and lists can wait for conversions.
                self._on_gap()
                return
            if shared:
                write.frames[key] = frame
        self._reported = write.revision
        self._buffer.append(frame)
        self._buffered += len(frame)
        if self._buffered > MAX_BUFFERED_BYTES:
            self._buffer.clear()
            self._stop()
            self._ended = True
            if not self.cut_off.done():
                self.cut_off.set_result(None)
        self._wake()

    def _frame_of(self, kind: str, item: Item, include: str = "") -> bytes:
        """Return an event as bytes. `include`: what the rows of a table include, if not what the client requested."""
        if self._first_table:
            # Only the first table of a watch has columns.
            self._first_table = False
            whole = render_item(self._backend, self._resource, item, self._form, include or self._include)
            return event_frame(kind, whole, self._form)
        encode = watch_form(self._backend, self._info, self._form, include)[0] if include else self._encode
        return event_frame(kind, encode(item), self._form)

    def _bookmark(self, revision: int, *, farewell: bool) -> bytes:
        self._reported = revision if farewell else self._reported
        resource = self._resource
        annotations = dict(_ZERO_ANNOTATIONS.get(resource.table, {}))
        if farewell:
            annotations[_FAREWELL] = "true"
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        document: dict[str, object] = {"kind": resource.kind, "apiVersion": resource.api_version}
        document |= {**zero_document(resource), "metadata": metadata}
        if resource.table in _ZERO_REPLICAS:
            document["spec"] = {"replicas": 0, **part(document, "spec")}
        if self._form.kind:
            item = Item(msgspec.json.encode(document), revision, "", "", "", {}, {})
            # Upstream always includes the metadata that ends the initial events.
            include = INCLUDE if farewell and self._include == "None" else self._include
            return self._frame_of("BOOKMARK", item, include)
        return event_frame("BOOKMARK", encode_document(document, self._form), self._form)

    def _error(self, problem: Compacted) -> bytes:
        text = f"too old resource version: {problem.wanted} ({problem.oldest})"
        return event_frame("ERROR", render_error(ApiError(410, text), self._form), self._form)


def _with_revision(item: Item, revision: int) -> Item:
    """Return a copy of an item with a different revision.

    The first occurrence of the old revision in the JSON is in the metadata.
    """
    old, new = b'"resourceVersion":"%d"' % item.revision, b'"resourceVersion":"%d"' % revision
    return msgspec.structs.replace(item, raw=item.raw.replace(old, new, 1), revision=revision)
