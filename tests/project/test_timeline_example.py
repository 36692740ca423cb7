"""The timeline example: docs/queue.md shows the output of the command, and --out writes the same rows as a table."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bayplan.analysis.result_directory import ResultDirectory
from bayplan.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "queue.md").read_text(encoding="utf-8")


def command() -> list[str]:
    line = next(line for line in PAGE.splitlines() if line.startswith("bayplan simulate"))
    return shlex.split(line)[1:]


def test_the_command_prints_the_timeline_in_queue_md(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(command()) == 0
    printed = capsys.readouterr().out
    assert f"```text\n{printed[printed.index('Timeline:') :]}```" in PAGE


def test_the_timeline_table_contains_the_printed_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([*command(), "--out", str(tmp_path / "out")]) == 0
    rows = ResultDirectory(tmp_path / "out").table("timeline").to_pylist()
    assert (rows[0]["target"], rows[-1]["target"], rows[-1]["note"]) == ("active", "bound", "open")
    assert rows[-1]["time_ns"] % 1_000_000_000 == 123_456_789
    assert f"Timeline: {len(rows)} moves of 1 pod," in capsys.readouterr().out
