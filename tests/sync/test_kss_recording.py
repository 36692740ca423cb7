"""Tests of reading and replaying the recordings of kube-scheduler-simulator."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, timezone
from pathlib import Path

import pytest

from bayplan.base.plain_data import Document, part
from bayplan.sync.feed import Changed, Listed
from bayplan.sync.playback_clock import PlaybackClock
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.read_recording import open_recording
from bayplan.sync.replay import ReplayFeed
from bayplan.sync.session import SyncSession
from tests.sync.follower_fixture import LocalCluster, node, pod
from tests.sync.kss_recorder import TOKYO, existing, line, morning, write_morning
from tests.sync.test_replay import Clock
from tests.sync.test_session import FlakySender, LiveFeed

pytestmark = pytest.mark.usefixtures("way")

ZONES = [pytest.param(TOKYO, id="east of Greenwich"), pytest.param(timezone.utc, id="in Greenwich")]  # noqa: UP017


def names(documents: list[Document]) -> list[str]:
    """Return the names of objects."""
    return [str(part(each, "metadata")["name"]) for each in documents]


@pytest.mark.parametrize("zone", ZONES)
def test_initial_objects_become_lists_and_later_events_have_their_times(zone: timezone, tmp_path: Path) -> None:
    write_morning(tmp_path / "record.jsonl", zone)
    found = open_recording(tmp_path / "record.jsonl")
    assert found.header.format == "kube-scheduler-simulator"
    changes = list(found.changes())
    lists = {
        each.change.plural: names(list(each.change.documents)) for each in changes if isinstance(each.change, Listed)
    }
    assert {kind: there for kind, there in lists.items() if there} == {
        "namespaces": ["default", "kube-system"],
        "nodes": ["n1", "n2"],
        "pods": ["runs"],
    }
    rest = [
        (each.offset_ns, each.change.plural, each.change.deleted)
        for each in changes
        if isinstance(each.change, Changed)
    ]
    assert rest == [
        (150_000_000, "nodes", False),
        (5_250_000_000, "pods", False),
        (5_500_000_000, "pods", False),
        (7_000_000_000, "pods", False),
        (9_000_000_500, "pods", True),
        (10_000_000_000, "nodes", True),
    ]


def test_recordings_are_independent_of_the_time_zone(tmp_path: Path) -> None:
    for name, zone in (("east", TOKYO), ("greenwich", UTC)):
        write_morning(tmp_path / name, zone)
    east, greenwich = open_recording(tmp_path / "east"), open_recording(tmp_path / "greenwich")
    assert east.header.started_ns == greenwich.header.started_ns
    assert list(east.changes()) == list(greenwich.changes())


def test_a_truncated_recording_is_read_up_to_the_cut(tmp_path: Path) -> None:
    whole = "\n".join(morning())
    (tmp_path / "record.jsonl").write_text(whole[:-30])
    changes = [each for each in open_recording(tmp_path / "record.jsonl").changes() if isinstance(each.change, Changed)]
    assert len(changes) == 5


def test_objects_without_a_creation_time_are_initial_if_no_other_event_precedes_them(tmp_path: Path) -> None:
    lines = [
        line(0.0, "Add", pod("before")),
        line(1.0, "Update", pod("before", labels={"new": "label"})),
        line(2.0, "Add", pod("after")),
    ]
    (tmp_path / "record.jsonl").write_text("\n".join(lines))
    changes = [each.change for each in open_recording(tmp_path / "record.jsonl").changes()]
    assert [names(list(each.documents)) for each in changes if isinstance(each, Listed) and each.documents] == [
        ["before"]
    ]
    assert len([each for each in changes if isinstance(each, Changed)]) == 2


def test_unsupported_kinds_are_skipped(tmp_path: Path) -> None:
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    lines = [line(0.0, "Add", existing(secret, "s")), line(0.1, "Add", existing(node("n1"), "n"))]
    (tmp_path / "record.jsonl").write_text("\n".join(lines))
    changes = [each.change for each in open_recording(tmp_path / "record.jsonl").changes()]
    assert [names(list(each.documents)) for each in changes if isinstance(each, Listed) and each.documents] == [["n1"]]


def test_a_recording_is_replayed_at_its_times_with_the_sync_policy(tmp_path: Path) -> None:
    write_morning(tmp_path / "record.jsonl")
    here = LocalCluster()

    def seen() -> dict[str, str]:
        pods = {
            str(
                part(each, "metadata")["name"]
            ): f"{part(each, 'spec').get('nodeName', '')} {part(each, 'status')['phase']}"
            for each in here.list("pods")[0]
        }
        return {**pods, "nodes": ",".join(sorted(names(here.list("nodes")[0])))}

    async def play() -> dict[float, dict[str, str]]:
        clock, found = Clock(), dict[float, dict[str, str]]()
        playback = PlaybackClock(clock.now_ns)
        feed = ReplayFeed(open_recording(tmp_path / "record.jsonl"), playback)
        session = SyncSession(feed, LiveFeed(here), FlakySender(here).send, SyncPolicy())
        task = asyncio.create_task(session.run(once=True))
        for second in (0.1, 5.3, 5.6, 7.1, 9.1, 10.1):
            clock.ns = int(second * 1e9)
            playback.set_speed(1.0)  # Changing the speed makes waiting tasks read the clock again.
            for _ in itertools.takewhile(lambda _: not (session.status().idle and not task.done()), range(500)):
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            found[second] = await asyncio.to_thread(seen)
        await asyncio.wait_for(task, 20)
        return found

    assert asyncio.run(play()) == {
        0.1: {"runs": "n1 Running", "nodes": "n1,n2"},
        5.3: {"runs": "n1 Running", "late": " Pending", "nodes": "n1,n2"},
        5.6: {"runs": "n1 Running", "late": " Pending", "nodes": "n1,n2"},
        7.1: {"runs": "n1 Succeeded", "late": " Pending", "nodes": "n1,n2"},
        9.1: {"runs": "n1 Succeeded", "nodes": "n1,n2"},
        10.1: {"runs": "n1 Succeeded", "nodes": "n1"},
    }
