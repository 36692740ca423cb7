"""What a plan keeps and refreshes row by row is what a full pass gives, whatever happens to the cluster in between."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine import answers_by_state, convoy, part, plan_totals, row_states
from bayplan.engine import plan_filters as plan_module
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.full_pass import filter_over, score_over
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state import usage_states
from bayplan.testing.builders import make_node, make_pod
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
    if state.usage_states.inquire():
        state.usage_states.check_invariants()
    if plan.feasible_count > 1 and plan.failure is None:
        plan.refresh_scores()
        highest, rows = plan.best()
        wanted = score_over(plan, plan.feasible).total
        assert (highest, list(rows)) == (wanted.max(), np.flatnonzero(wanted == wanted.max()).tolist())
        assert np.array_equal(plan.total[: state.nodes.count], wanted)


FORMS = {
    "the usual form": None,
    "always on arrays": 0,
    "on arrays from three rows on": 2,
    "few states are known": "states",
    "whole passes are over states": "passes",
}


@pytest.fixture(params=list(FORMS.values()), ids=list(FORMS))
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate more rows than usual on arrays, and sooner for many plans at once; or number states anew again and again."""
    if request.param == "states":
        monkeypatch.setattr(plan_module, "ROWS_FOR_A_CHANGE", 3)
        monkeypatch.setattr(answers_by_state, "FEW_STATES", 1)
        monkeypatch.setattr(row_states, "MOST_STATES", 60)
        monkeypatch.setattr(row_states, "TRIAL", 30)
        monkeypatch.setattr(row_states, "REST", 20)
    elif request.param == "passes":
        monkeypatch.setattr(usage_states, "FEWEST_ROWS", 0)
        monkeypatch.setattr(usage_states, "SHARE", 0)
        monkeypatch.setattr(usage_states, "INQUIRIES_A_BEGINNING", 1)
    elif request.param is not None:
        monkeypatch.setattr(part, "FEW_ROWS", request.param)
        monkeypatch.setattr(plan_totals, "FEW_ROWS", request.param)
        monkeypatch.setattr(convoy, "MOST_BEHIND", request.param // 2)


@pytest.mark.usefixtures("form")
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


def plain_pod(random: Random, name: str) -> Pod:
    """Return a pod that asks for resources alone: such plans go together. Some share their requests, not their labels."""
    number = random.randrange(10)
    builder = make_pod(name).label(app=str(number % 4)).req(cpu=f"{100 + 150 * (number % 5)}m", memory="300Mi")
    return builder.obj()


def plain_node(random: Random, name: str) -> Node:
    """Return a node of one of a few kinds, on which nothing but resources and perhaps images matters."""
    builder = make_node(name).capacity(cpu=random.choice("248"), memory="16Gi", pods=random.choice(("5", "110")))
    return builder.image("registry.example/app:v1", 900 << 20).obj() if random.random() < 0.2 else builder.obj()


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("level", list(RecordLevel), ids=lambda level: level.name.lower())
@pytest.mark.parametrize("seed", range(3))
def test_answers_by_state_equal_a_full_pass_while_pods_come_and_go(seed: int, level: RecordLevel) -> None:
    random = Random(seed)
    scheduler = make(level)
    state = scheduler.state
    for number in range(random.choice((12, 40))):
        scheduler.handle(None, plain_node(random, f"n{number:02}"), 0)
    served = 0
    for step in range(200):
        scheduler.handle(None, plain_pod(random, f"p{step}"), step)
        scheduler.schedule_one(step)
        if random.random() < 0.7 and state.pods:
            leaving = state.pods[random.choice(sorted(state.pods))]
            name = state.nodes.names[leaving.row] or ""
            scheduler.handle(replace(leaving.pod, spec=replace(leaving.pod.spec, node_name=name)), None, step)
        if random.random() < 0.02:
            scheduler.handle(None, plain_node(random, f"n{random.randrange(50):02}"), step)
        probe = plain_pod(random, "probe")
        if random.random() < 0.3:
            check_against_full_pass(scheduler, probe)
        else:
            served += check_sample_against_full_pass(scheduler, probe, random)
    # Where every score is recorded, all are brought up to date.
    assert bool(served) == (level is not RecordLevel.FULL)


def check_sample_against_full_pass(scheduler: Scheduler, pod: Pod, random: Random) -> bool:
    """Compare what some feasible rows are worth; return whether that was known without bringing all totals up to date."""
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    assert plan.run_pre_filter_plugins(CycleState()).status is None
    plan.refresh_filters()
    rows = np.flatnonzero(plan.feasible)
    sample = np.array([row for row in rows.tolist() if random.random() < 0.8], dtype=np.intp)
    worths = plan.worths_of(sample) if len(rows) > 1 and len(sample) else None
    if worths is None:
        return False
    assert np.array_equal(worths, score_over(plan, plan.feasible).total[sample])
    return True


def pod_with_other_requests(random: Random, name: str) -> Pod:
    """Return a pod of one of a few kinds, mostly with requests that no pod had before."""
    number = random.randrange(3)
    amounts = {"cpu": f"{random.randrange(2000)}m", "memory": f"{random.randrange(900)}Mi"}
    for key in list(amounts):
        if random.random() < 0.1:
            del amounts[key]
    if random.random() < 0.1:
        amounts["example.com/gpu"] = str(random.randrange(3))
    builder = make_pod(name).label(app=str(number)).req(amounts)
    return builder.node_selector(disk="ssd").obj() if number == 2 else builder.obj()


@pytest.mark.parametrize("form", [0, 2], indirect=True)
@pytest.mark.parametrize("level", list(RecordLevel), ids=lambda level: level.name.lower())
@pytest.mark.parametrize("seed", range(3))
def test_plans_that_go_together_equal_a_full_pass_while_nodes_fill_up(
    seed: int, level: RecordLevel, form: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plans that have met rows in the state that they are in now would go alone.
    monkeypatch.setattr(answers_by_state, "MOST_STRIKES", 0)
    random = Random(seed)
    scheduler = make(level)
    for number in range(random.choice((12, 40))):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    together = 0
    for step in range(120):
        pod = plain_pod(random, f"p{step}")
        scheduler.handle(None, pod, step)
        scheduler.schedule_one(step)
        if random.random() < 0.03:
            change_something(random, scheduler, step)
        check_against_full_pass(scheduler, plain_pod(random, "probe"))
        together += max((len(it) for it in convoys_of(scheduler)), default=0) > 1
    assert together > 50


@pytest.mark.parametrize("seed", range(8))
def test_plans_made_from_one_with_other_requests_equal_a_full_pass(seed: int) -> None:
    random = Random(seed)
    scheduler = make(RecordLevel.FULL if seed % 2 else RecordLevel.OFF)
    for number in range(random.choice((5, 40))):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    for step in range(100):
        scheduler.handle(None, pod_with_other_requests(random, f"p{step}"), step)
        scheduler.schedule_one(step)
        if random.random() < 0.2:
            change_something(random, scheduler, step)
        check_against_full_pass(scheduler, pod_with_other_requests(random, "probe"))


def convoys_of(scheduler: Scheduler) -> list[convoy.Convoy]:
    """Return the convoys of the plans that are kept, as far as their nodes are still as they were."""
    found = {id(it): it for it in (plan.convoy for plan in scheduler.plans) if it is not None and it.lasts}
    return list(found.values())


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
