"""Compare the GPU sharing policies with the published results: ``python -m proofs.gpu_sharing FOLDER``.

FOLDER contains the OpenB trace and the published figures: ``openb_node_list_gpu_node.csv``,
``openb_pod_list_default.csv`` and ``fgd_reference.csv``. Runs each policy with ten seeds by the published protocol
(`proofs.gpu_protocol`), prints the table, and writes ``curves.csv`` and ``curves.svg``. Exit code 1 if the mean
allocation of a policy differs by more than one point.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bayplan.contrib.gpu_sharing import POLICIES
from bayplan.formats.inputs import load_inputs
from proofs.gpu_protocol import Curve, ProtocolRun

FIRST_SEED = 42
MAX_DIFFERENCE = 1.0
METRICS = {"gpu_alloc_pct": "allocation", "frag_amount_pct": "amount", "frag_ratio_pct": "ratio"}
"""Our name of each published figure."""

Published = Mapping[tuple[str, str, int], float]
"""Published means by policy, metric, and percent of GPUs requested."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all policies and compare them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m proofs.gpu_sharing", description=__doc__)
    parser.add_argument("folder", type=Path, help="Folder of the OpenB trace and the published figures.")
    parser.add_argument("--seeds", type=int, default=10, help="Runs of each policy. [default: 10]")
    parser.add_argument("--tasks", default="default", help="The list of tasks. [default: default]")
    parser.add_argument("--policy", action="append", help="Only this policy. [default: all]")
    parser.add_argument(
        "--ties", choices=("name", "random"), default="name", help="Choice among equal nodes. [default: name]"
    )
    parser.add_argument("--out", type=Path, default=Path("build/gpu-sharing"), help="Folder for the curves.")
    options = parser.parse_args(arguments)
    published = read_published(options.folder / "fgd_reference.csv", options.tasks)
    (tasks,) = options.folder.glob(f"openb_pod_list_{options.tasks}.csv*")
    trace = load_inputs([str(options.folder / "openb_node_list_gpu_node.csv"), str(tasks)]).trace
    assert trace is not None
    curves: dict[str, list[Curve]] = {}
    for policy in POLICIES:
        if options.policy and policy.name not in options.policy:
            continue
        start = time.perf_counter()
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
        runs = [ProtocolRun(trace, policy, seed, by_name=options.ties == "name").run() for seed in seeds]
        curves[policy.name] = runs
        print(table_row(policy.name, runs, published), f"{time.perf_counter() - start:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_curves(options.out / "curves.csv", curves, published)
    plot(options.out / "curves.svg", curves, published)
    return int(any(abs(difference(name, runs, published)) > MAX_DIFFERENCE for name, runs in curves.items()))


def read_published(path: Path, tasks: str) -> Published:
    """Return the published means for a list of tasks."""
    with path.open(newline="") as file:
        return {
            (row["policy"], row["metric"], int(row["arrived_pct"])): float(row["mean"])
            for row in csv.DictReader(file)
            if row["trace"] == tasks
        }


def mean_at(runs: Sequence[Curve], metric: str, percent: int) -> float:
    """Return the mean of a figure over runs, at a percentage of GPUs requested."""
    return statistics.fmean(getattr(run, METRICS[metric])[percent] for run in runs)


def difference(name: str, runs: Sequence[Curve], published: Published) -> float:
    """Return the difference (ours minus published) of the allocation at the end, in points."""
    return mean_at(runs, "gpu_alloc_pct", 130) - published[name, "gpu_alloc_pct", 130]


def table_row(name: str, runs: Sequence[Curve], published: Published) -> str:
    """Return a row of the table: allocation and fragments, ours and published."""
    spread = statistics.stdev(run.allocation[130] for run in runs) if len(runs) > 1 else 0.0
    ours, theirs = mean_at(runs, "gpu_alloc_pct", 130), published[name, "gpu_alloc_pct", 130]
    cells = [name, f"{ours:.2f} ± {spread:.2f}", f"{theirs:.2f}", f"{ours - theirs:+.2f}"]
    for percent in (80, 130):
        cells += [
            f"{mean_at(runs, 'frag_amount_pct', percent):.2f}",
            f"{published[name, 'frag_amount_pct', percent]:.2f}",
        ]
    return f"| {' | '.join(cells)} |"


def write_curves(path: Path, curves: Mapping[str, Sequence[Curve]], published: Published) -> None:
    """Write our means and the published ones, at the percentages that are published."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("policy", "metric", "arrived_pct", "mean", "published"))
        for (name, metric, percent), theirs in published.items():
            if name in curves:
                writer.writerow(
                    (name, metric, percent, f"{mean_at(curves[name], metric, percent):.3f}", f"{theirs:.3f}")
                )


def plot(path: Path, curves: Mapping[str, Sequence[Curve]], published: Published) -> None:
    """Draw allocation and fragments by GPUs requested: ours as lines, the published means as dots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, metric, title in zip(
        figure.subplots(1, 2),
        ("gpu_alloc_pct", "frag_amount_pct"),
        ("GPUs allocated (%)", "Fragments (% of all GPUs)"),
        strict=True,
    ):
        for number, (name, runs) in enumerate(curves.items()):
            points = [percent for each, what, percent in published if each == name and what == metric]
            colour = f"C{number}"
            axes.plot(range(131), [mean_at(runs, metric, percent) for percent in range(131)], color=colour, label=name)
            axes.plot(points, [published[name, metric, percent] for percent in points], "o", color=colour, markersize=3)
        axes.set_xlabel("GPUs asked for by the tasks so far (%)")
        axes.set_title(title)
        axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
