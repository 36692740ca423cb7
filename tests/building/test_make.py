"""The make targets that compile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import building.__main__ as program
import pytest
from building.modules import ROOT

from tests.missing import missing

# Fails to compile, and reports how a command runs.
FAILS = """#!/bin/sh
case "$*" in
*building*) exit 1 ;;
*) echo "$2 ${BAYPLAN_UNCOMPILED:-compiled}" ;;
esac
"""
COMPILES = '#!/bin/sh\necho "$2 ${BAYPLAN_UNCOMPILED:-compiled}"\n'
FAILED = "Running uncompiled, several times slower, because compiling failed."


@pytest.mark.parametrize(
    ("python", "uncompiled", "out", "err"),
    [
        pytest.param(COMPILES, "", ["building compiled", "bayplan compiled"], [], id="compiling succeeds"),
        pytest.param(FAILS, "", ["bayplan 1"], [FAILED], id="compiling fails"),
        pytest.param(COMPILES, "1", ["bayplan 1"], [], id="BAYPLAN_UNCOMPILED is set"),
    ],
)
def test_make_run_compiles_if_possible(
    python: str, uncompiled: str, out: list[str], err: list[str], tmp_path: Path
) -> None:
    if shutil.which("make") is None:
        missing("make is not installed")
    done = _make("run", tmp_path, python=python, BAYPLAN_UNCOMPILED=uncompiled)
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if not line.startswith("To use")] == out
    assert [line for line in done.stderr.splitlines() if not line.startswith("make")] == err


@pytest.mark.parametrize("exists", [False, True], ids=["nothing is compiled yet", "something is compiled"])
def test_the_first_compilation_prints_how_to_skip_it(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "compiled"
    if exists:
        folder.mkdir()
    monkeypatch.setattr(program, "find_compiler", lambda **_: None)
    monkeypatch.setattr(program, "folder_of", lambda *_: folder)
    monkeypatch.setattr(program, "build", lambda *_: 0)
    monkeypatch.setattr(sys, "argv", ["building", "--if-possible"])
    assert program.main() == 0
    assert capsys.readouterr().err == ("" if exists else f"{program.HINT}\n")


def test_building_a_wheel_shows_the_progress_of_the_compilation(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        missing("make is not installed")
    backend = tmp_path / "hatchling" / "build.py"
    backend.parent.mkdir()
    (backend.parent / "__init__.py").touch()
    backend.write_text(
        "import sys\ndef build_wheel(folder):\n    print('  10 of 77', file=sys.stderr)\n    return 'bayplan.whl'\n"
    )
    done = _make("wheel", tmp_path, python=f'#!/bin/sh\nexec {sys.executable} "$@"\n', PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "dist/bayplan.whl\n", "  10 of 77\n")


def _make(target: str, folder: Path, *, python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a target of the Makefile in a folder, with a script as the Python of the environment."""
    ready = folder / ".ready"
    ready.touch()
    script = folder / "python"
    script.write_text(python)
    script.chmod(0o755)
    command = ["make", "-f", str(ROOT / "Makefile"), "-o", str(ready), target, f"VENV={folder}", f"BIN={folder}"]
    # `make test` passes its own settings to programs that it runs.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        command, cwd=folder, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )
