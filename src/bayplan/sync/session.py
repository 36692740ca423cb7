"""A running sync of one source to one target: reads feeds, sends requests, and saves the sync state."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from msgspec import Struct

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document
from bayplan.client.request_steps import RequestSteps, drive
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.batching import BATCH, BATCHES_AT_ONCE, execute_batch, finish, fits_batch, supports_batches
from bayplan.sync.feed import Bookmark, Feed, FeedChange, Listed, PartListed
from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.follower import Follower
from bayplan.sync.known_objects import Problem
from bayplan.sync.memory import MEMORY_NAMESPACE, Memory
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.sync_write import SyncWrite, Verb
from bayplan.sync.writing import SERVER_ERRORS, execute_write, read_memory, save_memory

Send = Callable[[ApiRequest], Awaitable[ApiResponse]]
T = TypeVar("T")

_log = logging.getLogger("bayplan.sync")

AT_ONCE = 32
"""Maximum number of concurrent single writes. The server executes them one by one; concurrency hides the latency."""

SAVE_SECONDS = 0.1
"""Minimum interval between saves of memory, except after deletions.

After a restart, unsaved entries are derived from the copies.
"""

PAUSE_SECONDS = 0.5
"""Interval of checks for unsaved memory while no writes are pending."""

SAVE_SECONDS_EACH = 0.04
"""Minimum interval per written ConfigMap, because an import constantly changes all of memory."""

FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 300.0
"""Pauses before an object that met conflicts or server errors, memory or the status is written again: each is twice as long."""

MAX_URGENT_SECONDS = 5.0
"""Maximum pause after refused memory with deletions, which can't be derived again."""

LAST_SAVE_SECONDS = 5.0
"""Timeout of the last save if the target does not respond."""

STATUS = "status"
"""The ConfigMap with the source and the progress of the sync, in the namespace of the memory."""

DONE, STOPPED = "done", "stopped"
"""States of an ended session: everything was written, or it was cancelled before that."""

MAX_REPORTED_PROBLEMS = 100
"""Maximum number of problems in a status."""


class SyncStatus(Struct, frozen=True, kw_only=True):
    """The progress of a sync.

    Attributes:
        ready: whether source and target are listed.
        idle: whether everything that can be written is written.
        created, updated, deleted: the numbers of writes that the target has confirmed.
        waiting: the number of objects that are still to be reconciled or written.
        lag_seconds: the age of the oldest pending change.
        problems: the objects that could not be written, and why.
        source: the current problems of the source, by kind.
        left_out: the reasons why kinds are not synced, by kind.
    """

    ready: bool
    idle: bool
    created: int
    updated: int
    deleted: int
    waiting: int
    lag_seconds: float
    problems: list[Problem]
    source: dict[str, str]
    left_out: dict[str, str]


class _Retry(Struct):
    """The next retry of an object that could not be written, but may be later.

    Attributes:
        timer: starts the retry.
        pause: the seconds before it.
        problem: during the retry, why the object could not be written before.
    """

    timer: asyncio.TimerHandle
    pause: float
    problem: Problem | None = None


class _SavePause(Struct):
    """The pause before something that the target has refused is saved again.

    Attributes:
        what: what is saved, as named in logs.
        problem: the message of the last refusal, or "".
        seconds: the length of the pause; 0 if the last save succeeded.
        since: the time of the last refusal.
    """

    what: str
    problem: str = ""
    seconds: float = 0.0
    since: float = 0.0

    def is_over(self, now: float, longest: float = MAX_RETRY_SECONDS) -> bool:
        """Return whether the pause, shortened to `longest` seconds, is over."""
        return not self.seconds or now >= self.since + min(self.seconds, longest)

    def update(self, refusal: ApiResponse | None, now: float, *, is_last: bool) -> None:
        """Begin a pause after a refusal, else end it. A refusal is logged when its message changes."""
        problem = "" if refusal is None else refusal.message
        if problem and problem != self.problem:
            _log.warning(
                "the %s of the sync could not be saved: %s%s", self.what, problem, "" if is_last else "; retrying"
            )
        elif self.problem and not problem:
            _log.warning("the %s of the sync is saved again", self.what)
        self.problem, self.since = problem, now
        self.seconds = min(2 * self.seconds or FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS) if refusal is not None else 0.0


class SyncSession:
    """Syncs a source to a target.

    Args:
        source: the feed of the source.
        here: the feed of the target, with the same kinds.
        send: the function that sends requests to the target.
        policy: the policy of the sync.
        name: the name of the source, as shown to users of the target.
        kind: the kind of session: import, sync or replay.
        at_once: the maximum number of concurrent single writes.
    """

    def __init__(
        self,
        source: Feed,
        here: Feed,
        send: Send,
        policy: SyncPolicy,
        *,
        name: str = "",
        kind: str = "sync",
        at_once: int = AT_ONCE,
    ) -> None:
        self._source = source
        self._here = here
        self._send = send
        self._policy = policy
        self._name = name
        self._kind = kind
        self._end = ""
        self._once = False
        self._at_once = at_once
        self._follower: Follower | None = None
        self._woken = asyncio.Event()
        self._supports_batches = False
        self._under_way = 0
        # Batches allow more pending writes than concurrent single requests, behind which saves of memory would queue.
        self._singles = asyncio.Semaphore(at_once)
        self._saving: asyncio.Task[ApiResponse | None] | None = None
        self._remembers = False
        self._next_save = float("-inf")
        self._memory_pause, self._status_pause = _SavePause("state"), _SavePause("status")
        self._behind_since: float | None = None
        self._retries: dict[ObjectRef, _Retry] = {}
        self._published: Document = {}

    def status(self) -> SyncStatus:
        """Return the progress."""
        follower = self._follower
        since = self._behind_since
        counts = dict.fromkeys(Verb, 0) if follower is None else follower.counts
        return SyncStatus(
            ready=follower is not None and follower.is_ready,
            idle=follower is not None and follower.is_idle,
            created=counts[Verb.CREATE],
            updated=counts[Verb.UPDATE],
            deleted=counts[Verb.DELETE],
            waiting=follower.lag if follower is not None else 0,
            lag_seconds=0.0 if since is None else asyncio.get_running_loop().time() - since,
            problems=self._problems(follower) if follower is not None else [],
            source=self._source.problems,
            left_out=self._source.left_out,
        )

    def _problems(self, follower: Follower) -> list[Problem]:
        """Return why objects could not be written, including those that are just being retried."""
        retried = {
            ref: each.problem for ref, each in self._retries.items() if each.problem and follower.is_pending(ref)
        }
        return list((retried | follower.problems).values())

    async def run(self, *, once: bool = False) -> None:
        """Sync until cancelled; with `once`, until the source ends and everything is written.

        Raises:
            InputError: the source or the target can't be read.
        """
        self._once = once
        await self._source.open()
        await self._here.open()
        missing = [plural for plural in self._source.kinds if plural not in self._here.kinds]
        if missing:
            raise InputError(f"the target does not serve {', '.join(missing)}", hint="a Bayplan server of this release")
        memory = Memory()
        memory.load(await self._drive(read_memory()))
        self._supports_batches = await self._drive(supports_batches())
        follower = self._follower = Follower(self._policy, memory, self._source.kinds)
        try:
            async with asyncio.TaskGroup() as group:
                here = group.create_task(self._here.run(self._process_local))
                source = group.create_task(self._source.run(self._process_source))
                await self._work(follower, group, source if once else None)
                self._end = DONE
                for task in (here, source):
                    task.cancel()
        finally:
            for each in self._retries.values():
                each.timer.cancel()
            # Save even if cancelled, so that the next run can use the memory.
            self._end = self._end or STOPPED
            with suppress(TimeoutError):
                await asyncio.wait_for(self._save(follower, at_once=True), LAST_SAVE_SECONDS)

    def _process_source(self, change: FeedChange) -> None:
        follower = self._follower
        assert follower is not None
        if isinstance(change, Listed):
            follower.source_listed(change.plural, change.documents, change.emitted)
        elif isinstance(change, PartListed):
            follower.source_part_listed(change.plural, change.documents)
        elif isinstance(change, Bookmark):
            return  # No action: objects that the watch missed were never copied.
        elif change.deleted:
            follower.source_deleted(change.plural, change.document)
        else:
            follower.source_changed(change.plural, change.document)
        self._wake()

    def _process_local(self, change: FeedChange) -> None:
        follower = self._follower
        assert follower is not None
        if change.plural not in self._source.kinds:
            return
        if isinstance(change, Listed):
            follower.local_listed(change.plural, change.documents, change.revision)
        elif isinstance(change, PartListed):
            return  # Only the complete list of the target counts.
        elif isinstance(change, Bookmark):
            follower.local_bookmark(change.plural, change.revision)
        elif change.deleted:
            follower.local_deleted(change.plural, change.document)
        else:
            follower.local_changed(change.plural, change.document)
        self._wake()

    def _wake(self) -> None:
        if self._behind_since is None:
            self._behind_since = asyncio.get_running_loop().time()
        self._woken.set()

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _work(self, follower: Follower, group: asyncio.TaskGroup, until: asyncio.Task[None] | None) -> None:
        """Execute writes; return when `until` is done and nothing is left."""
        if until is not None:
            until.add_done_callback(lambda _: self._woken.set())
        while True:
            self._woken.clear()
            if follower.is_ready:
                if not self._remembers:
                    # Save which objects keep their nodes before creating more objects.
                    await self._save_first(follower)
                    self._remembers = True
                elif self._saving is None and self._is_save_due(follower):
                    self._saving = group.create_task(self._save(follower))
            self._begin_writes(follower, group)
            if follower.is_ready and self._is_urgent_save_due(follower) and self._saving is None:
                self._woken.set()
            if follower.is_idle:
                self._behind_since = None
                if until is not None and until.done() and not self._woken.is_set():
                    return
            if not self._woken.is_set():
                await self._pause(follower)

    def _is_save_due(self, follower: Follower) -> bool:
        return asyncio.get_running_loop().time() >= self._next_save or self._is_urgent_save_due(follower)

    def _is_urgent_save_due(self, follower: Follower) -> bool:
        return follower.memory.is_urgent and self._may_save_memory(follower)

    def _may_save_memory(self, follower: Follower) -> bool:
        longest = MAX_URGENT_SECONDS if follower.memory.is_urgent else MAX_RETRY_SECONDS
        return self._memory_pause.is_over(asyncio.get_running_loop().time(), longest)

    def _begin_writes(self, follower: Follower, group: asyncio.TaskGroup) -> None:
        room = (BATCH * BATCHES_AT_ONCE if self._supports_batches else self._at_once) - self._under_way
        batch: list[SyncWrite] = []
        for write in follower.next_writes(min(room, BATCH)) if room > 0 else ():
            if self._supports_batches and fits_batch(write):
                batch.append(write)
            else:
                self._begin(group, 1, partial(self._execute, follower, write))
        if batch:
            self._begin(group, len(batch), partial(self._execute_batch, follower, batch))
            # There may be room for another batch.
            self._woken.set()

    def _begin(self, group: asyncio.TaskGroup, writes: int, work: Callable[[], Awaitable[None]]) -> None:
        """Start a task that executes a number of writes."""

        async def execute() -> None:
            await work()
            self._under_way -= writes
            self._woken.set()

        self._under_way += writes
        group.create_task(execute())

    async def _execute(self, follower: Follower, write: SyncWrite) -> None:
        await self._drive_single(follower, write.ref, execute_write(follower, write))

    async def _execute_batch(self, follower: Follower, writes: Sequence[SyncWrite]) -> None:
        unfinished = await self._drive_write(execute_batch(follower, writes))
        singles = (self._drive_single(follower, each.write.ref, finish(follower, each)) for each in unfinished)
        await asyncio.gather(*singles)

    async def _drive_single(self, follower: Follower, ref: ObjectRef, steps: RequestSteps[bool]) -> None:
        """Execute one write, once fewer than `at_once` single writes are running; retry it later if that may help."""
        async with self._singles:
            may_succeed_later = await self._drive_write(steps)
        earlier = self._retries.pop(ref, None)
        if earlier is not None:
            earlier.timer.cancel()
        if may_succeed_later:
            problem = follower.problems.get(ref)
            if earlier is None and problem is not None and not self._once:
                _log.warning("%s could not be written, and is tried again later: %s", ref, problem.message)
            pause = min(2 * earlier.pause, MAX_RETRY_SECONDS) if earlier is not None else FIRST_RETRY_SECONDS
            timer = asyncio.get_running_loop().call_later(pause, self._retry, follower, ref)
            self._retries[ref] = _Retry(timer, pause)

    def _retry(self, follower: Follower, ref: ObjectRef) -> None:
        problem = follower.problems.get(ref)
        if problem is None:
            # The object was written, or has changed, in the meantime.
            del self._retries[ref]
            return
        self._retries[ref].problem = problem
        follower.retry(ref)
        self._woken.set()

    async def _pause(self, follower: Follower) -> None:
        """Wait for a change, or until memory may be saved again."""
        # Not `wait_for`: before Python 3.12 it loses a cancellation that coincides with the awaited event.
        with suppress(TimeoutError):
            async with asyncio.timeout(SAVE_SECONDS if follower.memory.has_changes else PAUSE_SECONDS):
                await self._woken.wait()

    async def _save_first(self, follower: Follower) -> None:
        """Save memory before objects are created; retry while the target answers with server errors."""
        while (refusal := await self._save(follower, at_once=True)) is not None and refusal.status in SERVER_ERRORS:
            await asyncio.sleep(self._memory_pause.seconds)

    async def _save(self, follower: Follower, *, at_once: bool = False) -> ApiResponse | None:
        """Publish the progress and save changed memory, except during pauses; return the refusal of memory, if any.

        Args:
            follower: the follower whose memory is saved.
            at_once: whether to save both even during pauses.
        """
        time, interval, refusal = asyncio.get_running_loop().time, SAVE_SECONDS, None
        try:
            if at_once or self._status_pause.is_over(time()):
                await self._save_status()
            if at_once or self._may_save_memory(follower):
                is_urgent, changes = follower.memory.is_urgent, follower.memory.take_changes()
                interval = max(SAVE_SECONDS, SAVE_SECONDS_EACH * len(changes))
                unwritten = changes
                try:
                    if (refusal := await self._drive(save_memory(changes))) is None:
                        unwritten = []
                finally:
                    # Also on cancellation: the last save then writes them.
                    follower.memory.mark_unwritten(unwritten, urgent=is_urgent)
                if changes:
                    self._memory_pause.update(refusal, time(), is_last=bool(self._end))
        finally:
            self._saving = None
        self._next_save = time() + interval
        return refusal

    async def _save_status(self) -> None:
        """Publish the progress if it has changed or was refused."""
        shown = status_document(self._name, self.status(), kind=self._kind, end=self._end)
        if self._published != shown:
            refusal = await self._drive(save_memory([shown]))
            self._published = shown if refusal is None else {}
            self._status_pause.update(refusal, asyncio.get_running_loop().time(), is_last=bool(self._end))

    async def _drive(self, steps: RequestSteps[T]) -> T:
        return await drive(steps, self._send, asyncio.sleep)

    async def _drive_write(self, steps: RequestSteps[T]) -> T:
        """Execute a write, and wait for a running save of memory before a retry.

        So nothing is lost if this program ends soon after the target is available again.
        """
        return await drive(steps, self._send, self._sleep_until_saved)

    async def _sleep_until_saved(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self._saving is not None:
            await asyncio.shield(self._saving)


def status_document(name: str, status: SyncStatus, *, kind: str = "sync", end: str = "") -> Document:
    """Return the ConfigMap that describes the session to users of the target.

    Its values are counts and whole seconds, so that it is written only when they change.

    Args:
        name, kind: the name of the source and the kind of session; see `SyncSession`.
        status: the status of the session.
        end: the state `DONE` or `STOPPED` once the session has ended.
    """
    data: Document = {
        "source": name,
        "kind": kind,
        "state": end or ("following" if status.ready else "listing"),
        "created": str(status.created),
        "updated": str(status.updated),
        "deleted": str(status.deleted),
        "waiting": str(status.waiting),
        "lag_seconds": str(int(status.lag_seconds)),
        "problems": "\n".join(f"{each.ref}: {each.message}" for each in status.problems[:MAX_REPORTED_PROBLEMS]),
        "source_problems": "\n".join(f"{kind}: {text}" for kind, text in status.source.items()),
        "left_out": "\n".join(f"{kind}: {text}" for kind, text in status.left_out.items()),
    }
    metadata: Document = {"name": STATUS, "namespace": MEMORY_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
