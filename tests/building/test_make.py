"""The make target that compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from building.modules import ROOT

from tests.missing import missing

HINT = "Compiling takes some minutes, once; BAYPLAN_UNCOMPILED=1 skips it.\n"


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
    ready = tmp_path / ".ready"
    ready.touch()
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    command = [
        "make",
        "-f",
        str(ROOT / "Makefile"),
        "-o",
        str(ready),
        "compiled",
        f"VENV={tmp_path}",
        f"BIN={tmp_path}",
    ]
    # `make test` passes its own settings to programs that it runs.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment = {**inherited, "BAYPLAN_UNCOMPILED": uncompiled}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, want)
