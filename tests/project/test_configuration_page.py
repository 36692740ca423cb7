"""docs/configuration.md shows the program's output for the file on that page."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cli.main import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    """Return a block of the page."""
    return PAGE.split(f"```{language}\n")[number + 1].partition("```")[0]


def test_config_check_prints_the_output_shown_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scheduler.yaml").write_text(block("yaml"))
    assert main(["config", "check", "scheduler.yaml"]) == 1
    printed = capsys.readouterr()
    assert printed.out + printed.err == block("text")
    assert main(["config", "check", "scheduler.yaml", "--feature-gates", "GangScheduling=true"]) == 2
    assert capsys.readouterr().err == block("text", 1)
