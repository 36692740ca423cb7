"""Tests of the options of the sync commands, and of their progress line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bayplan.app import cluster_sync
from bayplan.base.background_output import BackgroundOutput
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.cli.sync_options import DEFAULT_QPS, print_outcome, status_line
from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.known_objects import Problem
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.session import SyncStatus

POLICIES = [
    (["sync"], SyncPolicy()),
    (["sync", "--reschedule"], SyncPolicy(keep_nodes=False)),
    (["sync", "--update-scheduled"], SyncPolicy(update_scheduled_pods=True)),
    (["sync", "--source-volumes"], SyncPolicy(source_volumes=True)),
    (["sync", "-n", "a", "-n", "b", "--selector", "app=web"], SyncPolicy(namespaces=("a", "b"), selector="app=web")),
    (["import"], SyncPolicy(follow=False)),
    (["import", "--reschedule", "-n", "a"], SyncPolicy(follow=False, keep_nodes=False, namespaces=("a",))),
    (["replay", "tape.jsonl", "--source-volumes"], SyncPolicy(source_volumes=True)),
]


def status(**changes: Any) -> SyncStatus:
    """Return a status of a session that has nothing left to do."""
    figures: dict[str, Any] = {"created": 0, "updated": 0, "deleted": 0, "waiting": 0, "lag_seconds": 0.0}
    reported: dict[str, Any] = {"problems": [], "source": {}, "left_out": {}}
    return SyncStatus(**{"ready": True, "idle": True, **figures, **reported, **changes})


def test_the_default_rate_limit_is_that_of_the_connection() -> None:
    assert cluster_sync.ClusterOptions().qps == DEFAULT_QPS


@pytest.mark.parametrize(("words", "want"), POLICIES, ids=[" ".join(row[0]) for row in POLICIES])
def test_options_set_the_sync_policy(
    words: list[str], want: SyncPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bayplan.kubeconfig").write_text("{}")
    found: list[SyncPolicy] = []

    def done(options: Any, tell: object, **more: object) -> SyncStatus:
        found.append(options.policy)
        return status()

    monkeypatch.setattr(cluster_sync, "sync_cluster", done)
    monkeypatch.setattr(cluster_sync, "replay_recording", done)
    assert main(words) == 0
    assert found == [want]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"ready": False}, "reading the source", id="in the beginning"),
        pytest.param({"created": 1234}, "1,234 created, 0 updated, 0 deleted", id="when all is done"),
        pytest.param(
            {"waiting": 5, "lag_seconds": 0.25},
            "0 created, 0 updated, 0 deleted; 5 to do, 0.2 s behind",
            id="when it is behind",
        ),
        pytest.param(
            {"problems": [Problem(ObjectRef("pods", "a", "b"), "no")], "source": {"pods": "connection refused"}},
            "0 created, 0 updated, 0 deleted; 1 could not be written; connection refused",
            id="when a check fails",
        ),
    ],
)
def test_the_status_line_shows_progress_and_problems(changes: dict[str, Any], want: str) -> None:
    assert status_line(status(**changes)) == want


def test_objects_refused_for_the_same_reason_share_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(name: str, message: str) -> Problem:
        return Problem(ObjectRef("pods", "shop", name), message)

    missing = 'pods "{}" is forbidden: no PriorityClass with name high was found'
    problems = [refused(f"web-{number}", missing.format(f"web-{number}")) for number in range(5)]
    print_outcome(status(problems=[*problems, refused("db-0", "spec.containers: Required value")]))
    assert capsys.readouterr().out.splitlines()[1:] == [
        'not written: pods "web-0" is forbidden: no PriorityClass with name high was found '
        "(5 times: pods shop/web-0, pods shop/web-1, pods shop/web-2 and 2 more)",
        "not written: pods shop/db-0: spec.containers: Required value",
    ]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        pytest.param("sync_cluster", ["sync"], id="sync"),
        pytest.param("record_cluster", ["record", "changes.jsonl"], id="record"),
    ],
)
def test_long_commands_write_in_the_background(
    function: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bayplan.kubeconfig").write_text("{}")
    streams: list[object] = []

    def note(*_: object, **__: object) -> None:
        streams.extend((sys.stdout, sys.stderr))
        raise InputError("the end of the test")

    monkeypatch.setattr(cluster_sync, function, note)
    assert main(arguments) == 2
    assert [type(stream) for stream in streams] == [BackgroundOutput, BackgroundOutput]
