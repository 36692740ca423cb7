"""The Python sources, uncompiled, agree with all recorded cycles, and check every index.

NumPy's overflow warnings count as errors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bayplan.base.build import UNCOMPILED_VARIABLE

CYCLES = Path("conformance", "cycles")
PLANS = Path("tests", "engine", "test_plan.py")


def test_recorded_cycles_agree_with_uncompiled_sources() -> None:
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "bayplan", "conformance", str(CYCLES)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, UNCOMPILED_VARIABLE: "1"}
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]


def test_plans_work_with_uncompiled_sources() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(PLANS)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, UNCOMPILED_VARIABLE: "1"}
    )
    assert done.returncode == 0, done.stdout[-2000:]
