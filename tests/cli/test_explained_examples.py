"""The examples of explanations: a pod that fails in seven plugins on seven nodes, and one that preempts others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bayplan.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "explain"


@pytest.mark.parametrize("stored", [False, True], ids=["simulated now", "from a result directory"])
@pytest.mark.parametrize(
    ("pod", "example"),
    [
        pytest.param("web-new", "seven-plugins", id="seven nodes fail in seven plugins"),
        pytest.param("urgent", "preemption", id="one of six candidates is best"),
    ],
)
def test_explain_prints_the_documented_text_of_each_example(
    pod: str, example: str, stored: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(EXAMPLES / f"{example}.yaml")
    if stored:
        assert main(["simulate", source, "--out", str(tmp_path / "run")]) == 0
        source = str(tmp_path / "run")
        capsys.readouterr()
    assert main(["explain", pod, source]) == 0
    told, want = capsys.readouterr().out, (EXAMPLES / f"{example}.txt").read_text()
    # The assumptions differ: a result directory contains the cluster at the end of the simulation.
    assert told.partition("Assumptions\n")[0] == want.partition("Assumptions\n")[0]


def test_the_seven_plugins_example_has_one_rejection_per_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "web-new", str(EXAMPLES / "seven-plugins.yaml"), "--json"]) == 0
    rejections = json.loads(capsys.readouterr().out)["detail"]["rejections"]
    assert len({each["plugin"] for each in rejections}) == len(rejections) == 7
    assert all(len(each["nodes"]) == 1 and each["reasons"] for each in rejections)


def test_preemption_candidates_show_the_criterion_they_lost_by(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "urgent", str(EXAMPLES / "preemption.yaml"), "--json"]) == 0
    preemption = json.loads(capsys.readouterr().out)["preemption"]
    lost = {each["node"]: each["lost_by"] for each in preemption["candidates"]}
    assert lost == {
        "bronze": "",
        "bronze-twin": "",
        "veteran": "latest start",
        "pair": "sum of priorities",
        "silver": "highest priority",
        "guarded": "pdb violations",
    }
    assert preemption["chosen"] in ("bronze", "bronze-twin")
    assert {node for refusal in preemption["refusals"] for node in refusal["nodes"]} == {"vip", "stubborn"}
    assert preemption["not_helpful"] == 2
