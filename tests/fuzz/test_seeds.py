"""Random cases of the fuzzer: a seed always gives the same case, under different hash seeds, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("module", "function"),
    [("clusters", "random_case"), ("queue_traces", "random_queue_case"), ("config_texts", "random_config_case")],
)
def test_a_case_depends_only_on_its_seed_and_number(module: str, function: str) -> None:
    program = (
        f"import msgspec; from fuzz.{module} import {function}; print(msgspec.json.encode({function}(7, 3)).decode())"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    )
    assert first == second
