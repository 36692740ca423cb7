"""What a plan keeps and refreshes row by row is what a full pass gives, whatever happens to the cluster in between."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.full_pass import filter_over, score_over
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from tests.engine.clusters import random_node, random_pod


def make(level: RecordLevel) -> Scheduler:
    return assemble_scheduler(
        default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )


def change_something(random: Random, scheduler: Scheduler, step: int) -> None:
    """Do to the cluster what clusters undergo: pods leave, nodes come, change and go."""
    state = scheduler.state
    kind = random.random()
    if kind < 0.3 and state.pods:
        key = random.choice(sorted(state.pods))
        pod = state.pods[key].pod
        bound = replace(pod, spec=replace(pod.spec, node_name=state.nodes.names[state.pods[key].row] or ""))
        scheduler.handle(bound, None, step)
    elif kind < 0.4:
        scheduler.handle(None, random_node(random, f"extra-{step}"), step)
    elif kind < 0.5 and len(state.nodes) > 2:
        name = random.choice(sorted(state.nodes.row_of))
        scheduler.handle(state.nodes.nodes[state.nodes.row_of[name]], None, step)
    elif kind < 0.6:
        name = random.choice(sorted(state.nodes.row_of))
        old = state.nodes.nodes[state.nodes.row_of[name]]
        scheduler.handle(old, random_node(random, name), step)


def check_against_full_pass(scheduler: Scheduler, pod: Pod) -> None:
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    pre = plan.run_pre_filter_plugins(CycleState())
    if pre.status is not None:
        return
    plan.refresh_filters()
    state = scheduler.state
    alive = np.flatnonzero(state.nodes.alive)
    first, _ = filter_over(plan, alive)
    fits = np.zeros(state.nodes.capacity, dtype=np.bool_)
    fits[alive[first < 0]] = True
    fits &= plan.examined()
    assert np.array_equal(plan.feasible, fits)
    assert plan.feasible_count == int(fits.sum())
    if plan.feasible_count > 1 and plan.failure is None:
        plan.refresh_scores()
        assert np.array_equal(plan.total[: state.nodes.count], score_over(plan, plan.feasible).total)


@pytest.mark.parametrize("seed", range(12))
def test_kept_results_equal_a_full_pass_after_every_change(seed: int) -> None:
    random = Random(seed)
    scheduler = make(RecordLevel.OFF)
    for number in range(random.choice((3, 20, 90))):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    for step in range(120):
        pod = random_pod(random, f"p{step}")
        scheduler.handle(None, pod, step)
        scheduler.schedule_one(step)
        change_something(random, scheduler, step)
        check_against_full_pass(scheduler, random_pod(random, "probe"))
        scheduler.state.check_invariants()


@pytest.mark.parametrize("seed", range(6))
def test_full_records_rebuild_what_the_plugins_said_at_the_time(seed: int) -> None:
    random = Random(seed)
    scheduler = make(RecordLevel.FULL)
    for number in range(random.choice((4, 40))):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    wanted: list[tuple[str, dict[str, int]] | None] = []
    for step in range(80):
        pod = random_pod(random, f"p{step}")
        probe = make_probe(scheduler, pod)
        scheduler.handle(None, pod, step)
        while scheduler.schedule_one(step) is not None:
            wanted.append(probe if len(wanted) == len(scheduler.records) - 1 else None)
        while len(wanted) < len(scheduler.records):
            wanted.append(None)
        change_something(random, scheduler, step)
    compared = 0
    for number, expected in enumerate(wanted):
        record = scheduler.records[number]
        decision = scheduler.records.decision(number)
        assert decision.feasible.sum() == record.feasible_nodes
        if record.outcome is Outcome.SCHEDULED:
            assert record.node in decision.ties
            assert len(decision.ties) == record.ties
        if expected is not None and record.pod == expected[0]:
            compared += 1
            _, totals = expected
            assert {name: int(total) for name, total in zip(decision.names, decision.total, strict=True)} == totals or (
                record.feasible_nodes < 2
            )
    assert compared > 20


def make_probe(scheduler: Scheduler, pod: Pod) -> tuple[str, dict[str, int]]:
    """Return what a full pass says about a pod now: the total of every node."""
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    state = scheduler.state
    names = {row: name for name, row in state.nodes.row_of.items()}
    pre = plan.run_pre_filter_plugins(CycleState())
    feasible = np.zeros(state.nodes.capacity, dtype=np.bool_)
    if pre.status is None:
        alive = np.flatnonzero(state.nodes.alive)
        plan.refresh_filters()
        first, _ = filter_over(plan, alive)
        feasible[alive[first < 0]] = True
        feasible &= plan.examined()
    if not feasible.any():
        return f"default/{pod.metadata.name}", dict.fromkeys(names.values(), -1)
    total = score_over(plan, feasible).total
    return f"default/{pod.metadata.name}", {name: int(total[row]) for row, name in names.items()}
