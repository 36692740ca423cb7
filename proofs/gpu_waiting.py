"""Compare the GPU sharing policies with real arrival and departure times: ``python -m proofs.gpu_waiting FOLDER``.

The published experiments submit tasks that never end. Here, tasks arrive and end as in the OpenB trace, and those that
don't fit wait in the scheduling queue. Because the whole cluster is never full, each seed takes random nodes of it, so
few that the tasks request 130 % of their GPUs at the peak. All policies get the same nodes. FOLDER is that of
`proofs.gpu_sharing`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup
from bayplan.app.simulation import SimulationOptions, prepare_simulation
from bayplan.base.durations import HOUR_NS
from bayplan.base.random_streams import RandomStreams
from bayplan.contrib.gpu_sharing import POLICIES, GpuPolicy
from bayplan.contrib.gpu_sharing.fragmentation import typical_pods, typical_pods_argument
from bayplan.contrib.gpu_sharing.requests import GPU_SIZE_MILLI, GpuRequest, gpu_request, gpus_of
from bayplan.extender.connections import ExtenderConnections
from bayplan.formats.inputs import Inputs, load_inputs
from bayplan.formats.manifest import Manifest
from bayplan.formats.trace import Trace
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.node import Node
from bayplan.reports.intervals import mean_and_margin
from bayplan.state.arrays import Floats
from proofs.gpu_protocol import LOAD, configuration, registry

FIRST_SEED = 42
FIGURES = ("mean wait (h)", "95th percentile of those that waited (h)", "tasks that waited", "left without a node")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all policies, print a table and draw a plot; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m proofs.gpu_waiting", description=__doc__)
    parser.add_argument("folder", type=Path, help="Folder of the OpenB trace.")
    parser.add_argument("--seeds", type=int, default=5, help="Runs of each policy. [default: 5]")
    parser.add_argument("--workers", type=int, default=2, help="Runs in parallel. [default: 2]")
    parser.add_argument("--out", type=Path, default=Path("build/gpu-sharing"), help="Folder for the plot.")
    options = parser.parse_args(arguments)
    names = ("openb_node_list_gpu_node.csv", "openb_pod_list_default.csv")
    trace = load_inputs([str(options.folder / name) for name in names]).trace
    assert trace is not None
    peak_milli = peak_demand(trace)
    print(f"peak demand {peak_milli / GPU_SIZE_MILLI:,.0f} GPUs")
    found: dict[str, Floats] = {}
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for policy in POLICIES:
            seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
            found[policy.name] = np.array(pool.map(partial(waits, trace, policy, peak_milli), seeds, chunksize=1))
            mean, margin = mean_and_margin(found[policy.name])
            cells = [f"{each:,.2f} ± {other:,.2f}" for each, other in zip(mean[:2], margin[:2], strict=True)]
            cells += [f"{each:,.0f} ± {other:,.0f}" for each, other in zip(mean[2:], margin[2:], strict=True)]
            print(f"| {policy.name} | {' | '.join(cells)} |", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    plot(options.out / "waiting.svg", found)
    return 0


def plot(path: Path, found: Mapping[str, Floats]) -> None:
    """Draw means and 95 % confidence intervals of three figures by policy, with a dot for each run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    names = list(found)
    for axes, number in zip(figure.subplots(1, 3), (0, 2, 3), strict=True):
        for place, name in enumerate(names):
            runs = found[name][:, number]
            mean, margin = mean_and_margin(runs)
            axes.bar(place, float(mean), yerr=float(margin), capsize=4, color=f"C{place}", alpha=0.5)
            axes.plot([place] * len(runs), runs, "o", color=f"C{place}", markersize=3)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_title(FIGURES[number])
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
    figure.savefig(path)


def peak_demand(trace: Trace) -> int:
    """Return the maximum of the GPU thousandths requested at one time, if all tasks start when they arrive."""
    changes: list[tuple[int, int]] = []
    for task in trace.pods:
        request = gpu_request(task.pod)
        if isinstance(request, GpuRequest) and request.count and task.run_time_ns is not None:
            changes += [
                (task.arrival_ns, request.total_milli),
                (task.arrival_ns + task.run_time_ns, -request.total_milli),
            ]
    demand = peak = 0
    for _, change in sorted(changes):
        demand += change
        peak = max(peak, demand)
    return peak


def some_nodes(nodes: Sequence[Node], capacity_milli: float, seed: int) -> list[Node]:
    """Return random nodes with this many GPU thousandths in total, one of them with the most GPUs."""
    random = RandomStreams(seed).stream("nodes").random
    left = sorted(nodes, key=lambda node: (random(), node.metadata.name))
    largest = max(left, key=lambda node: gpus_of(node)[0])
    found, total = [largest], gpus_of(largest)[0] * GPU_SIZE_MILLI
    for node in left:
        if total >= capacity_milli:
            break
        if node is not largest:
            found.append(node)
            total += gpus_of(node)[0] * GPU_SIZE_MILLI
    return sorted(found, key=lambda node: node.metadata.name)


def waits(trace: Trace, policy: type[GpuPolicy], peak_milli: int, seed: int) -> tuple[float, float, float, float]:
    """Return the `FIGURES` of one run, for tasks that request GPUs."""
    arguments: dict[str, object] = {"seed": seed} if policy.name == "Random" else {}
    if policy.name == "FGD":
        arguments = {"typicalPods": typical_pods_argument(typical_pods([each.pod for each in trace.pods]))}
    loaded = configuration(policy, arguments)
    setup = SchedulerSetup(
        options=SchedulerOptions(),
        configuration=loaded,
        registry=registry(),
        feature_gates=FeatureGates(),
        connections=ExtenderConnections(loaded.extenders),
    )
    nodes = some_nodes(trace.nodes, peak_milli / LOAD, seed)
    inputs = Inputs(manifest=Manifest(), trace=replace(trace, nodes=nodes))
    result = prepare_simulation(SimulationOptions(paths=(), seed=seed), inputs=inputs, setup=setup).run()
    hours = []
    never = 0
    for pod in result.pods:
        assert pod.pod is not None
        request = gpu_request(pod.pod)
        if not isinstance(request, GpuRequest) or not request.count:
            continue
        never += pod.bound_ns is None
        left_ns = pod.bound_ns or pod.ended_ns or result.end_ns
        hours.append((left_ns - pod.arrived_ns) / HOUR_NS)
    waited = sorted(each for each in hours if each > 0)
    high = waited[int(0.95 * len(waited))] if waited else 0.0
    return float(np.mean(hours)), high, len(waited), never


if __name__ == "__main__":
    sys.exit(main())
