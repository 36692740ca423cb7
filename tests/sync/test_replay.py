"""Tests of replays: speed, pause, seeking in both directions, applied workloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest

from bayplan.app import cluster_sync
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.feed import Changed, FeedChange, Listed
from bayplan.sync.playback_clock import PlaybackClock
from bayplan.sync.read_recording import open_recording
from bayplan.sync.replay import ApplyReplay, ReplayFeed
from bayplan.sync.timed_change import Applied, RecordingHeader, TimedChange
from tests.shared import shared_path
from tests.sync.follower_fixture import LocalCluster, pod

SECOND = 1_000_000_000


class FakeRecording:
    """A recording with the changes that a test defines."""

    def __init__(self, changes: Sequence[TimedChange], *, applies: bool = False) -> None:
        self.header = RecordingHeader("bayplan", 0, ("pods",), applies=applies)
        self._changes = changes

    def changes(self) -> Iterator[TimedChange]:
        """Read all changes."""
        return iter(self._changes)


RECORDING = FakeRecording(
    [
        TimedChange(0, Listed("pods", [pod("a")])),
        TimedChange(1 * SECOND, Changed("pods", pod("b"))),
        TimedChange(2 * SECOND, Changed("pods", pod("a"), deleted=True)),
        TimedChange(3 * SECOND, Changed("pods", pod("c"))),
    ]
)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        """Return the time."""
        return self.ns


def names(change: FeedChange) -> str:
    """Return a short form of a change."""
    if isinstance(change, Listed):
        return "=" + ",".join(sorted(str(each["metadata"]["name"]) for each in change.documents))  # type: ignore[index]
    assert isinstance(change, Changed)
    name = change.document["metadata"]["name"]  # type: ignore[index]
    return f"-{name}" if change.deleted else f"+{name}"


def replayed(
    steps: Sequence[Callable[[Clock, PlaybackClock], None]], *, speed: float = 1.0, start_ns: int = 0
) -> list[str]:
    """Replay the recording while the steps run one after the other; return the emitted changes, with a ``|`` for each step."""

    async def run() -> list[str]:
        clock = Clock()
        playback = PlaybackClock(clock.now_ns, speed=speed, start_ns=start_ns)
        reported: list[str] = []
        task = asyncio.create_task(ReplayFeed(RECORDING, playback).run(lambda change: reported.append(names(change))))
        for step in steps:
            await _rest()
            reported.append("|")
            step(clock, playback)
        await _rest()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return reported

    return asyncio.run(run())


async def _rest() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def passes(seconds: float) -> Callable[[Clock, PlaybackClock], None]:
    """Advance the time; waiting tasks read the clock again."""

    def step(clock: Clock, playback: PlaybackClock) -> None:
        clock.ns += int(seconds * SECOND)
        playback.set_speed(playback.speed)

    return step


STEPS = [
    ("nothing comes before its time", [passes(0.9)], 1.0, 0, "=a |"),
    ("everything comes at its time", [passes(1), passes(1), passes(1)], 1.0, 0, "=a | +b | -a | +c"),
    ("ten times faster", [passes(0.1), passes(0.2)], 10.0, 0, "=a | +b | -a +c"),
    ("as fast as can be", [], float("inf"), 0, "=a +b -a +c"),
    ("from a later place, what lies before comes at once", [passes(1)], 1.0, 2 * SECOND, "=a +b -a | +c"),
    (
        "paused, time passes by",
        [lambda clock, playback: playback.pause(), passes(9), lambda clock, playback: playback.resume(), passes(1)],
        1.0,
        0,
        "=a | | | | +b",
    ),
    ("forward to a later place", [lambda clock, playback: playback.seek(2 * SECOND)], 1.0, 0, "=a | +b -a"),
    (
        "back to an earlier place: as it was then, and on from there",
        [passes(2), lambda clock, playback: playback.seek(SECOND // 2), passes(0.5)],
        1.0,
        0,
        "=a | +b -a | =a | +b",
    ),
    ("back and forth while paused", [lambda c, p: p.pause(), lambda c, p: p.seek(SECOND)], 1.0, 0, "=a | | +b"),
]


@pytest.mark.parametrize(
    ("steps", "speed", "start_ns", "want"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS]
)
def test_a_replay_follows_speed_pauses_and_seeks(
    steps: Sequence[Callable[[Clock, PlaybackClock], None]], speed: float, start_ns: int, want: str
) -> None:
    assert " ".join(replayed(steps, speed=speed, start_ns=start_ns)) == want


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_speed_must_be_positive(speed: float) -> None:
    async def make() -> None:
        PlaybackClock(lambda: 0, speed=speed)

    with pytest.raises(InputError, match="speed: expected a number above 0"):
        asyncio.run(make())


def collection(api_version: str, kind: str, namespace: str) -> str | None:
    """Return the path of a collection."""
    known = {"Deployment": "/apis/apps/v1/namespaces/{}/deployments", "Pod": "/api/v1/namespaces/{}/pods"}
    return known[kind].format(namespace) if kind in known else None


def workload(replicas: int) -> Document:
    """Return a Deployment."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec: Document = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_replayed_workloads_are_applied_scaled_and_deleted_and_problems_reported() -> None:
    here = LocalCluster()
    seen: list[object] = []

    async def send(request: ApiRequest) -> ApiResponse:
        answer = await here.answer(request)
        if request.method == "PATCH" and answer.ok:
            seen.append(msgspec.json.decode(answer.body)["spec"].get("replicas"))
        return answer

    odd: Document = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w"}}
    bad: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    tape = FakeRecording(
        [
            TimedChange(0, Applied(workload(1))),
            TimedChange(0, Applied(odd)),
            TimedChange(0, Applied(bad)),
            TimedChange(SECOND, Applied(workload(5))),
            TimedChange(2 * SECOND, Applied(workload(5), deleted=True)),
        ],
        applies=True,
    )

    async def run() -> ApplyReplay:
        replay = ApplyReplay(tape, PlaybackClock(lambda: 0, speed=float("inf")), send, collection)
        await replay.run()
        return replay

    replay = asyncio.run(run())
    assert seen == [1, 5]
    assert (replay.applied, replay.deleted) == (2, 1)
    assert [text.split(":")[0] for text in replay.problems] == ["v1 Widget default/w", "Pod default/p"]


@pytest.mark.parametrize("name", ["bare-pods.sktrace", "cronjob.sktrace.json", "dsb-scaling.sktrace"])
def test_a_simkube_trace_replays_at_recorded_times_without_refusals(name: str) -> None:
    traces = shared_path("data", "simkube", "acrlabs+simkube", "examples", "traces")
    recording = open_recording(traces / name)
    wanted = [(each.offset_ns, each.change.deleted) for each in recording.changes() if isinstance(each.change, Applied)]
    here, clock, asked = LocalCluster(), Clock(), list[tuple[int, bool]]()

    async def send(request: ApiRequest) -> ApiResponse:
        if request.method != "POST":
            # If the namespace is missing, it is created, and the request is sent again; so the first request does not
            # count.
            asked[:] = [*asked, (clock.ns, request.method == "DELETE")]
        answer = await here.answer(request)
        if request.method == "PATCH" and not answer.ok:
            asked.pop()
        return answer

    async def run() -> ApplyReplay:
        playback = PlaybackClock(clock.now_ns)
        replay = ApplyReplay(recording, playback, send, cluster_sync._collection)
        task = asyncio.create_task(replay.run())
        async with asyncio.timeout(30):
            for offset_ns in sorted({offset_ns for offset_ns, _ in wanted}):
                clock.ns = offset_ns
                playback.set_speed(1.0)  # Changing the speed makes waiting tasks read the clock again.
                while len(asked) < sum(due_ns <= offset_ns for due_ns, _ in wanted):
                    await asyncio.sleep(0)
            await task
        return replay

    replay = asyncio.run(run())
    assert asked == wanted
    assert replay.problems == []
    assert replay.applied + replay.deleted == len(wanted)
