"""The order of rejecting nodes by nearness."""

from __future__ import annotations

import pytest

from bayplan.analysis.nearness import Nearness
from bayplan.analysis.run_source import SimulationSource
from bayplan.testing.builders import NodeBuilder, PodBuilder
from tests.analysis.runs import node, pod, run

GPU = "example.com/gpu"


def nearest_first(nodes: list[NodeBuilder], running: list[PodBuilder], waiting: PodBuilder) -> list[str]:
    result = run(*(each.obj() for each in nodes), *(each.obj() for each in running), waiting.obj())
    source = SimulationSource(result)
    timeline = next(each for each in source.pods if each.key == waiting.obj().key)
    number, _ = next(iter(source.records_of(timeline.key)))
    decision = source.decision(number)
    nearness = Nearness(source, number, decision, timeline)
    return [str(decision.names[row]) for row in nearness.order()]


@pytest.mark.parametrize(
    ("nodes", "running", "waiting", "want"),
    [
        pytest.param(
            [node("a").taint("gpu"), node("b", cpu="2")],
            [],
            pod("p", cpu="3"),
            ["b", "a"],
            id="missing room before a taint",
        ),
        pytest.param(
            [node("a", cpu="1"), node("b", cpu="2")],
            [],
            pod("p", cpu="3"),
            ["b", "a"],
            id="the smallest shortage first",
        ),
        pytest.param(
            [node("a"), node("b").capacity({GPU: "1"})],
            [pod("q").req({GPU: "1"}).node("b")],
            pod("p").req({GPU: "1"}),
            ["b", "a"],
            id="a device in use before no such device",
        ),
        pytest.param([node("b", cpu="1"), node("a", cpu="1")], [], pod("p", cpu="3"), ["a", "b"], id="ties by name"),
    ],
)
def test_rejecting_nodes_are_ordered_by_nearness(
    nodes: list[NodeBuilder], running: list[PodBuilder], waiting: PodBuilder, want: list[str]
) -> None:
    assert nearest_first(nodes, running, waiting) == want
