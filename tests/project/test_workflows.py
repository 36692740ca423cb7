"""The workflow files, the pre-commit configuration and the Containerfile refer only to existing targets and files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project.test_documents import targets
from tests.project.tree import ROOT, name_of

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
SCRIPT = re.compile(r"(?<![\w/.-])((?:\.ci|scripts|oracle|tests|benchmarks)/[\w./-]+)")


def load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def matrix_values(workflow: dict[str, Any], name: str) -> list[str]:
    """Return the values of a matrix variable in all jobs."""
    matrices = [job.get("strategy", {}).get("matrix", {}) for job in workflow["jobs"].values()]
    return [str(value) for matrix in matrices for value in matrix.get(name, [])]


def make_targets(workflow: dict[str, Any]) -> list[str]:
    """Return the targets that the steps of a workflow make; for a variable of the matrix, all its values."""
    named: list[str] = []
    for step in steps(workflow):
        for word in re.findall(r"\bmake (\$\{\{ matrix\.\w+ \}\}|[\w-]+)", step.get("run", "")):
            variable = re.search(r"matrix\.(\w+)", word)
            named += matrix_values(workflow, variable[1]) if variable else [word]
    return named


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_workflows_use_existing_make_targets(path: Path) -> None:
    assert [target for target in make_targets(load(path)) if target not in targets()] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_workflows_use_existing_scripts_and_workflows(path: Path) -> None:
    workflow = load(path)
    named = [script for step in steps(workflow) for script in SCRIPT.findall(step.get("run", ""))]
    named += [job["uses"] for job in workflow["jobs"].values() if job.get("uses", "").startswith("./")]
    assert [each for each in named if not (ROOT / each).exists()] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_workflows_state_what_is_untested_and_limit_permissions_and_time(path: Path) -> None:
    comment = "".join(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    assert "ntested" in comment
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in workflow["jobs"].items() if "steps" in job and "timeout-minutes" not in job] == []


def test_workflows_cover_all_supported_python_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert matrix_values(load(FOLDER / "test.yml"), "python") == supported
    built = [
        step["env"]["CIBW_BUILD"] for step in steps(load(FOLDER / "wheels.yml")) if "CIBW_BUILD" in step.get("env", {})
    ]
    assert built == [" ".join(f"cp{version.replace('.', '')}-*" for version in supported)]


def test_the_nightly_workflow_runs_every_fuzz_program() -> None:
    from fuzz.__main__ import PROGRAMS

    assert sorted(matrix_values(load(FOLDER / "nightly.yml"), "kind")) == sorted(PROGRAMS)


def test_pre_commit_hooks_run_existing_programs() -> None:
    developers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tools = " ".join(developers["optional-dependencies"]["dev"])
    for hook in [hook for repo in load(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]:
        program, *words = hook["entry"].split()
        assert program in (".venv/bin/python", ".venv/bin/ruff")
        assert program.endswith("python") or f"{Path(program).name}>=" in tools
        assert [word for word in words if "/" in word and not (ROOT / word).exists()] == []


def test_the_image_copies_existing_files_that_are_not_ignored() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE)]
    files = [file for words in copied for file in words]
    assert [file for file in files if not (ROOT / file).exists()] == []
    kept = re.findall(r"^!(.+)$", (ROOT / ".containerignore").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(files) == sorted(kept)
    assert re.search(r"^USER \d+:\d+$", text, re.MULTILINE)
