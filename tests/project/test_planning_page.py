"""docs/planning.md shows the output of its commands."""

from __future__ import annotations

import re

import pytest

from bayplan.cli.main import main
from tests.project.tree import ROOT

PAGE = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
RUN = re.compile(r"```console\n\$ bayplan ([^\n]*)\n(.*?)```", re.DOTALL)
RUNS = [(words, shown) for words, shown in RUN.findall(PAGE)]


@pytest.mark.parametrize(("words", "shown"), [pytest.param(*run, id=run[0].partition(" $(")[0]) for run in RUNS])
def test_commands_print_the_output_in_planning_md(words: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = str(ROOT / "src" / "bayplan" / "examples" / "three-zones")
    assert main(words.replace("$(bayplan example)", example).split()) in (0, 1)
    assert capsys.readouterr().out == shown


def test_the_page_shows_capacity_nodes_and_what_if() -> None:
    assert [words.split()[0] for words, _ in RUNS] == ["capacity", "nodes", "nodes", "what-if"]
