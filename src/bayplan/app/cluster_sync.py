"""Import, sync, record and replay: the only module that combines connections, files and sessions."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from http import HTTPStatus
from pathlib import Path

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.termination import exit_on_sigterm
from bayplan.base.version import __version__
from bayplan.client.cluster_access import open_access
from bayplan.client.connection import ApiConnection
from bayplan.client.list_errors import list_error
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.formats.inputs import read_objects
from bayplan.objects.kinds import find_kind
from bayplan.sync.document_feed import DocumentFeed
from bayplan.sync.feed import Feed, FeedChange
from bayplan.sync.local_facts import read_local_facts
from bayplan.sync.playback_clock import PlaybackClock
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.read_recording import open_recording
from bayplan.sync.recording import RecordingWriter
from bayplan.sync.reflected_feed import ReflectedFeed
from bayplan.sync.replay import ApplyReplay, ReplayFeed
from bayplan.sync.session import SyncSession, SyncStatus
from bayplan.sync.timed_change import Recording, RecordingHeader

STATUS_SECONDS = 1.0
"""Interval of progress reports, and of flushing a recording to its file."""

_USER_AGENT = f"bayplan-sync/{__version__}"


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster to connect to.

    Attributes:
        kubeconfig: the kubeconfig file; None for kubectl's search path.
        context: the context in the kubeconfig; None for the current one.
        qps, burst: the rate limit of requests to the cluster (per second), and its burst; a negative `qps` means no
            limit.
        option: the command-line option that names the kubeconfig, for errors.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    qps: float = 50.0
    burst: int = 100
    option: str = "--kubeconfig"


_ROOT = ApiRequest("GET", "/bayplan/v1/")


class _BayplanRoot(msgspec.Struct):
    """The part of the root document of Bayplan's API by which a Bayplan server is recognized."""

    instance: str


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Source, target and policy of a sync.

    Attributes:
        source: the cluster; None if `paths` are the source.
        paths: the manifests and dumps.
        here: the target server.
        policy: see `SyncPolicy`.
    """

    source: ClusterOptions | None = None
    paths: Sequence[str] = ()
    here: ClusterOptions
    policy: SyncPolicy = msgspec.field(default_factory=SyncPolicy)


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a replay.

    Attributes:
        path: the path of the recording.
        here: the target server.
        policy: see `SyncPolicy`.
        speed: how many seconds of the recording are replayed per second.
        start_ns: the position in the recording to start from.
        paused: whether to wait for ``resume`` first.
        steer: the function that controls the playback; None for no control.
    """

    path: Path
    here: ClusterOptions
    policy: SyncPolicy = msgspec.field(default_factory=SyncPolicy)
    speed: float = 1.0
    start_ns: int = 0
    paused: bool = False
    steer: Callable[[PlaybackClock], Awaitable[None]] | None = None


class ApplyResult(msgspec.Struct, frozen=True):
    """The result of applying a trace's workloads: objects applied and deleted, and errors."""

    applied: int
    deleted: int
    problems: Sequence[str]


def sync_cluster(options: SyncOptions, progress: Callable[[SyncStatus], None], *, once: bool) -> SyncStatus:
    """Sync from a cluster or files until SIGINT or SIGTERM, or until the initial import is complete.

    Args:
        options: see `SyncOptions`.
        progress: the function to call every second with the status.
        once: whether to stop after the initial import.

    Raises:
        InputError: a cluster cannot be reached, or a file cannot be read.
    """
    with exit_on_sigterm():
        return asyncio.run(_sync(options, progress, once=once))


def record_cluster(
    source: ClusterOptions,
    path: Path,
    policy: SyncPolicy,
    *,
    redact: bool,
    seconds: float | None,
    progress: Callable[[int], None],
) -> int:
    """Record a live cluster to a file until SIGINT or SIGTERM, or for a time; return the number of changes in the file.

    Args:
        source: the cluster.
        path: the path of the file.
        policy: the namespaces and pods to record.
        redact: whether to record only the data that scheduling reads.
        seconds: the duration; None to record until SIGINT or SIGTERM.
        progress: the function to call every second with the number of changes.

    Raises:
        InputError: the cluster can't be reached, or the file can't be written.
    """
    with exit_on_sigterm():
        return asyncio.run(_record(source, path, policy, redact=redact, seconds=seconds, progress=progress))


def replay_recording(options: ReplayOptions, progress: Callable[[SyncStatus], None]) -> SyncStatus | ApplyResult:
    """Replay a recording into a Bayplan cluster; return the result.

    Args:
        options: see `ReplayOptions`.
        progress: the function to call every second with the status.

    Raises:
        InputError: the file is not a recording, or the cluster can't be reached.
    """
    with exit_on_sigterm():
        return asyncio.run(_replay(options, progress))


# --- sync -------------------------------------------------------------------------------------------------------------


async def _sync(options: SyncOptions, progress: Callable[[SyncStatus], None], *, once: bool) -> SyncStatus:
    async with AsyncExitStack() as stack:
        here, instance = await _connect_target(options.here, stack)
        source: Feed
        if options.source is not None:
            connection = await _connect(options.source, stack)
            await _reject_same_server(options.source, connection, here, instance)
            source = ReflectedFeed(connection, options.policy, once=once, parts=True)
            name = _cluster_name(options.source, connection)
        else:
            objects = read_objects(options.paths, stdin=sys.stdin.buffer)
            source, name = DocumentFeed(each.value for each in objects), ", ".join(options.paths)
        kind = "import" if once else "sync"
        return await _follow(source, here, options.policy, (kind, name), progress, once=once)


def _cluster_name(options: ClusterOptions, connection: ApiConnection) -> str:
    """Return the name of a cluster for users of kubectl: its context, with the kubeconfig if one was given."""
    context = connection.access.context or "the cluster of this pod"
    return context if options.kubeconfig is None else f"{context} of {options.kubeconfig}"


async def _follow(
    source: Feed,
    here: ApiConnection,
    policy: SyncPolicy,
    described: tuple[str, str],
    progress: Callable[[SyncStatus], None],
    *,
    once: bool,
    steer: Awaitable[None] | None = None,
) -> SyncStatus:
    local = ReflectedFeed(here, SyncPolicy(), name="the Bayplan server", read=read_local_facts)
    kind, name = described
    session = SyncSession(source, local, here.send, policy, name=name, kind=kind)

    async def watch() -> None:
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            progress(session.status())

    await _until_stopped(session.run(once=once), watch(), steer)
    return session.status()


# --- record -----------------------------------------------------------------------------------------------------------


async def _record(
    source: ClusterOptions,
    path: Path,
    policy: SyncPolicy,
    *,
    redact: bool,
    seconds: float | None,
    progress: Callable[[int], None],
) -> int:
    async with AsyncExitStack() as stack:
        connection = await _connect(source, stack)
        feed = ReflectedFeed(connection, policy)
        await feed.open()
        header = RecordingHeader("bayplan", time.time_ns(), feed.kinds, await _version(connection), redact)
        writer = stack.enter_context(RecordingWriter(path, header))

        def take(change: FeedChange) -> None:
            writer.write(time.time_ns(), change)

        async def watch() -> None:
            while True:
                await asyncio.sleep(STATUS_SECONDS)
                writer.flush()
                progress(writer.changes)

        async def work() -> None:
            with suppress(TimeoutError):
                await asyncio.wait_for(feed.run(take), seconds)

        await _until_stopped(work(), watch(), None)
        return writer.changes


async def _version(connection: ApiConnection) -> str:
    response = await connection.send(ApiRequest("GET", "/version"))
    found = msgspec.json.decode(response.body) if response.ok else {}
    return str(found.get("gitVersion", ""))


# --- replay -----------------------------------------------------------------------------------------------------------


async def _replay(options: ReplayOptions, progress: Callable[[SyncStatus], None]) -> SyncStatus | ApplyResult:
    recording = open_recording(options.path)
    playback = PlaybackClock(time.monotonic_ns, speed=options.speed, start_ns=options.start_ns)
    if options.paused:
        playback.pause()
    async with AsyncExitStack() as stack:
        here, _ = await _connect_target(options.here, stack)
        steer = None if options.steer is None else options.steer(playback)
        if recording.header.applies:
            return await _apply(recording, playback, here, steer)
        feed = ReplayFeed(recording, playback)
        return await _follow(
            feed, here, options.policy, ("replay", options.path.name), progress, once=True, steer=steer
        )


async def _apply(
    recording: Recording, playback: PlaybackClock, here: ApiConnection, steer: Awaitable[None] | None
) -> ApplyResult:
    replay = ApplyReplay(recording, playback, here.send, _collection)
    await _until_stopped(replay.run(), None, steer)
    return ApplyResult(replay.applied, replay.deleted, replay.problems)


def _collection(api_version: str, kind: str, namespace: str) -> str | None:
    found = find_kind(api_version, kind)
    if found is None:
        return None
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{path}/namespaces/{namespace}/{found.plural}" if found.namespaced else f"{path}/{found.plural}"


# --- shared -----------------------------------------------------------------------------------------------------------


async def _connect(options: ClusterOptions, stack: AsyncExitStack) -> ApiConnection:
    access = await open_access(options.kubeconfig, options.context, option=options.option)
    connection = ApiConnection(access, user_agent=_USER_AGENT, qps=options.qps, burst=options.burst)
    return await stack.enter_async_context(connection)


async def _connect_target(options: ClusterOptions, stack: AsyncExitStack) -> tuple[ApiConnection, str]:
    """Connect to the Bayplan server that is written to; return the connection, and the instance of the server.

    Raises:
        InputError: the server does not show that it is a Bayplan server. It may be that of a real cluster, whose objects
            must not be changed.
    """
    connection = await _connect(options, stack)
    response = await connection.send(_ROOT)
    instance = _instance(response)
    if response.status in (NO_ANSWER, HTTPStatus.UNAUTHORIZED):
        raise list_error("the Bayplan server", "objects", response)
    if not instance:
        why = "is not a Bayplan server" if response.ok or response.status == HTTPStatus.NOT_FOUND else response.message
        raise InputError(
            options.option,
            got=f"{connection.access.url}: {why}",
            wanted="the kubeconfig of a Bayplan server",
            hint="bayplan up, which writes bayplan.kubeconfig",
        )
    return connection, instance


def _instance(response: ApiResponse) -> str:
    """Return the instance of a Bayplan server by the response to `_ROOT`; "" if it is another server."""
    try:
        return msgspec.json.decode(response.body, type=_BayplanRoot).instance if response.ok else ""
    except msgspec.DecodeError:
        return ""


async def _reject_same_server(
    options: ClusterOptions, source: ApiConnection, here: ApiConnection, instance: str
) -> None:
    """Raise if a source is the target itself, whose objects would be copied onto themselves forever.

    Raises:
        InputError: both are the same Bayplan server.
    """
    if _instance(await source.send(_ROOT)) == instance:
        raise InputError(
            "source",
            got=f"{_cluster_name(options, source)}, which is the target {here.access.url} itself",
            wanted="another cluster",
            hint="--context NAME of the cluster to copy",
        )


async def _until_stopped(
    work: Coroutine[None, None, None], watch: Awaitable[None] | None, steer: Awaitable[None] | None
) -> None:
    """Run a coroutine until it ends, or SIGINT or SIGTERM arrives; `watch` and `steer` run concurrently.

    An exception in one of the three cancels the others and is raised.
    """
    task = asyncio.create_task(work)
    companions = [asyncio.ensure_future(each) for each in (watch, steer) if each is not None]
    loop = asyncio.get_running_loop()
    stopped = False

    def end() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    failures: list[BaseException] = []

    def ended(each: asyncio.Future[None]) -> None:
        problem = None if each.cancelled() else each.exception()
        if problem is not None:
            failures.append(problem)
            task.cancel()

    for each in companions:
        each.add_done_callback(ended)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped and not failures:
            raise
    except BaseExceptionGroup as problems:
        # The first failure ended the other tasks. Sessions run the task groups of feeds in their own.
        first: BaseException = problems.subgroup(InputError) or problems
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        for each in companions:
            each.cancel()
    if failures:
        raise failures[0]
