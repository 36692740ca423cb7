"""The make targets that compile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building.modules import ROOT

from tests.missing import missing

HINT = "Compiling takes a minute or more, once; BAYPLAN_UNCOMPILED=1 skips it.\n"


@pytest.mark.parametrize(
    ("folder", "uncompiled", "want"),
    [
        pytest.param("src", "", HINT, id="nothing is compiled yet"),
        pytest.param("src/bayplan/_compiled", "", "", id="something is compiled"),
        pytest.param("src", "1", "", id="BAYPLAN_UNCOMPILED is set"),
    ],
)
def test_the_first_compilation_prints_how_to_skip_it(folder: str, uncompiled: str, want: str, tmp_path: Path) -> None:
    if shutil.which("make") is None:
        missing("make is not installed")
    (tmp_path / folder).mkdir(parents=True)
    done = _make("compiled", tmp_path, python="#!/bin/sh\n", BAYPLAN_UNCOMPILED=uncompiled)
    assert (done.returncode, done.stderr) == (0, want)


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
