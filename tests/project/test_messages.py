"""docs/messages.md: the program prints exactly the messages of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bayplan.cli.main import main
from tests.project.tree import ROOT

PAGE = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CASES = re.findall(r"^### (.*?)$.*?^```text\n\$ bayplan (.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LEFT_OUT = "…\n"


def test_the_page_shows_at_least_forty_messages() -> None:
    assert len(CASES) == PAGE.count("\n### ") >= 40
    assert len({name for name, _ in FILES}) == len(FILES)


@pytest.mark.parametrize(("command", "want"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_errors_match_the_messages_on_the_page(
    command: str, want: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    code = main(shlex.split(command))
    printed = capsys.readouterr()
    text = printed.err + printed.out if code != 1 else printed.out + printed.err
    is_warning = LEFT_OUT in want
    assert code == (0 if is_warning else 1 if command.startswith("config check") else 2)
    begins, _, ends = want.partition(LEFT_OUT) if is_warning else (want, "", "")
    assert text.startswith(begins)
    assert text.endswith(ends)
    assert is_warning or text == want
