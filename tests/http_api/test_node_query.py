"""Filters and orders of nodes."""

from __future__ import annotations

import pytest

from bayplan.http_api.node_query import NodeFilter, find_nodes
from bayplan.http_api.node_table import CORDONED, NOT_READY, NodeTable
from bayplan.testing.builders import NodeBuilder, make_node


def table_of(*nodes: NodeBuilder) -> NodeTable:
    table = NodeTable()
    for node in nodes:
        table.put(node.obj(), 0)
    return table


def found(table: NodeTable, wanted: NodeFilter, sort: tuple[str, bool] = ("name", False)) -> list[str]:
    nodes = table.freeze()
    return [nodes.names[row] for row in find_nodes(nodes, wanted, sort).tolist()]


def test_requests_beyond_int64_wrap_around_until_their_pods_leave() -> None:
    table = table_of(make_node("n"))
    for node in ("n", "later"):
        for sign in (1, 1, -1):
            table.place(node, {"memory": 2**62}, sign)
    table.put(make_node("later").obj(), 0)
    nodes = table.freeze()
    assert nodes.requested["memory"][: len(nodes.names)].tolist() == [2**62, 2**62]


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        pytest.param(0, ["away", "both", "cordoned", "ready"], id="any state"),
        pytest.param(CORDONED, ["both", "cordoned"], id="cordoned nodes"),
        pytest.param(NOT_READY, ["away", "both"], id="nodes that are not ready"),
        pytest.param(CORDONED | NOT_READY, ["both"], id="nodes with both flags"),
    ],
)
def test_a_filter_selects_nodes_with_all_of_its_flags(flags: int, want: list[str]) -> None:
    table = table_of(
        make_node("ready").condition("Ready"),
        make_node("cordoned").condition("Ready").unschedulable(),
        make_node("away").condition("Ready", "False"),
        make_node("both").condition("Ready", "False").unschedulable(),
    )
    assert found(table, NodeFilter(flags=flags)) == want


def test_nodes_are_sorted_by_the_number_of_pods_and_by_the_share_of_other_resources() -> None:
    table = table_of(make_node("small").capacity(cpu="1", pods="2"), make_node("large").capacity(cpu="10", pods="100"))
    table.place("small", {"cpu": 800, "pods": 1}, 1)
    table.place("large", {"cpu": 4000, "pods": 5}, 1)
    assert found(table, NodeFilter(), ("pods", True)) == ["large", "small"]
    assert found(table, NodeFilter(), ("cpu", True)) == ["small", "large"]
