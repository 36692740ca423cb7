"""The verb ``watch``: initial events or events since a revision, bookmarks, and the reasons to end.

Each watch has a buffer, which the store's listener fills and the connection drains. If a client does not read, its
watch ends when the buffer is full, and the client has to list again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from bayplan.apiserver.admission.outgoing import CallsNeededError
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.requests import ListOptions, RequestInfo
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.listing import too_large
from bayplan.apiserver.rest.negotiation import Form
from bayplan.apiserver.rest.reaching import reaches
from bayplan.apiserver.rest.selection import Selection
from bayplan.apiserver.rest.watch_frames import WatchFrames
from bayplan.apiserver.store.item import ADDED, DELETED, MODIFIED, Write
from bayplan.apiserver.store.store import Compacted
from bayplan.apiserver.tables.table import INCLUDE

MAX_BUFFERED_BYTES = 16 * 1024 * 1024
BOOKMARK_SECONDS = 60.0
_BEFORE_TIMEOUT = 2.0
_MIN_TIMEOUT = 1800
_SLICE = 500

_log = logging.getLogger("bayplan.apiserver")


class _WakeUp:
    """Lets a watch wait for an event or a time. Use on the event loop."""

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def wait_until(self, time: float) -> None:
        """Wait for `wake`, at most until a time of the event loop."""
        loop, alarm = asyncio.get_running_loop(), self._alarm
        if alarm is None or alarm.when() != time:
            self.stop()
            self._alarm = loop.call_at(time, self._ring)
        self._waiter = loop.create_future()
        await self._waiter

    def wake(self) -> None:
        """End the wait."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self.wake()


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
        self._store = backend.store
        self._backend = backend
        self._resource = info.resource
        self._options = options
        self._selection = chosen
        self._seconds = options.timeout_seconds or request_timeout or _MIN_TIMEOUT
        self._frames = WatchFrames(backend, info, form, include)
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._wake_up = _WakeUp()
        self.cut_off: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = False
        self._seen = 0
        self._known = 0
        self._listed = False
        self._token = 0

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield pieces of the body until the watch ends."""
        deadline = asyncio.get_running_loop().time() + self._seconds
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
        store, options = self._store, self._options
        since, initial = options.resource_version, options.send_initial_events
        wants_items = initial if initial is not None else not since
        aspect = self._selection.aspect
        if initial and not await reaches(self._backend, since or 0, deadline):
            self._ended = True
            yield self._frames.error(too_large(since or 0, store.revision))
            return
        # Listen only now: the list below contains the writes during the wait.
        self._token = store.listen(self._resource.table, self._on_write, self._on_gap, aspect=aspect)
        if wants_items:
            self._listed = True
            items = [
                item for item in store.between(self._resource.table, self._selection.namespace)
                if self._selection.matches(item)
            ]  # fmt: skip
            self._seen = self._known = store.revision
            waiting = store.until_durable(self._seen)
            if waiting is not None:
                # Wait until the items are durable: clients must not receive a write that a crash could still lose.
                await waiting
            if items and self._frames.is_for_lists:
                # Events have no lists, so the watch ends at the first object.
                self._ended = True
                return
            for at in range(0, len(items), _SLICE):
                yield b"".join(self._frames.of_item(ADDED, item) for item in items[at : at + _SLICE])
                await asyncio.sleep(0)
            if initial and options.bookmarks:
                self._known = self._seen
                yield self._frames.bookmark(self._seen, farewell=True)
            return
        since = since or store.revision
        self._seen = since
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
        self._known = self._seen = max(self._seen, min(since, store.revision))

    async def _follow(self, deadline: float) -> AsyncIterator[bytes]:
        """Yield events until the deadline, a gap in history, or a full buffer."""
        loop = asyncio.get_running_loop()
        next_bookmark = _next_bookmark(loop.time(), deadline)
        if not self._listed and self._seconds <= _BEFORE_TIMEOUT:
            next_bookmark = deadline  # Upstream sends the first bookmark two seconds before the timeout, or none.
        while True:
            if self._buffer:
                pieces, self._buffer, self._buffered = self._buffer, [], 0
                yield b"".join(pieces)
                continue
            now = loop.time()
            if self._ended or now >= deadline:
                return
            if now >= next_bookmark:
                next_bookmark = _next_bookmark(now, deadline)
                # This watch has sent or filtered out every published write of the table, so a bookmark may report it.
                seen = max(self._seen, self._store.table(self._resource.table).published)
                # As in upstream, it also repeats the revision of the last event, but not one from before the watch began.
                if self._options.bookmarks and seen > self._known:
                    yield self._frames.bookmark(seen, farewell=False)
            await self._wake_up.wait_until(min(deadline, next_bookmark))

    def _stop(self) -> None:
        self._wake_up.stop()
        self._store.unlisten(self._resource.table, self._token)

    def _on_gap(self) -> None:
        """End the watch with an error: it cannot continue after the store was reset or a snapshot restored."""
        self._buffer.append(self._error(Compacted(self._seen, self._store.revision)))
        self._ended = True
        self._wake_up.wake()

    def _on_write(self, write: Write) -> None:
        if write.revision <= self._seen:
            return
        self._seen = write.revision
        chosen = self._selection
        before = write.old is not None and chosen.matches(write.old)
        after = write.type != DELETED and chosen.matches(write.new)
        if after:
            self._push(write, MODIFIED if before else ADDED)
        elif before:
            self._push(write, DELETED)

    def _push(self, write: Write, kind: str) -> None:
        if self._frames.is_for_lists:
            self._ended = True
            self._wake_up.wake()
            return
        try:
            frame = self._frames.of_write(kind, write)
        except (CallsNeededError, ApiError):
            # End the watch: the client lists again, and lists can wait for conversions.
            self._on_gap()
            return
        except Exception:
            # The write and other watches must not fail with this one.
            _log.exception("a watch of %s", self._resource.table)
            self._on_gap()
            return
        self._buffer.append(frame)
        self._buffered += len(frame)
        if self._buffered > MAX_BUFFERED_BYTES:
            self._buffer.clear()
            self._stop()
            self._ended = True
            if not self.cut_off.done():
                self.cut_off.set_result(None)
        self._wake_up.wake()

    def _error(self, problem: Compacted) -> bytes:
        text = f"too old resource version: {problem.wanted} ({problem.oldest})"
        return self._frames.error(ApiError(410, text))


def _next_bookmark(now: float, deadline: float) -> float:
    before_end = deadline - _BEFORE_TIMEOUT
    if before_end <= now:
        return min(now + 1.0, deadline)
    return min(now + BOOKMARK_SECONDS, before_end)
