"""Scoring without cached results, with `score_over` and with the tests' full pass: worked examples on two nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.plan import Plan, score_over
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import SKIP, Code, error
from bayplan.state.arrays import Bools
from bayplan.testing import make_pod
from tests.engine.full_pass import FullPass, full_pass
from tests.engine.plan_histories import cached_plan, history, plan_results
from tests.engine.recorders import Log, make_recorder, make_scheduler


def make(*says: dict[str, Any], nodes: tuple[str, ...] = ("n1", "n2")) -> tuple[Plan, Log]:
    """Return a plan of the recorders A, B and C whose PreFilter plugins have run."""
    log: Log = []
    plugins = [make_recorder(name, log, answers) for name, answers in zip("ABC", says, strict=False)]
    scheduler = make_scheduler(*plugins, nodes=nodes)
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], make_pod("p").obj())
    plan.run_pre_filter_plugins(CycleState())
    plan.refresh_filters()
    return plan, log


def both(plan: Plan) -> Bools:
    return plan.state.nodes.alive.copy()


def full_pass_like_score_over(plan: Plan, feasible: Bools) -> FullPass:
    """Return a full pass, and check that `score_over` has the same scores."""
    want, found, count = full_pass(plan, feasible), score_over(plan, feasible), plan.state.nodes.count
    totals, used = found.totals, feasible[:count]
    assert found.failure is None
    assert [result.name for result in totals.results] == list(want.scores)
    for number, (name, scores) in enumerate(want.scores.items()):
        assert (totals.weights[number], totals.scales[number]) == (scores.weight, scores.scale), name
        assert totals.results[number].values[:count][used].tolist() == scores.raw[used].tolist(), name
        assert totals.normalized(number)[:count][used].tolist() == scores.normalized[used].tolist(), name
    assert totals.total[:count].tolist() == want.total.tolist()
    return want


@pytest.mark.parametrize("seed", range(4))
def test_any_feasible_nodes_are_scored_as_in_a_full_pass(seed: int) -> None:
    random, compared = Random(seed), 0
    for scheduler, pod in history(seed + 200, 30):
        plan = cached_plan(scheduler, pod)
        if "totals" not in plan_results(plan):
            continue
        rows = np.flatnonzero(plan.filtered.feasible).tolist()
        chosen = np.zeros_like(plan.filtered.feasible)
        chosen[random.sample(rows, random.randint(1, len(rows)))] = True
        full_pass_like_score_over(plan, chosen)
        compared += 1
    assert compared > 5


def test_scores_are_weighted_and_summed_on_feasible_nodes() -> None:
    plan, _ = make({"scores": {"n1": 10, "n2": 30}}, {"scores": {"n1": 5, "n2": 1}})
    found = full_pass_like_score_over(plan, both(plan))
    assert {name: scores.raw.tolist() for name, scores in found.scores.items()} == {"A": [10, 30], "B": [5, 1]}
    assert [scores.weight for scores in found.scores.values()] == [1, 1]
    assert found.total.tolist() == [15, 31]
    feasible = both(plan)
    feasible[1] = False
    found = full_pass_like_score_over(plan, feasible)
    assert found.total.tolist() == [15, -1]
    assert found.scores["A"].scale == (10,)


def test_skipped_score_plugins_are_reported_and_not_counted() -> None:
    plan, _ = make({"pre_score": SKIP, "scores": {"n1": 10}}, {"scores": {"n2": 1}})
    found = full_pass_like_score_over(plan, both(plan))
    assert list(found.scores) == ["B"]
    assert found.total.tolist() == [0, 1]
    prepared = score_over(plan, both(plan)).pre_scores.recorded_results()
    assert prepared == (("A", Code.SKIP), ("B", Code.SUCCESS))


@pytest.mark.parametrize(
    ("says", "want"),
    [
        pytest.param({"pre_score": error("boom")}, 'running PreScore plugin "A": boom', id="PreScore fails"),
        pytest.param(
            {"scores": {"n1": 101, "n2": -1}},
            'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score 101, '
            "it should in the range of [0, 100] after normalizing",
            id="the first node by name with an invalid score is reported",
        ),
    ],
)
def test_plugin_errors_and_invalid_scores_end_scoring(says: dict[str, Any], want: str) -> None:
    plan, _ = make(says, {"scores": {"n1": 200}})
    failure = score_over(plan, both(plan)).failure
    assert failure is not None
    assert (failure.code, failure.message, failure.plugin) == (Code.ERROR, want, "A")


def test_an_invalid_score_on_an_infeasible_node_is_ignored() -> None:
    plan, _ = make({"scores": {"n1": 101, "n2": 7}})
    feasible = both(plan)
    feasible[0] = False
    assert full_pass_like_score_over(plan, feasible).total.tolist() == [-1, 7]


def test_first_failures_returns_the_first_failing_filter() -> None:
    plan, _ = make({"refuses": ("n2",)}, {"refuses": ("n1", "n2")}, nodes=("n1", "n2", "n3"))
    assert plan.filtered.first_failures()[:3].tolist() == [1 << 16 | 1, 1, PASSES]


def test_a_filter_skipped_by_pre_filter_does_not_run() -> None:
    plan, _ = make({"pre_filter": SKIP, "refuses": ("n1",)}, {"refuses": ("n2",)})
    assert plan.filtered.first_failures()[:2].tolist() == [PASSES, 1]
    assert [part.name for part in plan.filtered.results] == ["B"]


def test_feasible_nodes_total_one_without_score_plugins() -> None:
    scheduler = make_scheduler(in_tree=("NodeName",), nodes=("n1", "n2"))
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], make_pod("p").obj())
    plan.run_pre_filter_plugins(CycleState())
    plan.refresh_filters()
    feasible = both(plan)
    feasible[1] = False
    assert full_pass_like_score_over(plan, feasible).total.tolist() == [1, -1]
