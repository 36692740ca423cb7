"""Libraries and simulations work without the modules that only Unix has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from building.modules import ROOT

UNIX_ONLY = ("fcntl", "grp", "posix_ipc", "pwd", "readline", "resource", "syslog", "termios", "tty", "pty", "uvloop")
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({UNIX_ONLY!r})); "
EXAMPLE = ROOT / "src" / "bayplan" / "examples" / "three-zones"


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import bayplan; [getattr(bayplan, name) for name in bayplan.__all__]", id="the library"),
        pytest.param(
            f"from bayplan.cli.main import main; sys.exit(main(['simulate', {str(EXAMPLE)!r}, '--until', '1m']))",
            id="simulate",
        ),
    ],
)
def test_library_and_simulate_run_without_unix_modules(program: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT + program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
