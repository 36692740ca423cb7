"""The command ``config``: problems with their places, a valid configuration in full, and an old one converted to v1."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from bayplan.cli.main import main

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OLD = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["config", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_check_prints_a_valid_configuration_with_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "parallelism: 3\n")
    code, out, err = run(capsys, "check", str(path))
    effective = yaml.safe_load(out)
    assert (code, err) == (0, "")
    assert effective["parallelism"] == 3
    assert effective["podMaxBackoffSeconds"] == 10
    assert {entry["name"] for entry in effective["profiles"][0]["pluginConfig"]} >= {"NodeResourcesFit"}


def test_check_notes_the_arguments_of_an_unknown_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "profiles: [{pluginConfig: [{name: NodeResourceFit, args: {}}, {name: NodeAffinity}]}]\n")
    code, out, err = run(capsys, "check", str(path))
    note = (
        "default-scheduler: there is no plugin NodeResourceFit, so its pluginConfig has no effect; try NodeResourcesFit"
    )
    assert (code, err) == (0, f"note: {note}\n")
    assert yaml.safe_load(out)["profiles"]
    assert json.loads(run(capsys, "check", str(path), "--json")[1])["notes"] == [note]


def test_check_prints_one_problem_per_line_with_its_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "parallelism: 0\npercentageOfNodesToScore: 101\n")
    code, out, err = run(capsys, "check", str(path))
    assert code == 1
    assert out.splitlines() == [
        f"{path}:3:14 $.parallelism: Invalid value: 0: should be an integer value greater than zero",
        f"{path}:4:27 $.percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ]
    assert err == "refused at validation: 2 problems\n"


def test_check_refuses_an_old_version_and_suggests_convert(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OLD.encode())))
    code, out, err = run(capsys, "check", "-")
    assert code == 1
    assert 'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta2"' in out
    assert err == "refused at decode: 1 problem; try bayplan config convert\n"


def test_convert_prints_a_valid_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(OLD + "healthzBindAddress: x\n")
    code, out, _ = run(capsys, "convert", str(path))
    assert code == 0
    assert out.startswith("# Converted from kubescheduler.config.k8s.io/v1beta2.\n# $.healthzBindAddress: left out")
    path.write_text(out)
    assert run(capsys, "check", str(path))[0] == 0


def test_convert_reports_why_a_configuration_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(OLD + "parallelism: -1\n")
    code, out, err = run(capsys, "convert", str(path))
    assert code == 1
    assert "parallelism: -1" in out
    assert err.startswith("converted:3:14 $.parallelism: Invalid value: -1")


@pytest.mark.parametrize("action", ["check", "convert"])
def test_json_output_contains_problem_positions(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "parallelism: 0\n")
    code, out, _ = run(capsys, action, str(path), "--json")
    answer = json.loads(out)
    assert code == 1
    [problem] = answer["problems"]
    assert (problem["line"], problem["path"]) == (3, "$.parallelism")


def test_check_accepts_plugins_and_validates_feature_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + "profiles:\n- plugins: {multiPoint: {enabled: [{name: Gang}]}}\n")
    assert run(capsys, "check", str(path))[0] == 0
    code, _, err = run(capsys, "check", str(path), "--feature-gates", "GangScheduling=true")
    assert code == 2
    assert "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]" in err


def test_a_missing_file_exits_with_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "check", "nowhere.yaml")
    assert code == 2
    assert err == "bayplan: nowhere.yaml: expected a configuration file, got no such file or directory\n"
