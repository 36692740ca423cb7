"""Plans that come once are asked about states, and decide as a full pass over rows does."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bayplan.base.errors import InvariantError
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.full_pass import filter_over, score_over
from bayplan.engine.plan import Plan
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.state_pass import StatePass
from bayplan.framework.configuration.loading import load_configuration_mapping
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state import usage_states
from bayplan.testing.builders import make_node, make_pod

NODES = 40


@pytest.fixture(autouse=True)
def _few_nodes_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_states, "FEWEST_ROWS", 0)
    monkeypatch.setattr(usage_states, "SHARE", 0)
    monkeypatch.setattr(usage_states, "INQUIRIES_A_BEGINNING", 1)


def make(level: RecordLevel = RecordLevel.SUMMARY, *, tainted: int = -1) -> Scheduler:
    configuration = load_configuration_mapping(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
        }
    )
    scheduler = assemble_scheduler(
        configuration, in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )
    for number in range(NODES):
        node = make_node(f"n{number:02}").capacity(cpu="248"[number % 3], memory="16Gi", pods="4")
        scheduler.handle(None, (node.taint("key", effect="NoSchedule") if number == tainted else node).obj(), 0)
    return scheduler


def another(random: Random, number: int) -> Pod:
    """Return a pod that hardly any other requests as much as."""
    return make_pod(f"p{number}").req(cpu=f"{100 + random.randrange(2_000)}m", memory=f"{200 + number}Mi").obj()


def plan_of(scheduler: Scheduler, pod: Pod) -> Plan:
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    assert plan.run_pre_filter_plugins(CycleState()).status is None
    return plan


def check(plan: Plan) -> None:
    """Compare a plan with a full pass."""
    state = plan.state
    first, _ = filter_over(plan, np.arange(state.nodes.count, dtype=np.intp))
    assert np.array_equal(plan.feasible[: state.nodes.count], first < 0)
    assert plan.feasible_count == int((first < 0).sum())
    if plan.feasible_count > 1:
        plan.refresh_scores()
        total = score_over(plan, plan.feasible).total
        highest, rows = plan.best()
        assert (highest, list(rows)) == (total.max(), np.flatnonzero(total == total.max()).tolist())
        assert np.array_equal(plan.total[: state.nodes.count], total)


@pytest.mark.parametrize("tainted", [-1, 7], ids=["every node lets all pods in", "one node lets none in"])
@pytest.mark.parametrize("seed", range(5))
def test_new_plans_agree_with_a_full_pass(seed: int, tainted: int) -> None:
    random = Random(seed)
    scheduler = make(tainted=tainted)
    by_states = 0
    for number in range(140):
        pod = another(random, number)
        plan = plan_of(scheduler, pod)
        plan.refresh_filters()
        check(plan)
        by_states += plan._totals_of_states is not None
        if random.random() < 0.3:
            check_again(scheduler, plan)
        scheduler.handle(None, another(random, number), number)
        assert scheduler.schedule_one(number) is not None
        if random.random() < 0.3:
            check_again(scheduler, plan)
    # Where one node lets no pod in, rows are told apart by more than states.
    assert (by_states > 60) if tainted < 0 else not by_states


def check_again(scheduler: Scheduler, plan: Plan) -> None:
    """Ask a plan again, which then keeps its totals row by row."""
    plan.run_pre_filter_plugins(CycleState())
    plan.refresh_filters()
    check(plan)
    assert plan._totals_of_states is None


@pytest.mark.parametrize("level", [RecordLevel.SUMMARY, RecordLevel.FULL], ids=["summary", "full"])
def test_decisions_and_records_are_those_of_rows(level: RecordLevel, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[object, ...]] = []
    for fewest in (0, 10_000):
        monkeypatch.setattr(usage_states, "FEWEST_ROWS", fewest)
        random, scheduler = Random(3), make(level)
        for number in range(120):
            scheduler.handle(None, another(random, number), number)
            scheduler.schedule_one(number)
        records = scheduler.records
        told.append(([str(record._replace(frame=-1)) for record in records], records.digest()))
        if level is RecordLevel.FULL:
            decisions = [records.decision(number) for number in range(len(records))]
            told[-1] += ([it.total.tolist() for it in decisions if it], [it.codes.tolist() for it in decisions if it])
    assert told[0] == told[1]


def test_totals_of_states_that_have_changed_are_refused() -> None:
    random, scheduler = Random(1), make()
    for number in range(3):
        scheduler.handle(None, another(random, number), 0)
        scheduler.schedule_one(0)
    plan = plan_of(scheduler, another(random, 9))
    plan.refresh_filters()
    plan.refresh_scores()
    scheduler.handle(None, make_pod("bound").node("n03").obj(), 0)
    with pytest.raises(InvariantError, match="no longer known"):
        _ = plan.total


@pytest.mark.parametrize("change", ["a pod comes", "states are numbered anew"])
def test_a_pass_over_states_holds_until_something_changes(change: str) -> None:
    scheduler = make()
    states = StatePass.begin(scheduler.state)
    assert states is not None
    assert states.holds()
    if change == "a pod comes":
        scheduler.handle(None, make_pod("bound").node("n03").obj(), 0)
    else:
        # Somebody asks for a resource that nobody has heard of: the matrices get another row, and logs tell nothing.
        scheduler.state.register_resource("example.com/new")
        assert StatePass.begin(scheduler.state) is not None
    assert not states.holds()
