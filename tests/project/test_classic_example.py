"""The classic example: docs/classic.md shows the output of its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bayplan.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "classic.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```sh\nbayplan ([^\n]*)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_has_two_examples() -> None:
    assert len(SHOWN) == 2


@pytest.mark.parametrize(("command", "want"), SHOWN, ids=["provider", "policy"])
def test_commands_print_the_output_in_classic_md(
    command: str, want: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == want
