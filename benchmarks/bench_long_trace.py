"""A million pods that arrive, run and end on 20,000 nodes in virtual time, from a generated CSV trace to the report.

The tasks arrive on average one second apart and run for 33 hours, so about 120,000 run at once and use half of the
CPUs. The trace is written before the measurement starts. Goal: under 90 s and 4 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import Figure
from benchmarks.bench_simulation import write_trace
from benchmarks.processes import digest_in, run_bayplan

GAP_S = 3
RUNS_S = (600, 240_000)
SIZES = {"small": (40, 400), "medium": (2_000, 100_000), "large": (20_000, 1_000_000)}
"""Nodes and tasks by size. On fewer nodes the tasks are shorter, so that utilisation stays the same."""


def write_long_trace(folder: Path, nodes: int, tasks: int) -> list[str]:
    """Write the trace; return its files."""
    largest = SIZES["large"][0]
    lowest, highest = (max(seconds * nodes // largest, 2) for seconds in RUNS_S)
    return write_trace(folder, nodes, tasks, gap_s=GAP_S, runs_s=(lowest, highest), gpus=False)


def run(size: str) -> Iterator[Figure]:
    """Yield the wall time and the peak memory of the whole process."""
    nodes, tasks = SIZES[size]
    with TemporaryDirectory() as folder:
        paths = write_long_trace(Path(folder), nodes, tasks)
        ended = run_bayplan("simulate", *paths, "--seed", "1")
    name = f"{tasks:,} pods on {nodes:,} nodes, CSV to report"
    digest = digest_in(ended.stdout)
    rate = f"{tasks / ended.seconds:,.0f} pods/s; processor time {ended.cpu_s:.1f} s"
    yield Figure(name=name, value=ended.seconds, unit="s", decisions_hash=digest, note=rate)
    if ended.peak_bytes:
        yield Figure(name=f"{name}, peak memory", value=ended.peak_bytes / 1e6, unit="MB", decisions_hash=digest)


def figures(size: str) -> Iterator[Figure]:
    """Yield wall time and peak memory; for size large, also with a tenth of the pods and nodes."""
    for each in ("medium", "large") if size == "large" else (size,):
        yield from run(each)


if __name__ == "__main__":
    for figure in run("medium"):
        print(figure)
