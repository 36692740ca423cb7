"""The command ``test``: exit codes, what is printed, JUnit XML."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bayplan.cli.main import main
from tests.scenarios.files import write


def test_passing_assertions_exit_with_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "- assert: [{placed: {}}]")
    assert main(["test", str(path)]) == 0
    assert capsys.readouterr().out == (
        f"passed {path}: test (1 of 1 step, 1 assertion, 3 decisions in 0 s)\n1 scenario: 1 passed, 0 failed\n"
    )


def test_a_failing_assertion_exits_with_code_1_and_an_explanation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "- scale: {target: deployment/web, replicas: 13}\n- name: all run\n  assert: [{placed: {}}]")
    assert main(["test", str(path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"FAILED {path}: test")
    assert out[2] == f'  {path}:7 step 2 "all run" at 0 s'
    assert out[3:6] == [
        f"    {path}:8 placed",
        "      - expected all 13 pods placed",
        "      + actual   12 placed, 1 pending",
    ]
    assert out[6].endswith(
        "is pending: none of 3 nodes has room: Insufficient cpu (3); nearest is n1, which lacks 1 cpu"
    )


def test_an_invalid_scenario_exits_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(write(tmp_path, "- drian: n1"))]) == 2
    assert "try 'drain'" in capsys.readouterr().err


def test_a_filter_without_matching_scenarios_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "- cordon: n1")
    assert main(["test", str(path), "--only", "other", "--label", "short"]) == 2
    assert capsys.readouterr().err == (
        "bayplan: --only or --label: expected the name or label of a scenario in the files, got 'other' and 'short'\n"
    )


def test_junit_xml_has_a_case_for_each_checking_step(tmp_path: Path) -> None:
    steps = "- assert: [{placed: {}}]\n- assert: [{nodes: {count: 2}}]\n- delete: [pod/x]\n- name: last\n  assert: [{placed: {}}]"
    path, results = write(tmp_path, steps), tmp_path / "results.xml"
    assert main(["test", str(path), "--junit", str(results)]) == 1
    (suite,) = ElementTree.parse(results).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    found = [(case.get("name"), case.get("line"), [part.tag for part in case]) for case in suite]
    assert found == [
        ("step 1: assert", "6", []),
        ("step 2: assert", "7", ["failure"]),
        ("step 3: delete", "8", ["error"]),
        ("step 4: last", "9", ["skipped"]),
    ]
    (failure,) = suite[1]
    assert failure.text is not None
    assert "- expected 2 nodes\n    + actual   3 nodes" in failure.text
