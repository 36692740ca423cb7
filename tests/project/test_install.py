"""scripts/install.py shows pip's progress, returns its exit code, and prints its output if it failed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.project.tree import ROOT


@pytest.mark.parametrize(
    ("arguments", "code", "want"),
    [
        pytest.param(["--dry-run", "--no-index", "packaging"], 0, "", id="nothing is left to install"),
        pytest.param(
            ["--no-index", "--target", "{folder}", "no-such-package"],
            1,
            "No matching distribution found for no-such-package",
            id="a package that does not exist",
        ),
    ],
)
def test_install_returns_the_exit_code_of_pip_and_prints_its_errors(
    arguments: list[str], code: int, want: str, tmp_path: object
) -> None:
    words = [each.format(folder=tmp_path) for each in arguments]
    command = [sys.executable, str(ROOT / "scripts" / "install.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code
    assert want in done.stderr
    # A slow machine prints its progress, in indented lines.
    assert bool(want) == any(not line.startswith("  ") for line in done.stderr.splitlines())


def test_install_reports_progress(tmp_path: object) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "install.py"), "--no-deps", "--no-index", "--no-build-isolation"]
    command += ["--target", str(tmp_path), str(ROOT)]
    # Compiling takes a minute or more.
    environment = {**os.environ, "BAYPLAN_COMPILE": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    # A slow machine prints more lines, because a line follows whenever pip's log is silent for long.
    assert done.returncode == 0
    assert "  installing 1 package" in done.stderr.splitlines()
