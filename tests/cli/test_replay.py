"""Tests of the sync commands: refused options, and a replay that is controlled while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli.main import main
from tests.apiserver.serving import wait_until
from tests.cluster_programs.bayplan_processes import bayplan_up
from tests.sync.follower_fixture import node, pod

REFUSED = [
    (["import", "--to", "none.kubeconfig", "x.yaml"], "--to: expected the kubeconfig of a Bayplan server, got"),
    (["import", "a.yaml", "--context", "c"], "source: files can't be combined with --from or --context"),
    (["sync", "--to", "none.kubeconfig"], "--to: expected the kubeconfig of a Bayplan server, got"),
    (["record", "a.jsonl", "--duration", "soon"], "--duration: expected a duration with units, got 'soon'"),
    (["replay", "a.jsonl", "--to", "none.kubeconfig"], "--to: expected the kubeconfig of a Bayplan server, got"),
]


@pytest.mark.parametrize(("words", "want"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_invalid_sync_options_are_refused(
    words: list[str], want: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert want in capsys.readouterr().err


def test_a_replay_keeps_recorded_times_and_is_controlled_from_standard_input(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"bayplan_recording": 1, "started_ns": 1, "kinds": ["nodes", "pods"]},
        {"ns": 0, "list": "nodes", "items": [node("n1")]},
        {"ns": 0, "list": "pods", "items": []},
        {"ns": 100_000_000, "put": "pods", "object": pod("soon")},
        {"ns": 3600_000_000_000, "put": "pods", "object": pod("in-an-hour")},
    ]
    tape = tmp_path / "tape.jsonl"
    tape.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with bayplan_up(tmp_path / "here") as server:

        def pods() -> list[str]:
            return [each["metadata"]["name"] for each in server.items("/api/v1/pods")]

        command = [sys.executable, "-m", "bayplan", "replay", str(tape), "--to", str(server.kubeconfig)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            wait_until(lambda: pods() == ["soon"])
            process.stdin.write("nonsense\npause\nseek 1h\nresume\n")
            process.stdin.flush()
            out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert out.startswith("3 created, 0 updated, 0 deleted")
        assert pods() == ["in-an-hour", "soon"]
