"""README.md: the question and three commands come first, samples are program output, figures are in docs/fidelity.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bayplan.cli.main import main
from bayplan.examples import example_path
from tests.project.tree import ROOT

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
LEFT_OUT = "\n…\n"


SHOWN = re.compile(r"^```text\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)


def printed_by(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the output of a `bayplan` command line of a page."""
    words = command.replace("$(bayplan example)", str(example_path("three-zones"))).split()
    assert main(words[1:]) in (0, 1)
    return capsys.readouterr().out


def test_readme_starts_with_the_question_three_commands_and_the_installation() -> None:
    lines = PAGE.splitlines()
    assert lines[2].startswith("**Why is my pod Pending, and what would fix it?**")
    assert [line.split()[2] for line in lines[:15] if line.startswith("$ ")] == ["waiting", "explain", "unblock"]
    first = PAGE.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.partition("#")[0].split()[:2] for line in first] == [["git", "clone"], ["make", "run"]]
    assert PAGE.index("```sh") < PAGE.index("docs/images/pod.png") < PAGE.index("This is the output of `explain`")


def test_the_first_sample_is_shortened_program_output_and_equal_on_both_first_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = SHOWN.findall(PAGE)[0]
    assert SHOWN.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))[0] == sample
    for part in sample.removeprefix("$ ").split("\n$ "):
        command, *shown = part.splitlines()
        printed = iter(printed_by(command, capsys).splitlines())
        assert [line for line in shown if line not in printed] == []


def test_the_sample_matches_the_program_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command, _, want = SHOWN.findall(PAGE)[1].removeprefix("$ ").partition("\n")
    printed = printed_by(command, capsys)
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
