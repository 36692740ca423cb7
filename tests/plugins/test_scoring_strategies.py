"""The scoring strategies: shapes, and nodes without the resources."""

from __future__ import annotations

import pytest

from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import ScoredResource
from bayplan.plugins.scoring_strategies import STRATEGIES, RequestedToCapacityRatio
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.views import Rows
from bayplan.testing.row_results import scores_by
from tests.oracle.resource_rules import on_shape
from tests.plugins.builders import make_node, make_state

STATE = make_state([])
DEVICES = ScoredDevices(Handle(STATE, FeatureGates.from_mapping({})), ())


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(((0, 0), (100, 100)), id="rising"),
        pytest.param(((0, 100), (100, 0)), id="falling: the steps are cut towards zero, so it is rounded up"),
        pytest.param(((20, 30),), id="one point is a constant"),
        pytest.param(((10, 70), (30, 10), (31, 90), (80, 90)), id="up and down"),
    ],
)
def test_requested_to_capacity_ratio_interpolates_the_shape(shape: tuple[tuple[int, int], ...]) -> None:
    state = make_state([make_node("n1", {"cpu": "100m", "pods": "1"})])
    found = []
    for percent in range(101):
        rule = RequestedToCapacityRatio((ScoredResource(CPU, 1, percent),), shape, DEVICES, state)
        found += scores_by(rule, (), Rows(state)).tolist()
    assert found == [on_shape(shape, percent) for percent in range(101)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_node_without_the_resources_scores_0(strategy: str) -> None:
    state = make_state([make_node("n1", {"pods": "1"})])
    scored = (ScoredResource(CPU, 1, 5), ScoredResource(MEMORY, 1, 5))
    rule = STRATEGIES[strategy](scored, ((0, 10), (100, 0)), DEVICES, state)
    assert scores_by(rule, (), Rows(state)).tolist() == [0]
