"""Plans cache results of the classic rules: after any change, they equal those of a new plan."""

from __future__ import annotations

from random import Random

import numpy as np
from fuzz.classic import random_classic_case
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.base.errors import BayplanError
from bayplan.classic.cycle import ClassicResult, priority_errors, schedule_pod
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.conformance.classic import ClassicRun
from bayplan.engine.plan import Plan
from bayplan.engine.rule_result import RuleResults
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from tests.engine.full_pass import full_pass


def _cycle(scheduler: ClassicScheduler, plan: Plan, pod: Pod) -> ClassicResult:
    return schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, scheduler.settings)


def _compare(scheduler: ClassicScheduler, pod: Pod) -> None:
    profile = scheduler.profiles["default-scheduler"]
    kept_plan = scheduler.plans.plan_for(profile, pod)
    fresh_plan = Plan(profile, pod, scheduler.state, RuleResults(scheduler.state))
    kept, fresh = _cycle(scheduler, kept_plan, pod), _cycle(scheduler, fresh_plan, pod)
    assert [part.name for part in kept_plan.filtered.results] == [part.name for part in fresh_plan.filtered.results]
    assert (kept.common.failure is None) is (fresh.common.failure is None)
    if not kept.failing.size:
        # The basic checks have already rejected the pod.
        return
    alive = scheduler.state.nodes.alive
    assert np.array_equal(kept.failing[:, alive], fresh.failing[:, alive])
    assert kept.order.tolist() == fresh.order.tolist()
    assert (kept.common.row, kept.common.total) == (fresh.common.row, fresh.common.total)
    if len(kept.order) > 1 and priority_errors(kept_plan, 1) is None:
        feasible = np.zeros(scheduler.state.nodes.capacity, dtype=np.bool_)
        feasible[kept.order] = True
        ties = full_pass(fresh_plan, feasible).total
        assert sorted(kept.common.ties) == np.flatnonzero(ties == ties.max()).tolist()


def _change(scheduler: ClassicScheduler, random: Random, away: list[Pod]) -> None:
    """Remove a pod or add it again, or add, change or remove a node."""
    state = scheduler.state
    rows = sorted(state.nodes.row_of.values())
    what = random.randrange(5)
    if what == 0 and state.pods:
        info = state.pods[random.choice(sorted(state.pods))]
        away.append(info.pod)
        scheduler.handle(info.pod, None, 0)
    elif what == 1 and away and rows:
        pod = away.pop(random.randrange(len(away)))
        name = state.nodes.names[random.choice(rows)] or ""
        scheduler.handle(None, replace(pod, spec=replace(pod.spec, node_name=name)), 0)
    elif rows:
        node = state.nodes.nodes[random.choice(rows)]
        assert isinstance(node, Node)
        changed = _changed(node, random)
        if what == 2:
            changed = replace(changed, metadata=replace(changed.metadata, name=f"{node.metadata.name}x"))
            scheduler.handle(None, changed, 0)
        else:
            scheduler.handle(node, changed, 0)


def _changed(node: Node, random: Random) -> Node:
    labels = dict(node.metadata.labels)
    for key in sorted(labels):
        if random.random() < 0.3:
            del labels[key]
    amounts = dict(node.status.allocatable)
    for name in sorted(amounts):
        if random.random() < 0.2:
            del amounts[name]
    spec = replace(node.spec, unschedulable=random.random() < 0.2)
    status = replace(node.status, allocatable=amounts)
    return replace(node, metadata=replace(node.metadata, labels=labels), spec=spec, status=status)


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 10**6), seed=st.integers(0, 10**6))
def test_cached_results_equal_those_of_a_new_plan(number: int, seed: int) -> None:
    try:
        run = ClassicRun(random_classic_case(5, number))
    except BayplanError:
        assume(False)
    scheduler, random = run.scheduler, Random(seed)
    pods = [scheduler.pods[key] for key in run.objects.pods_to_schedule]
    away: list[Pod] = []
    for _ in range(8):
        for pod in pods:
            _compare(scheduler, pod)
        _change(scheduler, random, away)
        scheduler.state.check_invariants()
