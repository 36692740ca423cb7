"""Compare the decisions per second of Bayplan and of the real kube-scheduler's engine, on the same nodes and pods.

    make bench-against-real
    make bench-against-real ARGS="--nodes 1000 --pods 500 --repeat 1 --kinds basic"

The real side is oracle/current/realcluster/bench: UpdateSnapshot, SchedulePod and AssumePod, without queue, binding or
events. Our side includes everything from the arrival of a pod to its decision: queue, cycle, reserve and summary
record. The real engine filters and scores nodes on all cores, ours on one, so the table has two ratios: by wall time
and by CPU time. Machines vary, so each round runs one side immediately after the other and has its own ratio; the table
shows the median.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bayplan.base.garbage_collector import rare_collections
from bayplan.engine.records import Outcome, RecordLevel
from benchmarks.bench_engine import default_profile_scheduler, default_scheduler
from benchmarks.real_kinds import KINDS, TITLES, node_of, pod_of, real_nodes, real_pods

PROGRAM = Path("build", "real-bench")
"""The program of the real side, built by `make bench-against-real`."""


class Run(msgspec.Struct, frozen=True):
    """One side's run of one kind of pods.

    Attributes:
        wall_s: the wall time in seconds.
        cpu_s: the CPU time of all threads in seconds.
        failed: the number of pods without a node.
    """

    wall_s: float
    cpu_s: float
    failed: int


class Round(NamedTuple):
    """The real engine's run, and ours immediately after it."""

    real: Run
    ours: Run


class Measured(msgspec.Struct, frozen=True):
    """All rounds of one kind of pods, with all nodes scored or with sampling."""

    kind: str
    sampled: bool
    nodes: int
    pods: int
    rounds: list[Round]

    def rates(self, side: str) -> list[float]:
        """Return the decisions per second of a side (``real`` or ``ours``) in each round, sorted."""
        return sorted(self.pods / getattr(each, side).wall_s for each in self.rounds)

    def cores(self, side: str) -> float:
        """Return the average number of cores that a side used over all rounds."""
        runs = [getattr(each, side) for each in self.rounds]
        return float(sum(run.cpu_s for run in runs) / sum(run.wall_s for run in runs))

    def ratios(self, *, by_processor_time: bool) -> list[float]:
        """Return the speedup of our engine over the real one in each round, sorted."""
        if by_processor_time:
            return sorted(each.real.cpu_s / each.ours.cpu_s for each in self.rounds)
        return sorted(each.real.wall_s / each.ours.wall_s for each in self.rounds)


# The two sides.


def run_real(program: Path, kind: str, nodes: int, pods: int, *, sampled: bool) -> Run:
    """Run the real engine once, in a separate process."""
    command = [str(program), "-nodes", str(nodes), "-pods", str(pods), "-kinds", kind, "-repeat", "1"]
    ended = subprocess.run([*command, "-pct", "0" if sampled else "100"], stdout=subprocess.PIPE, text=True, check=True)
    return msgspec.json.decode(ended.stdout, type=Run)


def run_ours(kind: str, nodes: int, pods: int, *, sampled: bool) -> Run:
    """Run our engine once, in this process."""
    scheduler = (default_scheduler if sampled else default_profile_scheduler)(RecordLevel.SUMMARY)
    for node in real_nodes(nodes):
        scheduler.handle(None, node, 0)
    arriving = real_pods(kind, pods)
    gc.collect()
    failed = 0
    with rare_collections():
        wall, cpu = time.perf_counter(), time.process_time()
        for pod in arriving:
            scheduler.handle(None, pod, 0)
        while (report := scheduler.schedule_one(0)) is not None:
            failed += report.outcome is not Outcome.SCHEDULED
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Run(wall, cpu, failed)


def check_same_objects(program: Path, kind: str, count: int = 30) -> None:
    """Check that both sides use the same nodes and pods.

    Raises:
        RuntimeError: a node or pod differs.
    """
    command = [str(program), "-dump", "-nodes", str(count), "-pods", str(count), "-kinds", kind]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    documents = [json.loads(line) for line in lines]
    for number, (node, ours) in enumerate(zip(documents[:count], real_nodes(count), strict=True)):
        if node_of(node) != ours:
            raise RuntimeError(f"node {number} differs: the real side has {node_of(node)}, ours is {ours}")
    for number, (pod, mine) in enumerate(zip(documents[count:], real_pods(kind, count), strict=True)):
        if pod_of(pod) != mine:
            raise RuntimeError(f"pod {number} of {kind} differs: the real side has {pod_of(pod)}, ours is {mine}")


def measure(program: Path, kinds: Sequence[str], nodes: int, pods: int, repeat: int) -> Iterator[Measured]:
    """Yield the rounds of each kind: with all nodes scored, then with sampling."""
    for kind in kinds:
        check_same_objects(program, kind)
        for sampled in (False, True):
            rounds = []
            for _ in range(repeat):
                real = run_real(program, kind, nodes, pods, sampled=sampled)
                rounds.append(Round(real, run_ours(kind, nodes, pods, sampled=sampled)))
            yield Measured(kind, sampled, nodes, pods, rounds)


# The table.


def _range(values: Sequence[float]) -> str:
    low, high = _short(values[0]), _short(values[-1])
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    """Return a number with two or three significant digits."""
    if value >= 1000:
        return f"{round(value, 2 - len(str(int(value)))):,.0f}"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def table(measured: Sequence[Measured]) -> str:
    """Return the Markdown table of docs/performance.md."""
    header = (
        "nodes, pods",
        "what is scored",
        "real, decisions/s (cores)",
        "Bayplan, decisions/s (cores)",
        "ratio, median (range)",
        "ratio of processor time",
    )
    lines = [f"| {' | '.join(header)} |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for one in measured:
        wall, cpu = one.ratios(by_processor_time=False), one.ratios(by_processor_time=True)
        cells = (
            f"{one.nodes:,} nodes, {one.pods:,} pods: {TITLES[one.kind]}",
            "sampled" if one.sampled else "all nodes",
            f"{_range(one.rates('real'))} ({one.cores('real'):.1f})",
            f"{_range(one.rates('ours'))} ({one.cores('ours'):.1f})",
            f"**{_short(statistics.median(wall))}** ({_range(wall)})",
            _short(statistics.median(cpu)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print the table; with ``--json``, also write every round."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against_real", description="Measure against the real engine."
    )
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each kind [default: 3]")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"kinds of pods, of {', '.join(KINDS)} [default: all]")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="the real side [default: build/real-bench]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to this file")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds {', '.join(sorted(unknown))}; expected some of {', '.join(KINDS)}")
    if not options.program.exists():
        parser.error(f"{options.program} is missing; run 'make bench-against-real', which builds it (needs Go)")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} when it began", file=sys.stderr)
    measured = []
    for one in measure(options.program, kinds, options.nodes, options.pods, options.repeat):
        measured.append(one)
        print(table([one]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(measured))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")


if __name__ == "__main__":
    main()
