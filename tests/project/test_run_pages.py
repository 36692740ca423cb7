"""Pages whose commands run on the files that they show: each page shows the output of its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bayplan.cli.main import main
from tests.project.tree import ROOT

PAGES = ("tutorial-ci.md", "tutorial-node-group.md")
PART = re.compile(
    r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$|^```console\n\$ bayplan ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("name", PAGES)
def test_commands_print_the_output_of_their_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    runs = 0
    for file, content, command, shown in PART.findall(text):
        if file:
            (tmp_path / file).write_text(content, encoding="utf-8")
            continue
        runs += 1
        assert main(shlex.split(command)) in (0, 1)
        assert capsys.readouterr().out == shown
    assert runs
