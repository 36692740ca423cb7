"""The commands of the tutorial about scoring weights have the effects that it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bayplan.cli.main import main

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial-weights.md"


def test_the_tutorial_sweep_finds_the_packing_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = re.findall(r"```yaml\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), flags=re.DOTALL)
    for name, text in zip(("cluster.yaml", "sweep.yaml", "packed.yaml"), files, strict=True):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "sweep.yaml", "--out", "sweep", "--executor", "local"]) == 0
    best = capsys.readouterr().out.splitlines()[1].split()
    assert best[0] == "0"
    assert "args.NodeResourcesFit.scoringStrategy.type=MostAllocated," in best
    assert main(["simulate", "cluster.yaml"]) == 0
    assert "1 h 10 min of virtual time" in capsys.readouterr().out
    assert main(["simulate", "cluster.yaml", "--config", "packed.yaml"]) == 0
    assert "time         1 h of virtual time" in capsys.readouterr().out
