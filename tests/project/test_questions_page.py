"""docs/questions.md shows the output of its commands on the cluster that the script in examples/ creates."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import main
from tests.project.tree import ROOT

PAGE = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
SCRIPT = ROOT / "examples" / "questions" / "make_cluster.py"
RUN = re.compile(r"```console\n\$ bayplan ([^\n]*)\n(.*?)```", re.DOTALL)
MORE = "...\n"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that the script writes."""
    made = subprocess.run([sys.executable, str(SCRIPT)], check=True, capture_output=True)
    path = tmp_path_factory.mktemp("questions") / "cluster.json"
    path.write_bytes(made.stdout)
    return path


@pytest.mark.parametrize(("words", "shown"), [pytest.param(*run, id=run[0][:50]) for run in RUN.findall(PAGE)])
def test_commands_print_the_output_in_questions_md(
    words: str, shown: str, dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(dump.parent)
    assert main(words.split()) in (0, 1)
    printed = capsys.readouterr().out
    if shown.endswith(MORE):
        lines = shown.removesuffix(MORE).splitlines()
        assert printed.splitlines()[: len(lines)] == lines
    else:
        assert printed == shown


def test_the_page_has_twelve_questions_with_one_command_each() -> None:
    assert re.findall(r"^## (\d+)\.", PAGE, re.MULTILINE) == [str(number) for number in range(1, 13)]
    assert len(RUN.findall(PAGE)) == 12


def test_the_cluster_matches_its_description_on_the_page(dump: Path) -> None:
    items: list[dict[str, Any]] = json.loads(dump.read_text())["items"]
    kinds = Counter(item["kind"] for item in items)
    assert (kinds["Node"], kinds["Pod"]) == (60, 700)
    nodes = [item for item in items if item["kind"] == "Node"]
    assert len({item["metadata"]["labels"]["topology.kubernetes.io/zone"] for item in nodes}) == 3
    assert len({item["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] for item in nodes}) == 5
    waiting = [item for item in items if item["kind"] == "Pod" and "nodeName" not in item["spec"]]
    assert len(waiting) >= 10
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "Job", "PodDisruptionBudget", "PersistentVolumeClaim"):
        assert kinds[kind]
    for kind in ("PersistentVolume", "StorageClass", "ResourceQuota", "LimitRange"):
        assert kinds[kind]
