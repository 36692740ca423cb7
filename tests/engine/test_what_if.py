"""In a trial that moves pods, rules see the change; afterwards columns, counters, tables and rules are as before."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bayplan.engine.plan import Plan
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.what_if import Trial
from bayplan.framework.cycle_state import CycleState
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import DomainTable
from bayplan.state.pod_info import PodInfo
from tests.engine.clusters import random_node, random_pod
from tests.engine.plan_histories import change_something, fresh_plan, make, plan_results
from tests.engine.test_interrupted_plans import Moody, OutOfSortsError, moody_scheduler


def fingerprint(state: ClusterState, tables: list[DomainTable]) -> dict[str, object]:
    """Return everything that a trial may change."""
    for table in tables:
        table.refresh()
    counters = [*state.counters._matching.values(), *state.counters.owned_since(0)]
    return {
        "usage": state.usage.tobytes(),
        "pods": [list(pods) for pods in state.pods_on],
        "rows of pods": {key: info.row for key, info in state.pods.items()},
        "counters": [(np.asarray(counter.counts).tolist(), counter.total) for counter in counters],
        "tables": [(np.asarray(table.values).tolist(), table.positive) for table in tables],
        "small": state.small,
        "ports": {row: set(state.host_ports.used(row)) for row in state.nodes.row_of.values()},
    }


def tables_of(state: ClusterState) -> list[DomainTable]:
    """Return the tables that exist; a table lives as long as there is a reference to it."""
    return list(state.counters.tables.values())


def filled(scheduler: Scheduler, random: Random) -> Scheduler:
    for number in range(12):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    for step in range(50):
        scheduler.handle(None, random_pod(random, f"p{step}"), step)
        scheduler.schedule_one(step)
    return scheduler


def ready_plan(scheduler: Scheduler, random: Random) -> Plan | None:
    """Return a plan whose filters are up to date; None if PreFilter rejects the pod."""
    pod = random_pod(random, "probe")
    plan = Plan(scheduler.profiles["default-scheduler"], pod, scheduler.state, RuleResults(scheduler.state))
    if plan.run_pre_filter_plugins(CycleState()).status is not None:
        return None
    plan.refresh_filters()
    return plan


@pytest.mark.parametrize("seed", range(10))
def test_closing_a_trial_restores_state_and_rules(seed: int) -> None:
    random = Random(seed)
    scheduler = filled(make(), random)
    state = scheduler.state
    tried = 0
    for step in range(40):
        plan = ready_plan(scheduler, random)
        if plan is None:
            continue
        rows = sorted(state.nodes.row_of.values())
        want, tables = plan_results(fresh_plan(scheduler, plan.pod)), tables_of(state)
        before = fingerprint(state, tables)
        trial = Trial(plan)
        try:
            row = random.choice(rows)
            for info in random.sample(list(state.pods_on[row].values()), len(state.pods_on[row]) // 2):
                trial.moves.remove(info, row)
            trial.first_failure(row)
            extra: list[PodInfo] = [state.pod_info(random_pod(random, f"more-{number}")) for number in range(2)]
            trial.first_failure_with(row, extra)
            tried += 1
        finally:
            trial.close()
        state.check_invariants()
        assert fingerprint(state, tables) == before
        for part in plan.filtered.results:
            assert [part.filter_rule.filter(row) for row in rows] == [int(part.codes[row]) for row in rows]
        assert plan_results(plan) == want
        change_something(random, scheduler, step)
    assert tried > 20


@pytest.mark.parametrize("seed", range(10))
def test_rules_in_a_trial_match_a_new_plan_after_real_moves(seed: int) -> None:
    random = Random(seed)
    scheduler = filled(make(), random)
    state = scheduler.state
    compared = 0
    for step in range(40):
        plan = ready_plan(scheduler, random)
        if plan is None:
            continue
        row = random.choice(np.flatnonzero(plan.filtered.examined()).tolist() or [0])
        gone = random.sample(list(state.pods_on[row].values()), len(state.pods_on[row]) // 2)
        trial = Trial(plan)
        try:
            for info in gone:
                trial.moves.remove(info, row)
            got = trial.first_failure(row)
        finally:
            trial.close()
        with state.trial():
            for info in gone:
                state.remove_pod(info.key)
            fresh = fresh_plan(scheduler, plan.pod)
            if fresh.run_pre_filter_plugins(CycleState()).skipped != plan.pre.skipped:
                # A cached plan does not repeat PreFilter, so it keeps the decision to skip Filter.
                continue
            fresh.refresh_filters()
            want = fresh.filtered.first_failure_at(row)
        assert got == want
        compared += 1
        change_something(random, scheduler, step)
    assert compared > 10


@pytest.mark.parametrize("seed", range(5))
def test_an_exception_in_a_trial_leaves_state_and_plans_unchanged(seed: int) -> None:
    random = Random(seed)
    scheduler = filled(moody_scheduler(), random)
    state = scheduler.state
    raised = 0
    for _ in range(20):
        plan = ready_plan(scheduler, random)
        if plan is None:
            continue
        want, tables = plan_results(fresh_plan(scheduler, plan.pod)), tables_of(state)
        before = fingerprint(state, tables)
        row = random.choice(sorted(state.nodes.row_of.values()))
        Moody.fails = {"filter"}
        trial = Trial(plan)
        try:
            for info in list(state.pods_on[row].values()):
                trial.moves.remove(info, row)
            trial.first_failure_with(row, [state.pod_info(random_pod(random, "more"))])
        except OutOfSortsError:
            raised += 1
        finally:
            Moody.fails = set()
            trial.close()
        state.check_invariants()
        assert fingerprint(state, tables) == before
        assert plan_results(plan) == want
    assert raised
