"""A failing companion task ends a sync, a recording or a replay; one that is never started leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bayplan.app import cluster_sync
from bayplan.app.cluster_sync import ClusterOptions, ReplayOptions, SyncOptions, replay_recording, sync_cluster
from bayplan.base.errors import InputError
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.playback_clock import PlaybackClock
from bayplan.sync.recording import RecordingWriter
from bayplan.sync.session import SyncStatus
from bayplan.sync.timed_change import RecordingHeader


async def endless() -> None:
    await asyncio.Event().wait()


async def failing() -> None:
    raise OSError("no space left on device")


async def ending() -> None:
    pass


@pytest.mark.parametrize(
    ("work", "watch", "steer", "want"),
    [
        pytest.param(endless, failing, None, "no space", id="a watch that fails ends the work"),
        pytest.param(endless, endless, failing, "no space", id="so does a steering task"),
        pytest.param(failing, endless, endless, "no space", id="the work may fail itself"),
        pytest.param(ending, endless, ending, "", id="a steering task may end, and the work continues"),
    ],
)
def test_a_failing_watch_or_steering_task_stops_the_sync(work: object, watch: object, steer: object, want: str) -> None:
    async def play() -> None:
        assert callable(work)
        assert callable(watch)
        beside: Awaitable[None] | None = steer() if callable(steer) else None
        await asyncio.wait_for(cluster_sync._until_stopped(work(), watch(), beside), 10)

    if want:
        with pytest.raises(OSError, match=want):
            asyncio.run(play())
    else:
        asyncio.run(play())


def test_the_first_error_of_nested_task_groups_is_reported() -> None:
    async def work() -> None:
        raise ExceptionGroup("session", [ExceptionGroup("feed", [InputError("pods can't be listed")])])

    with pytest.raises(InputError, match="pods can't be listed"):
        asyncio.run(cluster_sync._until_stopped(work(), None, None))


def test_steering_does_not_start_if_the_target_is_unreachable(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "recording.jsonl", RecordingHeader("bayplan", 0, ("pods",), "", False)).close()
    steered: list[PlaybackClock] = []

    async def steer(playback: PlaybackClock) -> None:
        steered.append(playback)

    here = ClusterOptions(kubeconfig=tmp_path / "missing")
    # A coroutine that is never awaited would cause a warning, which pytest turns into an error.
    with pytest.raises(InputError):
        replay_recording(ReplayOptions(path=tmp_path / "recording.jsonl", here=here, steer=steer), print)
    assert not steered


@pytest.mark.parametrize(
    ("file", "context", "paths", "want"),
    [
        pytest.param("prod.yaml", None, (), "blue of prod.yaml", id="the current context of a file"),
        pytest.param("prod.yaml", "green", (), "green of prod.yaml", id="another context of a file"),
        pytest.param(None, None, (), "blue", id="the current context of kubectl"),
        pytest.param(None, "green", (), "green", id="another context of kubectl"),
        pytest.param(None, None, ("dump.json", "more.yaml"), "dump.json, more.yaml", id="files"),
    ],
)
def test_sync_sources_are_named_by_kubectl_context_or_file(
    file: str | None,
    context: str | None,
    paths: tuple[str, ...],
    want: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("green", "blue")]
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": [{"name": "u", "user": {}}]}
    text = json.dumps({**config, "contexts": contexts, "current-context": "blue"})
    for name in ("prod.yaml", "kubectl.yaml", *paths):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "kubectl.yaml")
    names: list[object] = []
    nothing = SyncStatus(
        ready=True,
        idle=True,
        created=0,
        updated=0,
        deleted=0,
        waiting=0,
        lag_seconds=0.0,
        problems=[],
        source={},
        left_out={},
    )

    async def follow(
        source: object, here: object, policy: object, name: object, *rest: object, **more: object
    ) -> object:
        names.append(name)
        return nothing

    monkeypatch.setattr(cluster_sync, "_follow", follow)

    async def connect_target(options: ClusterOptions, stack: AsyncExitStack) -> tuple[ApiConnection, str]:
        return await cluster_sync._connect(options, stack), "i1"

    monkeypatch.setattr(cluster_sync, "_connect_target", connect_target)
    source = None if paths else ClusterOptions(kubeconfig=Path(file) if file else None, context=context)
    here = ClusterOptions(kubeconfig=Path("kubectl.yaml"))
    sync_cluster(SyncOptions(source=source, paths=paths, here=here), print, once=True)
    assert names == [("import", want)]


@pytest.mark.parametrize(
    ("status", "body", "want"),
    [
        (404, "{}", "got https://10.0.0.1:6443: is not a Bayplan server; try bayplan up"),
        (403, '{"message": "forbidden: no"}', "got https://10.0.0.1:6443: forbidden: no; try bayplan up"),
        (200, '{"paths": ["/api"]}', "got https://10.0.0.1:6443: is not a Bayplan server; try bayplan up"),
        (200, "<html>", "got https://10.0.0.1:6443: is not a Bayplan server; try bayplan up"),
        (301, "", "got https://10.0.0.1:6443: the server answered with status 301; try bayplan up"),
        (429, "", "got https://10.0.0.1:6443: the server answered with status 429; try bayplan up"),
        (503, "", "got https://10.0.0.1:6443: the server answered with status 503; try bayplan up"),
        (401, '{"message": "Unauthorized"}', "the Bayplan server: expected valid credentials, got Unauthorized"),
        (0, "connection refused", "the Bayplan server does not respond: connection refused"),
    ],
)
def test_another_api_server_is_never_written(
    status: int, body: str, want: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, str]] = []

    async def send(connection: ApiConnection, request: ApiRequest) -> ApiResponse:
        sent.append((request.method, request.path))
        return ApiResponse(status, body.encode())

    monkeypatch.setattr(ApiConnection, "send", send)
    file = tmp_path / "prod.yaml"
    cluster = {"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}
    context = {"name": "prod", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": [cluster], "users": [{"name": "u", "user": {}}], "contexts": [context]}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "prod", **config}))
    here = ClusterOptions(kubeconfig=file, option="--to")
    with pytest.raises(InputError, match=re.escape(want)):
        sync_cluster(SyncOptions(paths=(str(file),), here=here), print, once=True)
    assert sent == [("GET", "/bayplan/v1/")]


@pytest.mark.parametrize("once", [True, False], ids=["import", "sync"])
def test_a_server_is_not_copied_onto_itself(once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may have several names and addresses, but it has one instance."""
    sent: list[tuple[str, str]] = []

    async def send(connection: ApiConnection, request: ApiRequest) -> ApiResponse:
        sent.append((request.method, request.path))
        return ApiResponse(200, b'{"instance": "i1"}')

    monkeypatch.setattr(ApiConnection, "send", send)
    files = [tmp_path / "localhost.yaml", tmp_path / "address.yaml"]
    for file, host in zip(files, ("localhost", "127.0.0.1"), strict=True):
        cluster = {"name": "c", "cluster": {"server": f"http://{host}:6443"}}
        context = {"name": "bayplan", "context": {"cluster": "c", "user": "u"}}
        config = {"clusters": [cluster], "users": [{"name": "u", "user": {}}], "contexts": [context]}
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "bayplan", **config}))
    source, here = (ClusterOptions(kubeconfig=file) for file in files)
    want = "source: expected another cluster, got bayplan of .*, which is the target http://127.0.0.1:6443 itself"
    with pytest.raises(InputError, match=want):
        sync_cluster(SyncOptions(source=source, here=here), print, once=once)
    # Each of the two is asked once.
    assert sent == [("GET", "/bayplan/v1/")] * 2
