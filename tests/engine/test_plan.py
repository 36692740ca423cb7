"""A plan that is refreshed row by row equals a new plan, whatever happens to the cluster in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bayplan.engine.plan import Plan
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.pod import Pod
from bayplan.state.row_log import RowLog
from bayplan.testing.builders import make_node, make_pod
from tests.engine.clusters import random_node, random_pod
from tests.engine.full_pass import full_pass
from tests.engine.plan_histories import (
    cached_plan,
    change_something,
    digest,
    fresh_plan,
    history,
    make,
    plan_results,
)

BLOCK = 256
"""Rows in a block of totals; see `bayplan.engine.plan`."""

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "log_limit",
    [
        pytest.param(1 << 20, id="logs reach every reader"),
        pytest.param(64, id="logs wrap sometimes"),
        pytest.param(2, id="logs wrap with every third entry"),
    ],
)
@pytest.mark.parametrize("seed", range(8))
def test_a_refreshed_plan_equals_a_new_plan_after_every_change(seed: int, log_limit: int) -> None:
    for scheduler, pod in history(seed, 60, log_limit=log_limit):
        want = plan_results(fresh_plan(scheduler, pod))
        assert plan_results(cached_plan(scheduler, pod)) == want
        scheduler.state.check_invariants()


@pytest.mark.parametrize("seed", range(4))
def test_cached_totals_equal_a_full_pass(seed: int) -> None:
    for scheduler, pod in history(seed + 100, 40):
        plan = cached_plan(scheduler, pod)
        said = plan_results(plan)
        if "totals" in said:
            assert said["totals"] == full_pass(plan, plan.filtered.feasible).total.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_plans_with_shared_results_equal_new_plans_in_any_order(seed: int) -> None:
    random = Random(seed)
    scheduler = make()
    for number in range(30):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    results = RuleResults(scheduler.state)
    pods = [random_pod(random, f"shared-{number}") for number in range(6)]
    profile = scheduler.profiles["default-scheduler"]
    plans = [Plan(profile, pod, scheduler.state, results) for pod in (*pods, *pods)]
    for step in range(60):
        scheduler.handle(None, random_pod(random, f"p{step}"), step)
        scheduler.schedule_one(step)
        change_something(random, scheduler, step)
        plan = random.choice(plans)
        assert plan_results(plan) == plan_results(fresh_plan(scheduler, plan.pod))


def test_the_best_rows_are_found_across_blocks() -> None:
    scheduler = make()
    for number in range(3 * BLOCK + 7):
        scheduler.handle(None, make_node(f"n{number:04}").capacity(cpu="4", memory="8Gi", pods="110").obj(), 0)
    pod = make_pod("probe").req(cpu="100m").obj()
    plan = cached_plan(scheduler, pod)
    assert len(plan_results(plan)["nth best"]) == 3 * BLOCK + 7  # type: ignore[arg-type]
    random, state = Random(1), scheduler.state
    for number in range(2 * BLOCK):
        state.place(state.pod_info(make_pod(f"p{number}").req(cpu="1").obj()), random.randrange(3 * BLOCK + 7))
        if number % 40 == 0:
            assert plan_results(plan) == plan_results(fresh_plan(scheduler, pod))


def test_reused_rows_are_evaluated_again() -> None:
    scheduler = make()
    for name in ("a", "b", "c"):
        scheduler.handle(None, make_node(name).capacity(cpu="4", memory="8Gi").obj(), 0)
    pod = make_pod("probe").req(cpu="2").obj()
    plan = cached_plan(scheduler, pod)
    assert plan_results(plan)["count"] == 3
    node = scheduler.state.nodes.nodes[scheduler.state.nodes.row_of["b"]]
    scheduler.handle(node, None, 1)
    assert plan_results(plan)["count"] == 2
    scheduler.handle(None, make_node("d").capacity(cpu="1", memory="8Gi").obj(), 2)
    assert scheduler.state.nodes.row_of["d"] == 1
    assert plan_results(plan)["count"] == 2


def test_a_plan_stays_correct_when_columns_grow_between_cycles() -> None:
    scheduler = make()
    scheduler.handle(None, make_node("first").capacity(cpu="4", memory="8Gi").obj(), 0)
    pod = make_pod("probe").req(cpu="2").obj()
    plan = cached_plan(scheduler, pod)
    assert plan_results(plan)["count"] == 1
    before = scheduler.state.nodes.capacity
    for number in range(before + 5):
        scheduler.handle(None, make_node(f"n{number}").capacity(cpu="4", memory="8Gi").obj(), 1)
    assert scheduler.state.nodes.capacity > before
    assert plan_results(plan) == plan_results(fresh_plan(scheduler, pod))
    assert plan_results(plan)["count"] == before + 6


def test_compiled_and_uncompiled_plans_give_equal_results() -> None:
    seeds, steps = (0, 1, 2), 25
    command = [sys.executable, "-m", "tests.engine.plan_histories", str(steps), *map(str, seeds)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "BAYPLAN_UNCOMPILED": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == [digest(seed, steps) for seed in seeds]


# --- faults that the histories must find --------------------------------------------------------------------------------


class Forgetful(RowLog):
    """Forgets every seventh entry."""

    def append(self, row: int) -> None:
        self.count = getattr(self, "count", 0) + 1
        if self.count % 7:
            RowLog.append(self, row)


class NeverTold(RowLog):
    """Records no entries."""

    def append(self, row: int) -> None:
        return


def _lose_entries(scheduler: Scheduler, name: str, kind: type[RowLog]) -> None:
    setattr(scheduler.state, name, kind())


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        pytest.param("change_log", Forgetful, id="some placements are not noted"),
        pytest.param("change_log", NeverTold, id="no placement is noted"),
        pytest.param("node_log", Forgetful, id="some changes of nodes are not noted"),
    ],
)
def test_a_lossy_log_is_detected(log: str, kind: type[RowLog]) -> None:
    assert any(_is_wrong(seed, lambda scheduler: _lose_entries(scheduler, log, kind)) for seed in range(5))


def test_no_difference_is_found_without_a_fault() -> None:
    assert not any(_is_wrong(seed, lambda scheduler: None) for seed in range(5))


def _is_wrong(seed: int, spoil: Any) -> bool:
    """Return whether some plan differs from a new one in a history with a fault."""
    random = Random(seed)
    scheduler = make()
    spoil(scheduler)
    for number in range(12):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    for step in range(60):
        scheduler.handle(None, random_pod(random, f"p{step}"), step)
        scheduler.schedule_one(step)
        change_something(random, scheduler, step)
        pod = random_pod(random, "probe")
        if plan_results(cached_plan(scheduler, pod)) != plan_results(fresh_plan(scheduler, pod)):
            return True
    return False


# --- records ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_full_records_reproduce_the_results_of_their_cycle(seed: int) -> None:
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
    """Return the result of a full pass for a pod now: the total of every node."""
    plan = fresh_plan(scheduler, pod)
    state = scheduler.state
    names = {row: name for name, row in state.nodes.row_of.items()}
    pre = plan.run_pre_filter_plugins(CycleState())
    if pre.status is None:
        plan.refresh_filters()
    if pre.status is not None or not plan.filtered.feasible.any():
        return f"default/{pod.metadata.name}", dict.fromkeys(names.values(), -1)
    total = full_pass(plan, plan.filtered.feasible).total
    return f"default/{pod.metadata.name}", {name: int(total[row]) for row, name in names.items()}
