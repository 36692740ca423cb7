"""Whole simulations, from files to the report: a generated trace like OpenB's, and OpenB itself if its files exist."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bayplan.app.simulation import SimulationOptions, simulate
from benchmarks import Figure
from benchmarks.processes import digest_in, run_bayplan

OPENB = Path(__file__).resolve().parents[2] / "shared" / "data" / "openb"
NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASKS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"),
    *("qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"),
)


def write_trace(
    folder: Path, nodes: int, tasks: int, *, gap_s: int = 60, runs_s: tuple[int, int] = (600, 40_000), gpus: bool = True
) -> list[str]:
    """Write a node list and a task list in OpenB's columns from a fixed seed; return their paths.

    Args:
        folder: the folder for the files.
        nodes, tasks: the numbers of nodes and tasks.
        gap_s: upper bound of the time between arrivals.
        runs_s: shortest and longest run time.
        gpus: whether tasks request GPUs.
    """
    random = Random(1)
    rows = [",".join(NODES)]
    for number in range(nodes):
        cpu_milli, memory_mib, offered, model = random.choice(
            ((64000, 262144, 2, "P100"), (96000, 786432, 8, "G2"), (96000, 393216, 0, ""))
        )
        rows.append(f"node-{number:04},{cpu_milli},{memory_mib},{offered},{model}")
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    rows = [",".join(TASKS)]
    created = 0
    for number in range(tasks):
        created += random.randrange(gap_s)
        count, share = random.choice(((0, 0), (1, 1000), (1, 500), (1, 250), (2, 1000))) if gpus else (0, 0)
        runs = random.randrange(*runs_s)
        cpu_milli, memory_mib = random.choice((1000, 4000, 8000, 12000)), random.choice((4096, 16384, 32768))
        row = (
            f"task-{number:05}",
            cpu_milli,
            memory_mib,
            count,
            share,
            "",
            "LS",
            "Succeeded",
            created,
            created + runs,
            created,
        )
        rows.append(",".join(map(str, row)))
    (folder / "tasks.csv").write_text("\n".join(rows) + "\n")
    return [str(folder / "nodes.csv"), str(folder / "tasks.csv")]


def run(name: str, paths: list[str]) -> Figure:
    """Simulate files in this process, and return the wall time."""
    start = time.perf_counter()
    result = simulate(SimulationOptions(paths=paths, seed=1))
    seconds = time.perf_counter() - start
    return Figure(
        name=name,
        value=seconds,
        unit="s",
        decisions_hash=result.digest,
        note=f"{len(result.records):,} decisions, from files to the outcome",
    )


def run_process(name: str, paths: list[str], *options: str) -> Figure:
    """Run the command line on files, and return the wall time of the whole process."""
    ended = run_bayplan("simulate", *paths, "--seed", "1", *options)
    what = "imports, files, report" + (", result directory" if options else "")
    return Figure(
        name=f"{name}, process",
        value=ended.seconds,
        unit="s",
        decisions_hash=digest_in(ended.stdout),
        note=f"{what}; processor time {ended.cpu_s:.2f} s; peak memory {ended.peak_bytes / 1e6:,.0f} MB",
    )


def figures(size: str) -> Iterator[Figure]:
    """Yield seconds for a generated trace and, for size large, for OpenB with both node lists.

    Each is simulated in this process and in a separate one.
    """
    nodes, tasks = (60, 200) if size == "small" else (1_523, 8_152)
    with TemporaryDirectory() as folder:
        paths = write_trace(Path(folder), nodes, tasks)
        name = f"made trace, {nodes:,} nodes, {tasks:,} tasks"
        yield run(name, paths)
        yield run_process(name, paths)
        if size == "large" and OPENB.is_dir():
            for nodes_file in ("openb_node_list_all_node.csv", "openb_node_list_gpu_node.csv"):
                paths = [str(OPENB / nodes_file), str(OPENB / "openb_pod_list_default.csv")]
                name = f"OpenB, {nodes_file.removesuffix('.csv')}"
                yield run(name, paths)
                yield run_process(name, paths)
                yield run_process(f"{name} --out", paths, "--out", str(Path(folder, "result")))
