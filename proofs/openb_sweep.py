"""Sweep 100 configurations of OpenB: ``python -m proofs.openb_sweep FOLDER``.

FOLDER contains ``openb_node_list_all_node.csv`` and ``openb_pod_list_default.csv``. The sweep runs in worker processes,
and with ``--ray`` again on a Ray cluster of two node processes on this machine, one of which is killed after a third of
the trials. Exit code 1 if the results differ, or if the first sweep takes longer than three minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bayplan.sweeps.executors import Executor, ProcessExecutor, RayExecutor
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.searches import make_search
from bayplan.sweeps.space import Choice
from bayplan.sweeps.store import SweepFolder
from bayplan.sweeps.sweep import Progress, run_sweep

MAX_SECONDS = 180.0
SPACE = {
    "args.NodeResourcesFit.scoringStrategy.type": Choice(("LeastAllocated", "MostAllocated")),
    "weight.NodeResourcesFit": Choice((1, 2, 5, 10, 25)),
    "weight.NodeResourcesBalancedAllocation": Choice((0, 1, 2, 5, 10)),
    "percentageOfNodesToScore": Choice((10, 100)),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sweeps and compare them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m proofs.openb_sweep", description=__doc__)
    parser.add_argument("folder", type=Path, help="Folder of the OpenB trace.")
    parser.add_argument("--workers", type=int, default=2, help="Trials in parallel. [default: 2]")
    parser.add_argument("--ray", action="store_true", help="Sweep on Ray, too, and kill a node.")
    options = parser.parse_args(arguments)
    names = ("openb_node_list_all_node.csv", "openb_pod_list_default.csv")
    plan = SweepPlan(paths=[str(options.folder / name) for name in names], space=SPACE, objective="fragmentation")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        seconds = measure("processes", plan, out / "processes", lambda: ProcessExecutor(plan, options.workers))
        hashes = {digest_of(plan, out / "processes")}
        if options.ray:
            sweep_with_a_killed_node(plan, out / "ray")
            hashes.add(digest_of(plan, out / "ray"))
    print(f"results {'differ' if len(hashes) > 1 else 'are the same'}: {', '.join(sorted(hashes))}")
    return int(len(hashes) > 1 or seconds > MAX_SECONDS)


def measure(
    name: str, plan: SweepPlan, folder: Path, executor: Callable[[], Executor], progress: Progress | None = None
) -> float:
    """Run a sweep, print its duration, and return the seconds."""
    start, before = time.perf_counter(), processor_seconds()
    run_sweep(plan, folder, executor, progress)
    seconds, used = time.perf_counter() - start, processor_seconds() - before
    trials = make_search(plan).number * len(plan.seeds)
    # Workers of Ray are not children of this process.
    processors = f", {used:.0f} s of processors" if name == "processes" else ""
    print(
        f"{name}: {trials} configurations in {seconds:.0f} s, {60 * trials / seconds:.0f} a minute{processors}",
        flush=True,
    )
    return seconds


def processor_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended, in seconds."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def sweep_with_a_killed_node(plan: SweepPlan, folder: Path) -> None:
    """Run a sweep on two node processes of Ray with one trial at a time each, and kill one after a third of the trials."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

    def kill_one(done: int, total: int) -> None:
        if done >= total // 3 and len(nodes) == 2:
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            print(f"ray: killed one of two nodes after {done} of {total} trials", flush=True)

    try:
        measure("ray", plan, folder, lambda: RayExecutor(plan, workers=2), kill_one)
    finally:
        cluster.shutdown()


def digest_of(plan: SweepPlan, folder: Path) -> str:
    """Return a hash of all results of a sweep: parameters, figures and digests of decisions, but not durations."""
    outcomes = SweepFolder(folder, plan).done
    found = [msgspec.structs.replace(outcomes[number], seconds=0.0) for number in sorted(outcomes)]
    return hashlib.sha256(msgspec.json.encode(found, order="sorted")).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
