"""Random histories of a cluster, with the results of plans after each step.

As an uncompiled program, it prints a hash.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from random import Random

import numpy as np
from msgspec.structs import replace

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.plan import Plan
from bayplan.engine.records import RecordLevel
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import Sample
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.row_log import RowLog
from tests.engine.clusters import random_node, random_pod

NO_LIMIT = 1 << 20


def make(level: RecordLevel = RecordLevel.OFF, *, log_limit: int = NO_LIMIT) -> Scheduler:
    """Return an empty scheduler whose logs of changed rows hold at most `log_limit` entries."""
    scheduler = assemble_scheduler(
        default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )
    state = scheduler.state
    state.change_log, state.node_log = RowLog(limit=log_limit), RowLog(limit=log_limit)
    return scheduler


def change_something(random: Random, scheduler: Scheduler, step: int) -> None:
    """Change the cluster at random: delete a pod, or add, change or delete a node."""
    state = scheduler.state
    kind = random.random()
    if kind < 0.3 and state.pods:
        info = state.pods[random.choice(sorted(state.pods))]
        bound = replace(info.pod, spec=replace(info.pod.spec, node_name=state.nodes.names[info.row] or ""))
        scheduler.handle(bound, None, step)
    elif kind < 0.4:
        scheduler.handle(None, random_node(random, f"extra-{step}"), step)
    elif kind < 0.5 and len(state.nodes) > 2:
        name = random.choice(sorted(state.nodes.row_of))
        scheduler.handle(state.nodes.nodes[state.nodes.row_of[name]], None, step)
    elif kind < 0.6:
        name = random.choice(sorted(state.nodes.row_of))
        scheduler.handle(state.nodes.nodes[state.nodes.row_of[name]], random_node(random, name), step)


def history(seed: int, steps: int, *, log_limit: int = NO_LIMIT) -> Iterator[tuple[Scheduler, Pod]]:
    """Schedule random pods on a changing random cluster; yield the scheduler and another pod after each step."""
    random = Random(seed)
    scheduler = make(log_limit=log_limit)
    for number in range(random.choice((3, 20, 90, 300))):
        scheduler.handle(None, random_node(random, f"n{number:03}"), 0)
    for step in range(steps):
        scheduler.handle(None, random_pod(random, f"p{step}"), step)
        scheduler.schedule_one(step)
        change_something(random, scheduler, step)
        yield scheduler, random_pod(random, "probe")


def cached_plan(scheduler: Scheduler, pod: Pod) -> Plan:
    """Return the plan of a pod from the scheduler's cache, with its results from earlier cycles."""
    return scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)


def fresh_plan(scheduler: Scheduler, pod: Pod) -> Plan:
    """Return a new plan of a pod, without results of earlier cycles or of other plans."""
    return Plan(scheduler.profiles["default-scheduler"], pod, scheduler.state, RuleResults(scheduler.state))


def plan_results(plan: Plan) -> dict[str, object]:
    """Bring a plan up to date, and return all its results as plain values."""
    pre = plan.run_pre_filter_plugins(CycleState())
    if pre.status is not None:
        return {"rejected": (pre.status.code.text, pre.status.message)}
    plan.refresh_filters()
    state = plan.state
    alive = state.nodes.alive
    found: dict[str, object] = {
        "feasible": np.flatnonzero(plan.filtered.feasible).tolist(),
        "count": plan.filtered.count,
        "first failures": plan.filtered.first_failures()[alive].tolist(),
        "single rows": [plan.filtered.first_failure_at(row) for row in np.flatnonzero(alive).tolist()],
        "failure": plan.failure and plan.failure.message,
    }
    if plan.filtered.count > 1 and plan.failure is None:
        plan.refresh_scores()
        highest, rows = plan.totals.best()
        found["totals"] = plan.totals.total[: state.nodes.count].tolist()
        found["best"] = (highest, list(rows))
        found["nth best"] = [rows[number] for number in range(len(rows))]
        sample = np.flatnonzero(plan.filtered.feasible)[::2].astype(np.intp)
        # A sample is scored with its own scale, and then all totals are summed up again. Most refreshes shall update
        # only changed rows.
        if not plan.pre_scores.reads_feasible and len(state.pods) % 3 == 0:
            chosen = Sample(sample)
            plan.refresh_scores(chosen)
            total, best = plan.totals.best(chosen)
            found["sample"] = (total, list(best))
    return found


def digest(seed: int, steps: int) -> str:
    """Return a hash of the results of the cached plans in a history."""
    found = hashlib.sha256()
    for scheduler, pod in history(seed, steps):
        # In uncompiled modules some results are integers of NumPy.
        found.update(json.dumps(plan_results(cached_plan(scheduler, pod)), sort_keys=True, default=int).encode())
    return found.hexdigest()


if __name__ == "__main__":
    for number in sys.argv[2:]:
        print(digest(int(number), int(sys.argv[1])))
