"""Measured processes: peak memory, CPU time, output; a failing process is an error."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.processes import digest_in, peak_of, run_process


def test_run_process_measures_output_cpu_time_and_peak_memory() -> None:
    code = "import time; block = b'x' * 200_000_000; time.sleep(0.1); print('done')"
    run = run_process([sys.executable, "-c", code])
    assert run.stdout == "done\n"
    assert run.seconds > 0
    assert run.cpu_s > 0
    assert not peak_of() or 200_000_000 < run.peak_bytes < 300_000_000


def test_peak_memory_is_not_inherited_from_the_parent() -> None:
    block = b"x" * 200_000_000
    run = run_process([sys.executable, "-c", "import time; time.sleep(0.2)"])
    assert block
    assert run.peak_bytes < 100_000_000


def test_a_failed_process_raises() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_process([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_missing_digest_raises() -> None:
    assert digest_in("ran to the end, digest 0123456789abcdef\n") == "0123456789abcdef"
    with pytest.raises(ValueError, match="expected a digest of decisions"):
        digest_in("nothing")
