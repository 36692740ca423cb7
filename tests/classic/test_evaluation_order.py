"""Scores of priorities depend neither on how nodes are split among workers nor on the order in which they were added."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Any

import numpy as np
from fuzz.classic import random_classic_case
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bayplan.base.errors import BayplanError
from bayplan.classic.cycle import priority_errors, schedule_pod
from bayplan.conformance.cases import JsonObject
from bayplan.conformance.classic import ClassicRun, answer_classic_case
from bayplan.engine.plan import Plan
from bayplan.engine.select_host import mask_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import NormalizePlugin, Params, PreScorePlugin
from bayplan.framework.rule import ready
from bayplan.framework.status import Status
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.views import Rows
from bayplan.testing.row_results import scores_of
from tests.engine.full_pass import full_pass

NUMBERS = st.integers(0, 10**6)


def _first_cycle(number: int) -> tuple[Plan, Bools]:
    """Return the plan of the first pod of a random case, and the nodes that are feasible for it."""
    try:
        run = ClassicRun(random_classic_case(3, number))
    except BayplanError:
        assume(False)
    scheduler = run.scheduler
    pod = scheduler.pods[run.objects.pods_to_schedule[0]]
    profile = scheduler.profiles.get(pod.spec.scheduler_name)
    assume(profile is not None)
    assert profile is not None
    plan = scheduler.plans.plan_for(profile, pod)
    result = schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, scheduler.settings)
    assume(len(result.order) > 1 and priority_errors(plan, 1) is None)
    feasible = np.zeros(run.state.nodes.count, dtype=np.bool_)
    feasible[result.order] = True
    return plan, feasible


def _prepared(plan: Plan, plugin: Any, feasible: Bools) -> Params | None:
    spec = plan.specs[plugin.name]
    if isinstance(plugin, PreScorePlugin):
        params = plugin.pre_score(spec, plan.state, feasible)
        assert not isinstance(params, Status)
        return params
    observed: Params | None = plugin.observe(spec, plan.state)
    return observed


def _mapped(plan: Plan, plugin: Any, params: Params | None, chunk: Index) -> Ints:
    """Return the raw scores of some nodes."""
    spec = plan.specs[plugin.name]
    return scores_of(plugin, spec, params, Rows(plan.state, chunk))


@settings(max_examples=60, deadline=None)
@given(number=NUMBERS, shuffle=NUMBERS, pieces=st.integers(1, 7), workers=st.integers(1, 5))
def test_splitting_nodes_over_workers_does_not_change_the_scores(
    number: int, shuffle: int, pieces: int, workers: int
) -> None:
    plan, feasible = _first_cycle(number)
    want = full_pass(plan, mask_of(np.flatnonzero(feasible), plan.state.nodes.capacity))
    order = list(range(len(feasible)))
    Random(shuffle).shuffle(order)
    chunks = [np.array(chunk, dtype=np.intp) for chunk in np.array_split(order, pieces) if len(chunk)]
    total = np.zeros(len(feasible), dtype=np.int64)
    with ThreadPoolExecutor(workers) as pool:
        for entry in plan.profile.score:
            plugin: Any = entry.plugin
            spec, params = plan.specs[plugin.name], _prepared(plan, plugin, feasible)
            raw = np.zeros(len(feasible), dtype=np.int64)
            mapped = pool.map(partial(_mapped, plan, plugin, params), chunks)
            for chunk, scores in zip(chunks, mapped, strict=True):
                raw[chunk] = scores
            reduced = raw.copy()
            if isinstance(plugin, NormalizePlugin):
                rule = plugin.score_rule(spec, plan.state)
                ready(rule, params, plan.state.columns)
                scale = rule.scale(raw, feasible.view(np.uint8))
                for chunk in chunks:
                    reduced[chunk] = [rule.normalize(scale, int(raw[row]), row) for row in chunk.tolist()]
            expected = want.scores[plugin.name]
            assert np.array_equal(raw[feasible], expected.raw[feasible]), plugin.name
            assert np.array_equal(reduced[feasible], expected.normalized[feasible]), plugin.name
            total += entry.weight * reduced
    if plan.profile.score:
        assert np.array_equal(total[feasible], want.total[feasible])


@settings(max_examples=30, deadline=None)
@given(number=NUMBERS, shuffle=NUMBERS)
def test_the_order_of_added_nodes_does_not_change_the_first_decision(number: int, shuffle: int) -> None:
    case = random_classic_case(4, number)
    objects = case["objects"]
    assert isinstance(objects, list)
    nodes = [item for item in objects if isinstance(item, dict) and item["kind"] == "Node"]
    for node in nodes:
        # The nodes that have an image are counted when a node is added; see the test of ImageLocalityPriority.
        status = node["status"]
        assert isinstance(status, dict)
        status.pop("images", None)
    others = [item for item in objects if item not in nodes]
    shuffled = list(nodes)
    Random(shuffle).shuffle(shuffled)
    want = answer_classic_case({**case, "objects": [*nodes, *others]})
    got = answer_classic_case({**case, "objects": [*shuffled, *others]})
    assert _first(got) == _first(want)


def _first(answer: JsonObject) -> object:
    cycles = answer["cycles"]
    return cycles[0] if isinstance(cycles, list) else answer["error"]
