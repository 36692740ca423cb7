"""The scoring strategies: shapes, and the special case against the general function."""

import numpy as np
import pytest

from bayplan.plugins.scored_resources import ScoredResource
from bayplan.plugins.scoring_strategies import (
    STRATEGIES,
    broken_linear,
    least_allocated,
    least_allocated_cpu_memory,
    most_allocated,
    special_case,
)
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.views import Row, Rows
from tests.oracle.resource_rules import on_shape
from tests.plugins.builders import make_node, make_pod, make_state


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(((0, 0), (100, 100)), id="rising"),
        pytest.param(((0, 100), (100, 0)), id="falling: the steps are cut towards zero, so it is rounded up"),
        pytest.param(((20, 30),), id="one point is a constant"),
        pytest.param(((10, 70), (30, 10), (31, 90), (80, 90)), id="up and down"),
    ],
)
def test_broken_linear_functions(shape: tuple[tuple[int, int], ...]) -> None:
    rows = Rows(make_state([make_node(f"n{number}") for number in range(101)]))
    found = broken_linear(shape, np.arange(101, dtype=np.int64), rows)
    assert found.tolist() == [on_shape(shape, percent) for percent in range(101)]


@pytest.mark.parametrize(
    ("strategy", "resources", "want"),
    [
        pytest.param("LeastAllocated", ((CPU, 1), (MEMORY, 1)), least_allocated_cpu_memory, id="the default"),
        pytest.param("LeastAllocated", ((CPU, 7), (MEMORY, 7)), least_allocated_cpu_memory, id="any equal weights"),
        pytest.param("LeastAllocated", ((CPU, 1), (MEMORY, 2)), None, id="weights that differ"),
        pytest.param("LeastAllocated", ((CPU, 1),), None, id="one resource"),
        pytest.param("LeastAllocated", ((CPU, 1), (MEMORY, 1), (5, 1)), None, id="three resources"),
        pytest.param("MostAllocated", ((CPU, 1), (MEMORY, 1)), None, id="another strategy"),
    ],
)
def test_when_the_special_case_holds(strategy: str, resources: tuple[tuple[int, int], ...], want: object) -> None:
    scored = tuple(ScoredResource(number, weight, 1) for number, weight in resources)
    assert special_case(STRATEGIES[strategy], scored) is want


def test_the_special_case_gives_what_the_general_function_gives() -> None:
    offers = [{"cpu": str(1 + number % 7), "memory": f"{1 + number % 11}Gi", "pods": "99"} for number in range(77)]
    state = make_state([make_node(f"n{number}", offer) for number, offer in enumerate(offers)])
    for number in range(77):
        requests = {"cpu": f"{number * 37 % 2000}m", "memory": f"{number * 53 % 3000}Mi"}
        state.place(state.pod_info(make_pod(f"p{number}", requests)), number)
    assert state.regular
    for cpu, memory in ((0, 0), (100, 200 << 20), (999, 1), (64_000, 1 << 40)):
        scored = (ScoredResource(CPU, 1, cpu), ScoredResource(MEMORY, 1, memory))
        want = least_allocated(scored, (), Rows(state))
        np.testing.assert_array_equal(least_allocated_cpu_memory(scored, (), Rows(state)), want)
        for row in range(77):
            assert least_allocated_cpu_memory(scored, (), Row(state, row)) == want[row]


def test_both_allocations_of_a_node_without_the_resources_are_0() -> None:
    rows = Rows(make_state([make_node("n1", {"pods": "1"})]))
    scored = (ScoredResource(CPU, 1, 5), ScoredResource(MEMORY, 1, 5))
    assert least_allocated(scored, (), rows).tolist() == most_allocated(scored, (), rows).tolist() == [0]
