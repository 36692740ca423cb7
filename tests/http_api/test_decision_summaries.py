"""The margin of the chosen node over the runner-up."""

from __future__ import annotations

import pytest

from bayplan.http_api.decision_summaries import UNKNOWN, Margin, margin_of
from bayplan.testing.builders import NodeBuilder
from tests.analysis.runs import node, pod, run


def tainted(name: str) -> NodeBuilder:
    return node(name).taint("slow", effect="PreferNoSchedule")


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        pytest.param([node("a"), tainted("z"), tainted("y")], Margin(300, "y"), id="the first of equal runners-up"),
        pytest.param([node("b"), node("c"), tainted("a")], Margin(300, "a"), id="nodes of the tie set are excluded"),
        pytest.param([node("a"), node("b")], UNKNOWN, id="a tie of all nodes"),
        pytest.param([node("a")], UNKNOWN, id="a single node"),
    ],
)
def test_the_margin_is_the_distance_to_the_best_other_node(nodes: list[NodeBuilder], want: Margin) -> None:
    result = run(*(each.obj() for each in nodes), pod("p").obj())
    assert margin_of(result.records.decision(0)) == want
