"""Plans that are kept up to date together: who joins and who leaves. That they stay right is tested in test_kept_results.py."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from bayplan.engine import answers_by_state
from bayplan.engine import convoy as convoys
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.convoy import Convoy
from bayplan.engine.plan import Plan
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.builders import make_node, make_pod

NODES = 400


@pytest.fixture(autouse=True)
def plans_know_no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let plans forget that they have met rows in the state that they are in now: those go alone."""
    monkeypatch.setattr(answers_by_state, "MOST_STRIKES", 0)


def template(number: int, name: str) -> Pod:
    return make_pod(name).label(app=str(number)).req(cpu=f"{100 + number}m", memory="64Mi").obj()


def make(templates: int, rounds: int) -> Scheduler:
    """Return a scheduler that has placed pods of so many templates in turn, some rounds of them."""
    scheduler = assemble_scheduler(
        default_configuration(),
        in_tree_registry(),
        feature_gates=FeatureGates(),
        seed=1,
        record_level=RecordLevel.OFF,
        sampling=False,
    )
    for number in range(NODES):
        scheduler.handle(None, make_node(f"n{number:03}").capacity(cpu="4", memory="8Gi").obj(), 0)
    for number in range(templates * rounds):
        schedule(scheduler, number % templates, f"p{number}")
    return scheduler


def schedule(scheduler: Scheduler, number: int, name: str) -> None:
    scheduler.handle(None, template(number, name), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.node_name


def plan_of(scheduler: Scheduler, number: int) -> Plan:
    return scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], template(number, "probe"))


def convoy_of(scheduler: Scheduler) -> Convoy:
    found = plan_of(scheduler, 0).convoy
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("templates", "want"),
    [
        pytest.param(1, 0, id="a plan that comes again at once is alone"),
        pytest.param(10, 0, id="so are those that find few changed rows when they come again"),
        pytest.param(20, 20, id="those that find many go together"),
    ],
)
def test_who_goes_together(templates: int, want: int) -> None:
    scheduler = make(templates, 4)
    assert sum(plan.convoy is not None for plan in scheduler.plans) == want


def test_plans_of_a_convoy_are_never_far_behind() -> None:
    scheduler = make(20, 4)
    assert len(convoy_of(scheduler)) == 20
    assert scheduler.state.usage_log.end - convoy_of(scheduler).position <= convoys.MOST_BEHIND + 1


def test_arrays_of_plans_are_rows_of_the_matrices_after_others_have_left() -> None:
    scheduler = make(20, 4)
    convoy = convoy_of(scheduler)
    for number in (3, 19, 0):
        plan = plan_of(scheduler, number)
        total = plan.total.copy()
        plan.leave_convoy()
        assert (plan.convoy, plan.place) == (None, -1)
        assert plan.total.base is None
        assert np.array_equal(plan.total, total)
    assert len(convoy) == 17
    places = {plan.place for plan in scheduler.plans if plan.convoy is convoy}
    assert places == set(range(17))
    for round_ in range(2):
        for number in range(20):
            schedule(scheduler, number, f"again-{round_}-{number}")
    assert len(convoy_of(scheduler)) == 20


def test_a_new_node_ends_a_convoy_and_another_one_forms() -> None:
    scheduler = make(20, 4)
    before = convoy_of(scheduler)
    scheduler.handle(None, make_node("new").capacity(cpu="4", memory="8Gi").obj(), 0)
    assert not before.lasts
    for round_ in range(3):
        for number in range(20):
            schedule(scheduler, number, f"again-{round_}-{number}")
    after = convoy_of(scheduler)
    assert after is not before
    assert (after.lasts, len(after), len(before)) == (True, 20, 0)


def test_plans_that_nobody_asks_for_leave() -> None:
    scheduler = make(20, 4)
    convoy = convoy_of(scheduler)
    for step in range(2 * convoys.PATIENCE * (convoys.MOST_BEHIND + 1)):
        schedule(scheduler, step % 2, f"two-{step}")
    assert len(convoy) == 2
    assert plan_of(scheduler, 7).convoy is None


def test_a_convoy_takes_no_more_memory_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convoys, "MOST_BYTES", 8 * 18 * 512)
    scheduler = make(20, 4)
    assert sum(plan.convoy is not None for plan in scheduler.plans) == 8


def test_convoys_go_with_their_scheduler() -> None:
    scheduler = make(20, 4)
    known = weakref.ref(convoy_of(scheduler))
    del scheduler
    gc.collect()
    assert known() is None
