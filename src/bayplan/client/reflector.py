"""Reflectors: cached copies of API collections that emit every change and survive lost connections.

A reflector lists, then watches from the list's revision. If the server's history no longer has the revision, it lists
again and emits the differences. So the emitted changes always lead to the current state, although several changes of an
object may be merged. Lists are streamed if the server supports that (``sendInitialEvents``), otherwise read page by
page.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, NamedTuple, NoReturn, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from bayplan.base.errors import InputError
from bayplan.client.connection import ApiConnection, ConnectionLost, StreamRejected, StreamSilent
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.objects.meta import ObjectMeta

PAGE = 500
"""Number of objects per page of a list that is not streamed."""

FIRST_PAUSE_SECONDS = 0.8
MAX_PAUSE_SECONDS = 30.0
CALM_SECONDS = 10.0
"""Minimum age of an open watch that shows that the server works.

If such a watch is lost, it is opened again at once, as in client-go. Any other failure doubles the pause between
attempts, up to the maximum.
"""

SHORT_SECONDS = 1.0
"""A watch that ends sooner than this without an event counts as a failure, so that a broken server causes no busy loop."""

CHECK_SECONDS = 15.0
"""Timeout of the request that checks a server after a failure or a silent watch."""

WATCH_SECONDS = (300, 600)
"""Range of the random timeout of a watch, so that watches do not all end at the same time."""


class RetryTimes(NamedTuple):
    """The times that control retries; see the constants."""

    first_pause_seconds: float = FIRST_PAUSE_SECONDS
    calm_seconds: float = CALM_SECONDS
    short_seconds: float = SHORT_SECONDS


RETRY_TIMES = RetryTimes()
_TOO_MANY_REQUESTS = 429
_GONE = 410
_CANNOT_STREAM = (400, 422)
_INITIAL_END = "k8s.io/initial-events-end"
_log = logging.getLogger("bayplan.client")


class Watched(Protocol):
    """An object of a reflector, which needs metadata and a key."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata; the reflector uses uid and resource version."""
        ...

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for a cluster-scoped object."""
        ...


W = TypeVar("W", bound=Watched)


class Change(NamedTuple, Generic[W]):
    """A change of an object: an addition (`old` is None), an update, or a deletion (`new` is None)."""

    old: W | None
    new: W | None


class _WatchEvent(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _BareMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}
    continue_: str = msgspec.field(name="continue", default="")


class _BareObject(msgspec.Struct, gc=False):
    metadata: _BareMeta = _BareMeta()
    code: int = 0


class _List(msgspec.Struct, gc=False):
    metadata: _BareMeta = _BareMeta()
    items: list[msgspec.Raw] | None = None


class _NamedMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Named(msgspec.Struct, gc=False):
    metadata: _NamedMeta = _NamedMeta()


class _ServerIsOlder(Exception):
    """The server has an older state than the cached objects."""


class ListFailed(Exception):
    """The server rejected a list; the text is its message."""


class Reflector(Generic[W]):
    """A cached copy of one collection. Belongs to the event loop that runs it.

    Args:
        connection: the connection to the server.
        path: the path of the collection, e.g. ``/api/v1/pods``.
        decode: decodes an object; if it raises `InputError`, the object is skipped and reported once.
        on_changes: called with changes in order, and only once for changes that arrive together.
        selector: the label and field selectors, as in a query.
        jitter: returns a random number in [0, 1).
        on_listed: called with the version of every list after all its objects were emitted.
        on_part: called with parts of the first list as they arrive; `on_changes` gets all objects when the list is
            complete. If the list has to be restarted, parts are emitted again.
        retry_times: when to retry after a failure.
        once: whether only the first list is of interest: if it can't be decoded, `run` raises instead of listing again.

    Attributes:
        items: the objects by key.
        version: the resource version up to which changes were received; "" before the first list.
        synced: set when the first list was emitted.
        problem: why the collection currently cannot be watched, or "".
        undecodable: the errors of skipped objects, by key.
    """

    def __init__(
        self,
        connection: ApiConnection,
        path: str,
        decode: Callable[[bytes], W],
        on_changes: Callable[[Sequence[Change[W]]], None],
        *,
        selector: str = "",
        jitter: Callable[[], float] = random.random,
        on_listed: Callable[[str], None] | None = None,
        on_part: Callable[[Sequence[W]], None] | None = None,
        retry_times: RetryTimes = RETRY_TIMES,
        once: bool = False,
    ) -> None:
        self.items: dict[str, W] = {}
        self.version = ""
        self.synced = asyncio.Event()
        self.problem = ""
        self.undecodable: dict[str, str] = {}
        self._connection = connection
        self._path = path
        self._decode = decode
        self._on_changes = on_changes
        self._selector = selector
        self._jitter = jitter
        self._on_listed = on_listed
        self._on_part = on_part
        self._retry_times = retry_times
        self._once = once
        self._can_stream = True
        # After a failure, the server may have an older state, restored from a backup or empty.
        self._is_suspect = False
        self._is_open = False
        self._event = msgspec.json.Decoder(_WatchEvent).decode
        self._bare = msgspec.json.Decoder(_BareObject).decode

    async def run(self) -> None:
        """List and watch the collection until cancelled.

        Raises:
            msgspec.MsgspecError, UnicodeDecodeError: the first list can't be decoded, and `once` is set.
        """
        times, loop = self._retry_times, asyncio.get_running_loop()
        pause = times.first_pause_seconds
        while True:
            began, self._is_open = loop.time(), False
            try:
                if self.version:
                    await self._watch()
                    self._end_problem()
                else:
                    await self._list()
                # A list by pages shows nothing about watches.
                if self._is_open and loop.time() - began > times.calm_seconds:
                    pause = times.first_pause_seconds
                continue
            except _ServerIsOlder:
                self.version = ""
                continue
            except StreamSilent as silent:
                self._is_suspect = True
                if self.version:
                    # Not a failure: servers without bookmarks are silent. If the server hangs, `_check_history` fails.
                    continue
                problem = str(silent)
            except StreamRejected as refused:
                # Like client-go, list again except if the server is busy: it may reject only this version. An expired
                # version, too, is a failure: a server may reject the version of every list.
                if refused.response.status != _TOO_MANY_REQUESTS:
                    self.version = ""
                problem = str(refused)
            except (ConnectionLost, ListFailed) as lost:
                problem = str(lost)
            except (msgspec.MsgspecError, UnicodeDecodeError) as odd:
                if self._once and not self.synced.is_set():
                    raise
                # List again: after an unreadable response, changes may have been missed.
                problem, self.version = f"unreadable: {odd}", ""
            if problem != self.problem:
                _log.warning("%s: %s", self._path, problem)
            self.problem, self._is_suspect = problem, True
            if self._is_open and loop.time() - began > times.calm_seconds:
                pause = times.first_pause_seconds
                continue
            await asyncio.sleep(pause * (1.0 + self._jitter()))
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    # --- lists --------------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        if self._can_stream:
            try:
                await self._stream_list()
                return
            except StreamRejected as refused:
                if refused.response.status not in _CANNOT_STREAM:
                    raise
                self._can_stream = False
        version, found = await self._list_pages()
        self._replace(found)
        self._are_synced(version)

    async def _stream_list(self) -> None:
        """Read the list as the initial events of a watch, and continue the watch."""
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": ""}
        found: dict[str, W] = {}
        listing = True
        async with aclosing(self._events(query)) as stream:
            async for events in stream:
                changes: list[Change[W]] = []
                part: list[W] = []
                for event in events:
                    if not listing:
                        self._take(event, changes)
                    elif event.type == "BOOKMARK":
                        bare = self._bare(event.object).metadata
                        if bare.annotations.get(_INITIAL_END) == "true":
                            listing = False
                            self._emit_part(part)
                            self._replace(found)
                            self._are_synced(bare.resource_version)
                    elif event.type == "ERROR":
                        self._fail(event)
                    else:
                        part += self._collect(bytes(event.object), found, deleted=event.type == "DELETED")
                if listing:
                    self._emit_part(part)
                self._emit(changes)
        if listing:
            raise ConnectionLost("the list ended before it was complete")

    async def _list_pages(self) -> tuple[str, dict[str, W]]:
        """Return the version of the list, and its objects by key.

        If the list expires between two pages, request it without pages.
        """
        found: dict[str, W] = {}
        query = {"limit": str(PAGE)}
        while True:
            response = await self._connection.send(ApiRequest("GET", self._path, query=self._query(query)))
            if response.status == _GONE and "continue" in query:
                found.clear()
                query = {}
                continue
            if not response.ok:
                raise ListFailed(response.message)
            page = msgspec.json.decode(response.body, type=_List)
            self._emit_part([item for raw in page.items or () for item in self._collect(bytes(raw), found)])
            if not page.metadata.continue_:
                return page.metadata.resource_version, found
            query["continue"] = page.metadata.continue_

    def _collect(self, raw: bytes, found: dict[str, W], *, deleted: bool = False) -> tuple[W, ...]:
        """Add a decoded object to `found`, or remove it. Return a tuple of the added object, else an empty one."""
        item = self._decoded(raw)
        if deleted or isinstance(item, _NamedMeta):
            found.pop(item.key, None)
            return ()
        found[item.key] = item
        return (item,)

    def _emit_part(self, part: list[W]) -> None:
        if part and self._on_part is not None and not self.synced.is_set():
            self._on_part(part)

    def _replace(self, found: dict[str, W]) -> None:
        """Replace the cached objects, and emit the differences: deletions first, so that keys are free."""
        changes: list[Change[W]] = []
        for key, old in list(self.items.items()):
            new = found.get(key)
            if new is None or new.metadata.uid != old.metadata.uid:
                del self.items[key]
                changes.append(Change(old, None))
        for key, new in found.items():
            known = self.items.get(key)
            if known is None or known.metadata.resource_version != new.metadata.resource_version:
                self.items[key] = new
                changes.append(Change(known, new))
        self._emit(changes)

    def _are_synced(self, version: str) -> None:
        if not version:
            raise ListFailed("the list has no resource version")
        self.version = version
        self._is_suspect = False
        self.synced.set()
        if self._on_listed is not None:
            self._on_listed(version)

    # --- watches ------------------------------------------------------------------------------------------------------

    async def _check_history(self) -> None:
        """Raise _ServerIsOlder if the server's revision is older than the cached objects, as after a restore.

        A watch from a revision in the future would succeed, but send nothing until the server reaches that revision.
        """
        response = await self._connection.send(ApiRequest("GET", self._path, query="limit=1"), seconds=CHECK_SECONDS)
        if response.status == NO_ANSWER:
            # Without the path, as for a watch that can't be opened.
            raise ListFailed(f"{self._connection.access.url}: {response.message.rpartition(': ')[2]}")
        found = msgspec.json.decode(response.body, type=_List).metadata.resource_version if response.ok else ""
        if found.isdecimal() and self.version.isdecimal() and int(found) < int(self.version):
            _log.warning(
                "%s: revision %s of the server is older than %s; listing again", self._path, found, self.version
            )
            raise _ServerIsOlder
        self._is_suspect = False

    async def _watch(self) -> None:
        if self._is_suspect:
            await self._check_history()
        loop = asyncio.get_running_loop()
        began, before = loop.time(), self.version
        async with aclosing(self._events({"resourceVersion": before})) as stream:
            async for events in stream:
                changes: list[Change[W]] = []
                for event in events:
                    self._take(event, changes)
                self._emit(changes)
        if self.version == before and loop.time() - began < self._retry_times.short_seconds:
            raise ConnectionLost("the watch ended immediately")

    async def _events(self, query: dict[str, str]) -> AsyncGenerator[list[_WatchEvent], None]:
        low, high = WATCH_SECONDS
        seconds = int(low + (high - low) * self._jitter())
        full = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), **query}
        async with aclosing(self._connection.stream(self._path, self._query(full))) as stream:
            async for lines in stream:
                self._is_open = True
                events = [self._event(line) for line in lines if line]
                if events and events[0].type != "ERROR":
                    self._end_problem()
                yield events

    def _take(self, event: _WatchEvent, changes: list[Change[W]]) -> None:
        """Apply one event of a watch to the cached objects, and append the changes."""
        if event.type == "BOOKMARK":
            self.version = self._bare(event.object).metadata.resource_version
            return
        if event.type == "ERROR":
            self._emit(changes)
            changes.clear()
            self._fail(event)
        item = self._decoded(bytes(event.object))
        if isinstance(item, _NamedMeta):
            # The new version cannot be decoded, so remove the earlier one.
            self.version = item.resource_version
            known = self.items.pop(item.key, None)
            if known is not None:
                changes.append(Change(known, None))
            return
        key, self.version = item.key, item.metadata.resource_version
        old = self.items.get(key)
        if event.type == "DELETED":
            if old is not None:
                del self.items[key]
                changes.append(Change(old, None))
            return
        if old is not None and old.metadata.uid != item.metadata.uid:
            changes.append(Change(old, None))
            old = None
        self.items[key] = item
        changes.append(Change(old, item))

    def _end_problem(self) -> None:
        if self.problem:
            _log.warning("%s: watched again", self._path)
            self.problem = ""

    def _fail(self, event: _WatchEvent) -> NoReturn:
        raise StreamRejected(ApiResponse(self._bare(event.object).code, bytes(event.object)))

    def _emit(self, changes: list[Change[W]]) -> None:
        if changes:
            self._on_changes(changes)

    def _decoded(self, raw: bytes) -> W | _NamedMeta:
        """Return the decoded object, or only its metadata if it cannot be decoded."""
        try:
            item = self._decode(raw)
        except InputError as problem:
            named = msgspec.json.decode(raw, type=_Named).metadata
            if named.key not in self.undecodable:
                _log.warning("%s %s is ignored: %s", self._path, named.key, problem)
            self.undecodable[named.key] = str(problem)
            return named
        if self.undecodable:
            self.undecodable.pop(item.key, None)
        return item

    def _query(self, parts: dict[str, str]) -> str:
        text = urlencode({name: value for name, value in parts.items() if value or name != "resourceVersion"})
        return f"{text}&{self._selector}" if self._selector and text else text or self._selector
