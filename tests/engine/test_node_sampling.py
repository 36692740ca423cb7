"""Node sampling: the number of nodes that a cycle checks, which ones, and where the next cycle starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.cycle import ScheduleResult, schedule_pod
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import NodeSampling, first_by_name, num_feasible_nodes_to_find, visited_rows
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.pod import Pod
from bayplan.testing.builders import make_node, make_pod
from tests.engine.preemption_worlds import scheduler_of


@pytest.mark.parametrize(
    ("percentage", "count", "want"),
    [
        pytest.param(0, 99, 99, id="a small cluster is looked at as a whole"),
        pytest.param(10, 99, 99, id="regardless of the percentage"),
        pytest.param(0, 100, 100, id="at least a hundred"),
        pytest.param(0, 1000, 420, id="by default the share falls with the size"),
        pytest.param(0, 5000, 500, id="to a tenth of 5,000"),
        pytest.param(0, 6000, 300, id="and a twentieth at least"),
        pytest.param(30, 1000, 300, id="a percentage is a percentage"),
        pytest.param(33, 1001, 330, id="the share is rounded down"),
        pytest.param(100, 1000, 1000, id="all"),
    ],
)
def test_num_feasible_nodes_to_find_depends_on_percentage_and_cluster_size(
    percentage: int, count: int, want: int
) -> None:
    assert num_feasible_nodes_to_find(percentage, count) == want


@pytest.mark.parametrize(
    ("whole", "profile", "scoring", "want"),
    [
        pytest.param(50, None, True, 500, id="the scheduler's percentage"),
        pytest.param(50, 20, True, 200, id="the profile's own wins"),
        pytest.param(50, 0, True, 420, id="also if it is adaptive"),
        pytest.param(100, 100, False, 1, id="rule 24: without scores the first feasible node is taken"),
    ],
)
def test_a_profiles_percentage_overrides_the_schedulers(
    whole: int, profile: int | None, scoring: bool, want: int
) -> None:
    assert NodeSampling(whole).wanted(profile, 1000, scoring) == want


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(0, 40), st.integers(1, 12), st.randoms())
def test_search_matches_visiting_nodes_one_by_one(fits: list[bool], start: int, wanted: int, random: object) -> None:
    order = np.arange(len(fits), dtype=np.intp)[::-1].copy()
    feasible = np.array(fits, dtype=np.bool_)
    sampling = NodeSampling()
    sampling.next_start = start
    found: list[int] = []
    evaluated = 0
    for step in range(len(fits)):
        row = int(order[(start + step) % len(fits)])
        if fits[row] and len(found) == wanted:
            break
        evaluated += 1
        if fits[row]:
            found.append(row)
    sample = sampling.search(order, feasible.view(np.uint8), wanted)
    assert sample.array().tolist() == found
    assert sample.visited == evaluated
    assert visited_rows(order, start, evaluated).tolist() == [
        int(order[(start + step) % len(fits)]) for step in range(evaluated)
    ]


def _cycle(scheduler: Scheduler, pod: Pod, sampling: NodeSampling | None) -> ScheduleResult:
    scheduler.pods[pod.key] = pod
    plan = scheduler.plans.plan_for(scheduler.profiles[pod.spec.scheduler_name], pod)
    return schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, first_by_name, sampling)


def _names(scheduler: Scheduler, result: ScheduleResult) -> list[str]:
    assert result.sample is not None
    return [scheduler.state.nodes.names[row] or "" for row in result.sample.array().tolist()]


def test_successive_searches_rotate_through_the_nodes_zone_by_zone() -> None:
    nodes = [
        make_node(f"n{number:03}").zone("ab"[number >= 150]).capacity(cpu="4", memory="8Gi") for number in range(240)
    ]
    scheduler = scheduler_of(nodes)
    sampling = NodeSampling(10)
    first = _cycle(scheduler, make_pod("p").req(cpu="1").obj(), sampling)
    assert (first.feasible_nodes, first.evaluated_nodes) == (100, 100)
    assert _names(scheduler, first)[:4] == ["n000", "n150", "n001", "n151"]
    second = _cycle(scheduler, make_pod("q").req(cpu="1").obj(), sampling)
    assert _names(scheduler, second)[:2] == ["n050", "n200"]
    third = _cycle(scheduler, make_pod("r").req(cpu="1").obj(), sampling)
    # After 180 nodes the smaller zone has no more nodes, and 60 of the larger zone follow; then both start again.
    assert _names(scheduler, third)[:2] == ["n110", "n111"]
    assert _names(scheduler, third)[38:42] == ["n148", "n149", "n000", "n150"]
    assert sampling.next_start == 60


def test_failing_nodes_are_counted_until_one_feasible_node_beyond_the_limit() -> None:
    nodes = [
        make_node(f"n{number:03}").capacity(cpu="1" if number % 3 == 0 else "4", memory="8Gi") for number in range(300)
    ]
    scheduler = scheduler_of(nodes)
    sampling = NodeSampling(1)
    result = _cycle(scheduler, make_pod("p").req(cpu="2").obj(), sampling)
    # Of each three nodes, n000, n003, ... fail. The 100th feasible node is n149; n150 fails, and n151 ends the search.
    assert (result.feasible_nodes, result.evaluated_nodes, sampling.next_start) == (100, 151, 151)


def test_rule_24_without_score_plugins_the_next_node_in_rotation_is_chosen() -> None:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"score": {"disabled": [{"name": "*"}]}, "preScore": {"disabled": [{"name": "*"}]}},
    }
    nodes = [make_node(name).capacity(cpu="4", memory="8Gi") for name in ("b", "a", "c")]
    scheduler = scheduler_of(nodes, config={"profiles": [profile]})
    for name, want in (("p", "b"), ("q", "a"), ("r", "c"), ("s", "b")):
        scheduler.handle(None, make_pod(name).req(cpu="1").obj(), 0)
        report = scheduler.schedule_one(0)
        assert report is not None
        assert report.node_name == want


def test_sample_totals_are_normalized_within_the_sample() -> None:
    # The one node with the preferred label is not in the sample, in which all nodes score the same.
    nodes = [make_node(f"n{number:03}").capacity(cpu="4", memory="8Gi") for number in range(150)]
    nodes[-1].label(disk="ssd")
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": term}]}
    pod = make_pod("p").req(cpu="1").spec(affinity={"nodeAffinity": preferred}).obj()
    everywhere = _cycle(scheduler_of(nodes), pod, None)
    sampled = _cycle(scheduler_of(nodes), pod, NodeSampling(10))
    assert (len(everywhere.ties), len(sampled.ties)) == (1, 100)
    assert everywhere.total - sampled.total == 2 * 100


def test_a_failing_nominated_node_is_counted_as_evaluated_once() -> None:
    nodes = [make_node(f"n{number:03}").capacity(cpu="4", memory="8Gi") for number in range(150)]
    nodes[140].unschedulable()
    scheduler = scheduler_of(nodes)
    result = _cycle(scheduler, make_pod("p").req(cpu="1").nominated("n140").obj(), NodeSampling(10))
    assert (result.feasible_nodes, result.evaluated_nodes) == (100, 101)
