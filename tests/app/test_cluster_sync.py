"""What goes on beside a sync, a recording or a replay ends it when it fails; what is not begun leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from bayplan.app import cluster_sync
from bayplan.app.cluster_sync import ClusterOptions, ReplayOptions, replay_recording
from bayplan.base.errors import InputError
from bayplan.sync.pace import Pace
from bayplan.sync.recording import RecordingWriter
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
        pytest.param(endless, endless, failing, "no space", id="so does who steers"),
        pytest.param(failing, endless, endless, "no space", id="the work may fail itself"),
        pytest.param(ending, endless, ending, "", id="who steers may end, and the work goes on"),
    ],
)
def test_what_fails_beside_the_work_ends_it(work: object, watch: object, steer: object, want: str) -> None:
    async def play() -> None:
        assert callable(work)
        assert callable(watch)
        beside: Awaitable[None] | None = steer() if callable(steer) else None
        await asyncio.wait_for(cluster_sync._until_told_to_end(work(), watch(), beside), 10)

    if want:
        with pytest.raises(OSError, match=want):
            asyncio.run(play())
    else:
        asyncio.run(play())


def test_nobody_steers_what_can_not_be_reached(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "recording.jsonl", RecordingHeader("bayplan", 0, ("pods",), "", False)).close()
    steered: list[Pace] = []

    async def steer(pace: Pace) -> None:
        steered.append(pace)

    here = ClusterOptions(kubeconfig=tmp_path / "missing")
    # A coroutine that nobody awaits would be a warning, and with that an error.
    with pytest.raises(InputError):
        replay_recording(ReplayOptions(path=tmp_path / "recording.jsonl", here=here, steer=steer), print)
    assert not steered
