"""The measures of a sweep in each trial, and the objectives that it can minimize or maximize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bayplan.analysis.run_facts import RunFacts
from bayplan.analysis.waits import percentile
from bayplan.base.durations import SECOND_NS
from bayplan.sim.result import PodFate, SimulationResult
from bayplan.sim.scaling import lifetime_price

HOUR_NS = 3600 * SECOND_NS


class Objective(NamedTuple):
    """An objective.

    Attributes:
        figure: the figure that it is read from.
        maximise: whether higher is better.
        text: the description.
        unit: the unit of printed scores; ``%`` if the figure is a share of 1.
        grows_with_time: whether pods that are left at the end of a run count up to `until`.
    """

    figure: str
    maximise: bool
    text: str
    unit: str = ""
    grows_with_time: bool = False

    def format_score(self, score: float) -> str:
        """Return a score with its unit: ``12.5 s``, ``12,960 s``, ``61.3 %``."""
        shown = score * 100 if self.unit == "%" else score
        text = f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.4g}"
        return f"{text} {self.unit}".rstrip()


OBJECTIVES: Mapping[str, Objective] = {
    "waiting_time": Objective(
        "mean_wait_s", False, "mean waiting time of pods; pending pods wait until the end of the run", "s", True
    ),
    "utilisation": Objective(
        "utilisation", True, "mean share of the resources that pods requested over time", "%", True
    ),
    "fragmentation": Objective(
        "fragmentation", False, "share of idle resources that typical pods can't use at the end", "%"
    ),
    "cost": Objective("cost", False, "hours of all nodes, times their price if they have one", "", True),
    "evictions": Objective("evictions", False, "victims of preemption", "pods"),
    "moves": Objective("moves", False, "pods that were deleted from their node before they finished", "pods"),
}

FIGURES = (
    "mean_wait_s",
    "p95_wait_s",
    "utilisation",
    "fragmentation",
    "cost",
    "evictions",
    "moves",
    "descheduled",
    "nodes_added",
    "nodes_removed",
    "pods",
    "bound",
    "waiting",
    "decisions",
)
"""The figures of each trial, in the order of their columns in the table of trials."""


def figures_of(result: SimulationResult, facts: RunFacts, until_ns: int | None = None) -> dict[str, float]:
    """Return the figures of a finished run, by name.

    Args:
        result: the run.
        facts: its facts.
        until_ns: the virtual time to simulate; None for no limit.
    """
    end_ns = _end_ns(result, until_ns)
    waits = sorted(
        (pod.bound_ns if pod.bound_ns is not None else pod.ended_ns or end_ns) - pod.arrived_ns
        for pod in result.pods
        if not pod.imported
    )
    rest = (end_ns - result.end_ns) / max(end_ns - result.start_ns, 1)  # The share of time after the run.
    used = [
        row.mean_share + rest * (row.share - row.mean_share)
        for row in facts.utilisation
        if row.zone is None and row.peak_requested and row.resource != "pods"
    ]
    lost = [row.share for row in facts.fragmentation.resources]
    return {
        "mean_wait_s": float(np.mean(waits)) / SECOND_NS if waits else 0.0,
        "p95_wait_s": percentile(waits, 95) / SECOND_NS if waits else 0.0,
        "utilisation": float(np.mean(used)) if used else 0.0,
        "fragmentation": float(np.mean(lost)) if lost else 0.0,
        "cost": _cost(result, end_ns),
        "evictions": float(facts.pods.evicted),
        "moves": float(sum(pod.fate is PodFate.DELETED and pod.bound_ns is not None for pod in result.pods)),
        "descheduled": float(facts.descheduled),
        "nodes_added": float(sum(node.added_ns > result.start_ns for node in result.nodes)),
        "nodes_removed": float(facts.nodes.removed),
        "pods": float(facts.pods.total),
        "bound": float(facts.pods.bound),
        "waiting": float(facts.pods.waiting),
        "decisions": float(facts.decisions.total),
    }


def _end_ns(result: SimulationResult, until_ns: int | None) -> int:
    """Return the time up to which figures count.

    A run ends when nothing can happen any more, even before `until_ns`. If pods other than those of DaemonSets are left,
    they wait or run on until that time: otherwise, the run in which the fewest pods get a node would have the shortest
    waiting time, and the one that ends first the lowest cost.
    """
    left = (PodFate.PLACED, PodFate.PENDING, PodFate.GATED, PodFate.UNATTENDED)
    if until_ns is None or not any(
        pod.fate in left and not pod.workload.startswith("DaemonSet ") for pod in result.pods
    ):
        return result.end_ns
    return max(result.end_ns, result.start_ns + until_ns)


def _cost(result: SimulationResult, end_ns: int) -> float:
    total, costs = 0.0, () if result.scaling is None else result.scaling.costs
    for node in result.nodes:
        price = lifetime_price(node, costs)
        gone_ns = node.removed_ns if node.removed_ns is not None else end_ns
        total += (1.0 if price is None else price) * (gone_ns - node.added_ns) / HOUR_NS
    return total
