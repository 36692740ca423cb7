"""The priorities over requests and capacity, computed by hand."""

from __future__ import annotations

import pytest

from bayplan.base.errors import ConfigurationError
from bayplan.classic.plugins.resource_allocation import (
    CapacityRatio,
    LeastRequested,
    MostRequested,
    WeightedResource,
)
from bayplan.framework.rule import ready
from bayplan.state import resource_table
from bayplan.testing.builders import PodBuilder, make_pod
from tests.classic.cycles import Item, configured, cycle, cycle_of, node, only_priority, scheduler_of

MIB = 2**20
LEAST, MOST, BALANCED = "LeastRequestedPriority", "MostRequestedPriority", "BalancedResourceAllocation"
RATIO = "RequestedToCapacityRatioPriority"


@pytest.mark.parametrize(
    ("requested", "capacity", "least", "most"),
    [
        pytest.param(0, 0, 0, 0, id="no request and no capacity"),
        pytest.param(1, 0, 0, 0, id="a request without capacity"),
        pytest.param(0, 1000, 10, 0, id="no request"),
        pytest.param(1, 1000, 9, 0, id="the first unit costs a whole point of least and gives none of most"),
        pytest.param(99, 1000, 9, 0, id="just below a tenth"),
        pytest.param(100, 1000, 9, 1, id="a tenth"),
        pytest.param(101, 1000, 8, 1, id="just above a tenth"),
        pytest.param(500, 1000, 5, 5, id="half"),
        pytest.param(999, 1000, 0, 9, id="all but one unit"),
        pytest.param(1000, 1000, 0, 10, id="requests equal to capacity"),
        pytest.param(1001, 1000, 0, 0, id="one unit more than there is"),
        pytest.param(1, 3, 6, 3, id="thirds are cut off"),
        pytest.param(2, 3, 3, 6, id="two thirds are cut off"),
        pytest.param(2**62, 2**62, 0, -2, id="tenfold does not fit in 64 bits, and wraps as it does in Go"),
    ],
)
def test_least_and_most_requested_score_a_single_resource(requested: int, capacity: int, least: int, most: int) -> None:
    state = scheduler_of([node("n1", memory=str(capacity))]).state
    resources = (WeightedResource(resource_table.MEMORY, False, requested, 1),)
    for rule, want in ((LeastRequested(resources, state), least), (MostRequested(resources, state), most)):
        ready(rule, (), state.columns)
        assert rule.score(0) == want


def _score(priority: str, objects: list[Item], pod: PodBuilder) -> dict[str, int]:
    return cycle_of(objects, pod, configured(policy=only_priority(priority))).scores(priority)


def _on_one(priority: str, cpu: str, memory: str, pod: PodBuilder, *others: PodBuilder) -> int:
    # There is a second node, because a single feasible node is not scored.
    objects: list[Item] = [node("n1", cpu, memory), node("other"), *(other.node("n1") for other in others)]
    return _score(priority, objects, pod)["n1"]


@pytest.mark.parametrize(
    ("cpu", "memory", "asked", "least", "most", "balanced"),
    [
        # By columns: (10 + 10) / 2; (0 + 0) / 2; fractions 0 and 0.
        pytest.param("4", "8Gi", {"cpu": "0", "memory": "0"}, 10, 0, 10, id="an explicit 0 is a request"),
        # CPU: (4000 - 1000) * 10 / 4000 = 7, memory: (8 - 4) * 10 / 8 = 5, mean 6; 2 and 5: 3; |0.25 - 0.5| = 0.25.
        pytest.param("4", "8Gi", {"cpu": "1", "memory": "4Gi"}, 6, 3, 7, id="a quarter and a half"),
        # CPU: 0 and 10, memory: 0 and 10; both full.
        pytest.param("4", "8Gi", {"cpu": "4", "memory": "8Gi"}, 0, 10, 0, id="requests equal to capacity"),
        # CPU: 0, memory: 5, mean 2; 10 and 5: 7; CPU is full.
        pytest.param("4", "8Gi", {"cpu": "4", "memory": "4Gi"}, 2, 7, 0, id="one resource full"),
        # CPU: 0 both times, memory: 5 and 5, mean 2; CPU is more than full.
        pytest.param("4", "8Gi", {"cpu": "5", "memory": "4Gi"}, 2, 2, 0, id="more than there is"),
        # CPU: 0 both times, memory: 5 and 5; no capacity counts as full.
        pytest.param("0", "8Gi", {"cpu": "0", "memory": "4Gi"}, 2, 2, 0, id="zero capacity of CPU"),
        pytest.param("0", "0", {"cpu": "0", "memory": "0"}, 0, 0, 0, id="no capacity at all"),
        # 100m of 1000m: 9 and 1; 200 MiB of 400 MiB: 5 and 5; means 7 and 3; |0.1 - 0.5| = 0.4, of 10: 6.
        pytest.param("1", "400Mi", {}, 7, 3, 6, id="without requests 100 milli-CPU and 200 MiB"),
        # 100m of 1000m: 9 and 1; 100 MiB of 400 MiB: 7 and 2; means 8 and 1; |0.1 - 0.25| = 0.15, of 10: 8.5.
        pytest.param("1", "400Mi", {"memory": "100Mi"}, 8, 1, 8, id="only the missing request has a default"),
        # 3999m: (1) * 10 / 4000 = 0 and 9; 8 GiB - 1 byte: 0 and 9; |0.99975 - 0.9999...| * 10 below 1: 9.
        pytest.param("4", "8Gi", {"cpu": "3999m", "memory": str(2**33 - 1)}, 0, 9, 9, id="one unit below full"),
    ],
)
def test_least_most_and_balanced_scores_match_hand_computed_values(
    cpu: str, memory: str, asked: dict[str, str], least: int, most: int, balanced: int
) -> None:
    pod = make_pod("p").req(asked) if asked else make_pod("p")
    assert _on_one(LEAST, cpu, memory, pod) == least
    assert _on_one(MOST, cpu, memory, pod) == most
    assert _on_one(BALANCED, cpu, memory, pod) == balanced


def test_default_requests_of_running_pods_count() -> None:
    # Two pods without requests, and the pod: 300m of 1000m, 600 MiB of 1000 MiB: 7 and 4 (3 and 6).
    others = (make_pod("a"), make_pod("b"))
    assert _on_one(LEAST, "1", "1000Mi", make_pod("p"), *others) == (7 + 4) // 2
    assert _on_one(MOST, "1", "1000Mi", make_pod("q"), *(make_pod("a"), make_pod("b"))) == (3 + 6) // 2


def test_each_container_without_requests_gets_the_defaults() -> None:
    # 200m of 1000m: 8; 400 MiB of 1000 MiB: 6.
    pod = make_pod("p").container("another")
    assert _on_one(LEAST, "1", "1000Mi", pod) == 7


def test_balanced_scores_are_truncated_as_in_1_16() -> None:
    """Nodes use each percentage of memory, and pods request each percentage of CPU: 10,000 pairs."""
    nodes = [node(f"n{memory}", cpu="100m", memory="100") for memory in range(100)]
    running = [make_pod(f"p{memory}").req(cpu="0", memory=f"{memory}").node(f"n{memory}") for memory in range(100)]
    scheduler = scheduler_of([*nodes, *running], configured(policy=only_priority(BALANCED)))
    differing = []
    for cpu in range(100):
        scores = cycle(scheduler, make_pod(f"q{cpu}").req(cpu=f"{cpu}m", memory="0")).scores(BALANCED)
        for memory in range(100):
            difference = abs(cpu / 100 - memory / 100)
            assert scores[f"n{memory}"] == int((1 - difference) * 10)
            if scores[f"n{memory}"] != (earlier := int(10 - difference * 10)):
                assert scores[f"n{memory}"] == earlier - 1
                differing.append(cpu - memory)
    assert len(differing) == 36
    assert {abs(points) for points in differing} == {80, 90}


def _point(utilization: int, score: int) -> dict[str, int]:
    return {"utilization": utilization, "score": score}


@pytest.mark.parametrize(
    ("shape", "resources", "asked", "want"),
    [
        # 25 % and 50 % on the line from (0, 10) to (100, 0): 10 + trunc(-10 * 25 / 100) = 8, 10 - 5 = 5; (8 + 5) / 2 = 6.5.
        pytest.param([_point(0, 10), _point(100, 0)], [], {"cpu": "1", "memory": "4Gi"}, 7, id="a half rounds up"),
        # From (0, 0) to (100, 10): 2 and 5; 3.5.
        pytest.param([_point(0, 0), _point(100, 10)], [], {"cpu": "1", "memory": "4Gi"}, 4, id="packing"),
        # Before the first point and after the last one the function is flat: 25 % is 2, 50 % is 2.
        pytest.param([_point(60, 2)], [], {"cpu": "1", "memory": "4Gi"}, 2, id="one point"),
        # 0 % scores 0 and does not count; memory 50 % is 5.
        pytest.param(
            [_point(0, 0), _point(100, 10)], [], {"cpu": "0", "memory": "4Gi"}, 5, id="a score of 0 is left out"
        ),
        # More than there is counts as 100 %.
        pytest.param([_point(0, 0), _point(100, 10)], [], {"cpu": "9", "memory": "8Gi"}, 10, id="more than there is"),
        # (2 * 3 + 5 * 1) / 4 = 2.75.
        pytest.param(
            [_point(0, 0), _point(100, 10)],
            [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
            {"cpu": "1", "memory": "4Gi"},
            3,
            id="weights",
        ),
        # A resource that no node has is full: 10 of weight 1, and 2 of weight 1.
        pytest.param(
            [_point(0, 0), _point(100, 10)],
            [{"name": "example.com/gpu"}, {"name": "cpu", "weight": 0}],
            {"cpu": "1", "memory": "4Gi"},
            6,
            id="zero capacity is full and a weight of 0 is 1",
        ),
    ],
)
def test_requested_to_capacity_ratio_follows_its_shape(
    shape: list[dict[str, int]], resources: list[object], asked: dict[str, str], want: int
) -> None:
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, "resources": resources}}
    policy = only_priority("Ratio", argument)
    found = cycle_of([node("n1"), node("n2")], make_pod("p").req(asked), configured(policy=policy))
    assert found.scores("Ratio")["n1"] == want


def test_requested_to_capacity_ratio_spreads_by_default() -> None:
    # The line from (0, 10) to (100, 0): 25 % is 8 and 50 % is 5.
    assert _on_one(RATIO, "4", "8Gi", make_pod("p").req(cpu="1", memory="4Gi")) == 7


@pytest.mark.parametrize(
    ("utilization", "want"),
    [(0, 10), (9, 10), (10, 10), (11, 10), (24, 7), (25, 6), (39, 3), (40, 2), (41, 2), (100, 2)],
)
def test_interpolation_truncates_towards_zero(utilization: int, want: int) -> None:
    # From (10, 10) to (40, 2): 10 + trunc(-8 * (u - 10) / 30).
    state = scheduler_of([node()]).state
    assert CapacityRatio((), ((10, 10), (40, 2)), state).shaped(utilization) == want


@pytest.mark.parametrize(
    ("points", "want"),
    [
        ([], "at least one point must be specified"),
        ([(0, 1), (0, 2)], "utilization values must be sorted. Utilization[0]==0 >= Utilization[1]==0"),
        ([(-1, 1)], "utilization values must not be less than 0. Utilization[0]==-1"),
        ([(0, 1), (101, 1)], "utilization values must not be greater than 100. Utilization[1]==101"),
        ([(0, -1)], "score values must not be less than 0. Score[0]==-1"),
        ([(0, 11)], "score valuses not be greater than 10. Score[0]==11"),
    ],
)
def test_invalid_shapes_are_refused_with_upstreams_message(points: list[tuple[int, int]], want: str) -> None:
    shape = [_point(*point) for point in points]
    policy = only_priority("Ratio", {"requestedToCapacityRatioArguments": {"shape": shape}})
    with pytest.raises(ConfigurationError) as refused:
        configured(policy=policy).algorithms()
    assert str(refused.value) == f"invalid RequestedToCapacityRatioPriority arguments: {want}"
