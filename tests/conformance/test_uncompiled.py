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
TESTS = ("tests/engine/test_plan.py", "tests/extender/test_recorded.py")
"""Tests of plans and records, and of answers in JSON, which must not contain NumPy's scalars."""


def test_recorded_cycles_agree_with_uncompiled_sources() -> None:
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "bayplan", "conformance", str(CYCLES)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, UNCOMPILED_VARIABLE: "1"}
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]


def test_tests_pass_with_uncompiled_sources() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *TESTS]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, UNCOMPILED_VARIABLE: "1"}
    )
    assert done.returncode == 0, done.stdout[-2000:]
