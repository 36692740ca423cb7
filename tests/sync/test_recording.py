"""Tests of recordings: Bayplan's own, kube-scheduler-simulator's JSON lines, SimKube's traces."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import msgspec
import pytest

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, items, part
from bayplan.sync.feed import Changed, FeedChange, Listed
from bayplan.sync.read_recording import open_recording
from bayplan.sync.recording import LIST_LINE, RecordingWriter
from bayplan.sync.timed_change import Applied, RecordingHeader
from tests.shared import shared_path
from tests.sync.follower_fixture import node, pod

START_NS = 1_795_284_595_123_456_789
HEADER = RecordingHeader("bayplan", START_NS, ("nodes", "pods"), "v1.36.3", False)

CHANGES: list[tuple[int, FeedChange]] = [
    (START_NS, Listed("nodes", [node(f"n{number}") for number in range(LIST_LINE + 1)])),
    (START_NS, Listed("pods", [])),
    (START_NS + 1_500_000_000, Changed("pods", pod("a"))),
    (START_NS + 2_000_000_001, Changed("pods", {"metadata": {"name": "a", "namespace": "default"}}, deleted=True)),
]


def record(path: Path, header: RecordingHeader = HEADER) -> None:
    """Write the changes."""
    with RecordingWriter(path, header) as writer:
        for time_ns, change in CHANGES:
            writer.write(time_ns, change)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"], ids=["plain", "packed"])
def test_a_recording_round_trips(tmp_path: Path, name: str) -> None:
    record(tmp_path / name)
    found = open_recording(tmp_path / name)
    assert found.header == HEADER
    assert [(START_NS + each.offset_ns, each.change) for each in found.changes()] == CHANGES
    assert list(found.changes()) == list(found.changes()), "it can be read again"


def test_equal_recordings_have_equal_bytes(tmp_path: Path) -> None:
    record(tmp_path / "a.gz")
    record(tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"], ids=["plain", "packed"])
def test_a_truncated_recording_is_read_up_to_the_cut(tmp_path: Path, name: str) -> None:
    record(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:-20])
    changes = [each.change for each in open_recording(tmp_path / name).changes()]
    assert changes == [change for _, change in CHANGES][: len(changes)]
    assert len(changes) >= 2


def test_a_redacted_recording_contains_scheduling_fields_and_no_secrets(tmp_path: Path) -> None:
    secret: Document = {
        "name": "main",
        "image": "app:1",
        "env": [{"name": "TOKEN", "value": "s3cret"}],
        "args": ["s3cret"],
    }
    secret["resources"] = {"requests": {"cpu": "1"}}
    full = pod("a", node_name="n1", labels={"app": "web"}, containers=[secret])
    metadata = {**part(full, "metadata"), "annotations": {"note": "s3cret"}, "uid": "u"}
    with RecordingWriter(tmp_path / "a", HEADER._replace(redacted=True)) as writer:
        writer.write(START_NS, Changed("pods", {**full, "metadata": metadata}))
    assert b"s3cret" not in (tmp_path / "a").read_bytes()
    (found,) = open_recording(tmp_path / "a").changes()
    assert isinstance(found.change, Changed)
    kept = found.change.document
    assert part(kept, "metadata")["labels"] == {"app": "web"}
    assert part(kept, "spec")["nodeName"] == "n1"
    (container,) = items(part(kept, "spec"), "containers")
    assert container["resources"] == {"requests": {"cpu": "1"}}


BAD = [
    ("another program's file", b'{"some": "json"}\n', "recording: expected a recording of bayplan"),
    ("nothing", b"", "recording: expected a recording of bayplan"),
    ("binary", b"\xff\xfe\x00", "recording: expected a recording of bayplan"),
    ("a later format", b'{"bayplan_recording": 2}\n', "expected version 1, got version 2; try a newer Bayplan"),
    ("a bad line", b'{"bayplan_recording": 1, "started_ns": 1}\n{"ns": "x"}\n', ":2 recording: "),
    (
        "an event that kube-scheduler-simulator does not have",
        b'{"time":"2025-04-28T10:00:00Z","event":"Bump","resource":{}}\n',
        "event: expected Add, Update or Delete, got 'Bump'",
    ),
    ("a trace of another version", b'{"version": 1, "events": []}', "expected version 2, got version 1"),
]


@pytest.mark.parametrize(("data", "want"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_an_invalid_recording_is_refused_with_the_reason(tmp_path: Path, data: bytes, want: str) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(InputError, match=re.escape(want)):
        list(open_recording(tmp_path / "a").changes())


def trace() -> Document:
    """Return a trace of SimKube's form: a Deployment that is scaled and deleted, and a pod that ran for 30 s."""
    template: Document = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web"}]},
    }
    deployment: Document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    alone: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone", "namespace": "shop", "uid": "there"},
        "spec": {"containers": [{"name": "c", "image": "web"}], "nodeName": "there"},
        "status": {"phase": "Running"},
    }
    return {
        "version": 2,
        "config": {"trackedObjects": {}},
        "events": [
            {"ts": 1_000, "applied_objs": [deployment, alone], "deleted_objs": []},
            {"ts": 1_060, "applied_objs": [], "deleted_objs": [deployment]},
        ],
        "index": {},
        "pod_lifecycles": {
            '["v1.Pod", "shop/alone"]': {"17": ["Empty", {"Running": 1_005}, {"Finished": [1_010, 1_040]}]}
        },
    }


def packed(document: Document) -> bytes:
    """Return a trace as SimKube writes it."""
    lives = {
        tuple(json.loads(owner)): {int(template): each for template, each in part(by_owner, owner).items()}
        for by_owner in [part(document, "pod_lifecycles")]
        for owner in by_owner
    }
    return msgspec.msgpack.encode({**document, "pod_lifecycles": lives})


@pytest.mark.parametrize(
    "data",
    [packed(trace()), msgspec.json.encode(trace()), gzip.compress(json.dumps(trace(), indent=2).encode())],
    ids=["MessagePack", "JSON", "JSON over many lines, packed"],
)
def test_a_simkube_trace_is_read_with_times_and_run_times(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "trace").write_bytes(data)
    found = open_recording(tmp_path / "trace")
    assert found.header.applies
    changes = list(found.changes())
    assert [each.offset_ns / 1e9 for each in changes] == [0, 0, 60]
    last = changes[2].change
    assert isinstance(last, Applied)
    assert last.deleted
    alone = changes[1].change
    assert isinstance(alone, Applied)
    metadata = part(alone.document, "metadata")
    assert metadata == {"name": "alone", "namespace": "shop", "annotations": {"bayplan.io/run-time": "30s"}}
    assert "nodeName" not in part(alone.document, "spec")
    assert "status" not in alone.document


@pytest.mark.parametrize("name", ["bare-pods", "cronjob", "dsb-scaling"])
def test_real_simkube_traces_are_equal_in_both_formats(name: str) -> None:
    folder = shared_path("data", "simkube", "acrlabs+simkube", "examples", "traces")
    one, other = open_recording(folder / f"{name}.sktrace"), open_recording(folder / f"{name}.sktrace.json")
    assert list(one.changes()) == list(other.changes())
    assert list(one.changes())
