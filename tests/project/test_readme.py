"""README.md: it starts with the question, its sample is the program's output, its numbers are in docs/fidelity.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bayplan.cli.main import main
from bayplan.examples import example_path
from tests.project.tree import ROOT

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
LEFT_OUT = "\n…\n"


def test_readme_starts_with_the_question_and_two_commands() -> None:
    assert PAGE.splitlines()[2] == "**Why is my pod Pending, and what would fix it?**"
    first = PAGE.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.partition("#")[0].split()[:2] for line in first] == [["git", "clone"], ["make", "run"]]
    assert PAGE.index("```sh") < PAGE.index("docs/images/pod.png") < PAGE.index("$ bayplan explain")


def test_the_sample_matches_the_program_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    block = PAGE.partition("```text\n$ ")[2].partition("```")[0]
    command, _, want = block.partition("\n")
    words = command.replace("$(bayplan example)", str(example_path("three-zones"))).split()
    assert main(words[1:]) == 0
    printed = capsys.readouterr().out
    parts = [part.strip("\n") for part in f"{want}\n".split(LEFT_OUT)]
    assert printed.startswith(parts[0])
    place = 0
    for part in parts:
        place = printed.index(part, place) + len(part)


def test_the_agreement_figures_are_current() -> None:
    cases, agreed = re.findall(
        r"^\| all \| ([\d,]+) \| ([\d,]+) \|", (ROOT / "docs" / "fidelity.md").read_text(), re.M
    )[0]
    words = " ".join(PAGE.split())
    other = int(cases.replace(",", "")) - int(agreed.replace(",", ""))
    assert f"{agreed} of {cases} recorded cases agree. The other {other} concern the HTTP API" in words
