"""The order of pops does not depend on how Python hashes strings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = """
from benchmarks.bench_queue import figures
print([figure.decisions_hash for figure in figures("small")])
"""


def hashes_under(seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout


def test_pods_are_popped_in_the_same_order_under_any_hash_seed() -> None:
    first, second = hashes_under("1"), hashes_under("2")
    assert first == second
    assert first.count(",") > 5
