"""Cheaper sets of nodes to try: which ones, and in which order."""

from __future__ import annotations

from bayplan.answers.node_sets import Outcome, cheaper_sets
from bayplan.answers.node_shapes import NodeShape, parse_shape
from tests.answers.clusters import cluster_of, node

STATE = cluster_of(node("a")).state
SMALL, MIDDLE, LARGE = (
    parse_shape(f"name={name},cpu={cpu},memory=8Gi,price={price}", STATE)
    for name, cpu, price in (("small", 2, 1), ("middle", 4, 2), ("large", 8, 3))
)


def tried(chosen: list[NodeShape], nodes: dict[str, str]) -> list[str]:
    """Return the sets to try instead of `chosen`, as text."""
    names = [f"added-{number}" for number in range(1, len(chosen) + 1)]
    outcome = Outcome(chosen, names, nodes, frozenset(), {})
    sets = cheaper_sets(outcome, [SMALL, MIDDLE, LARGE])
    return [" ".join(shape.name for shape in each) for each in sets]


def test_nodes_without_pods_are_left_out_first() -> None:
    found = tried([MIDDLE, SMALL], {"p": "added-2"})
    assert found[0] == "small"


def test_each_node_is_left_out_or_replaced_and_two_are_replaced_by_one() -> None:
    found = tried([MIDDLE, MIDDLE], {"p": "added-1", "q": "added-2"})
    assert found == ["middle", "middle small", "small", "large"]


def test_equal_sets_are_tried_once() -> None:
    assert tried([SMALL] * 3, {}) == ["small small"]
    found = tried([SMALL, LARGE, LARGE, SMALL], {})
    assert len(found) == len(set(found))
    assert {"large large small", "small large large"} <= set(found)
