"""Run a command as a separate process and measure it: wall time, CPU time, peak memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

SAMPLE_INTERVAL_S = 0.02
"""Interval between readings of the peak. The kernel records the peak, so only growth just before the end is missed."""


class ProcessRun(NamedTuple):
    """A process that has ended.

    Attributes:
        seconds: the wall time from start to end.
        cpu_s: the CPU time, including child processes.
        peak_bytes: the largest resident size; 0 if unknown (systems other than Linux).
    """

    seconds: float
    cpu_s: float
    peak_bytes: int
    stdout: str


def run_process(command: Sequence[str]) -> ProcessRun:
    """Run a command until it ends, and return its measurements.

    Raises:
        subprocess.CalledProcessError: the command failed; its standard error goes to that of this process.
    """
    start, cpu_s = time.perf_counter(), _cpu_of_children()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peaks, ended = [0], Event()
    sampler = Thread(target=_sample, args=(process.pid, peaks, ended))
    sampler.start()
    stdout, _ = process.communicate()
    seconds = time.perf_counter() - start
    ended.set()
    sampler.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return ProcessRun(seconds, _cpu_of_children() - cpu_s, peaks[0], stdout)


def run_bayplan(*arguments: str) -> ProcessRun:
    """Run the command ``bayplan`` with these arguments."""
    return run_process([sys.executable, "-m", "bayplan", *arguments])


def digest_in(report: str) -> str:
    """Return the digest of decisions at the end of a report of `bayplan simulate`."""
    found = re.search("digest ([0-9a-f]{16})", report)
    if found is None:
        raise ValueError(f"expected a digest of decisions in the report, got: {report[-500:]}")
    return found[1]


def peak_of(pid: int | str = "self") -> int:
    """Return the largest resident size of a process so far, in bytes; 0 if it has ended or this is unknown."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def _cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _sample(pid: int, peaks: list[int], ended: Event) -> None:
    while not ended.wait(SAMPLE_INTERVAL_S):
        # A process that is ending has no size.
        peaks[0] = max(peaks[0], peak_of(pid))
