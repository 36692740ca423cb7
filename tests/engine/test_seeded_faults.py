"""Each fault that `seeded_faults` puts into undo and refresh code is caught by the test that it names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.seeded_faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def caught() -> dict[int, bool]:
    """Try all faults in an uncompiled engine; -1 checks that the tests pass without any."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.seeded_faults"],
        cwd=ROOT,
        env={**os.environ, "BAYPLAN_UNCOMPILED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("number", [pytest.param(number, id=fault.what) for number, fault in enumerate(FAULTS)])
def test_a_seeded_fault_is_caught(caught: dict[int, bool], number: int) -> None:
    assert caught[number]


def test_the_tests_pass_without_a_fault(caught: dict[int, bool]) -> None:
    assert caught[-1]
