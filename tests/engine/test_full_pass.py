"""The full pass, the reference for cached plans: worked examples on clusters of two nodes."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.plan import Plan, score_over
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import SKIP, Code, error
from bayplan.testing import make_pod
from tests.engine.full_pass import full_pass
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


def both(plan: Plan) -> Any:
    return plan.state.nodes.alive.copy()


def test_scores_are_weighted_and_summed_on_feasible_nodes() -> None:
    plan, _ = make({"scores": {"n1": 10, "n2": 30}}, {"scores": {"n1": 5, "n2": 1}})
    table = full_pass(plan, both(plan))
    assert {name: scores.raw.tolist() for name, scores in table.scores.items()} == {"A": [10, 30], "B": [5, 1]}
    assert [scores.weight for scores in table.scores.values()] == [1, 1]
    assert table.total.tolist() == [15, 31]
    feasible = both(plan)
    feasible[1] = False
    table = full_pass(plan, feasible)
    assert table.total.tolist() == [15, -1]
    assert table.scores["A"].scale == (10,)


def test_skipped_score_plugins_are_not_counted() -> None:
    plan, _ = make({"pre_score": SKIP, "scores": {"n1": 10}}, {"scores": {"n2": 1}})
    table = full_pass(plan, both(plan))
    assert list(table.scores) == ["B"]
    assert table.total.tolist() == [0, 1]


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
    table = full_pass(plan, feasible)
    assert table.total.tolist() == [-1, 7]


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
    assert full_pass(plan, feasible).total.tolist() == [1, -1]
