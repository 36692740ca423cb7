"""Suggestions for the names of unknown nodes."""

from __future__ import annotations

import pytest

from bayplan.analysis.node_names import nearest_nodes, unknown_node

CLOUD = [f"ip-10-0-{part}.eu-west-1.compute.internal" for part in ("11-188", "11-189", "12-7")]


@pytest.mark.parametrize(
    ("name", "names", "want"),
    [
        pytest.param("ip-10-0-12-7", CLOUD, [CLOUD[2]], id="without the domain"),
        pytest.param("ip-10-0-11", CLOUD, CLOUD[:2], id="the beginning of several names"),
        pytest.param("188", CLOUD, [CLOUD[0]], id="a part of a name"),
        pytest.param("IP-10-0-11-188", CLOUD, [CLOUD[0]], id="case does not count"),
        pytest.param("pool-a", ["old-pool-a", "pool-a-1"], ["pool-a-1"], id="a beginning is nearer than another part"),
        pytest.param("ip-10-0-12-8.eu-west-1.compute.internal", CLOUD, [CLOUD[2]], id="misspelt"),
        pytest.param("n22", ["n1", "n2"], ["n2"], id="misspelt and short"),
        pytest.param("ip", CLOUD, [], id="too short to be completed"),
        pytest.param("gpu", CLOUD, [], id="nothing similar"),
        pytest.param("gpu", [], [], id="no nodes"),
    ],
)
def test_the_nearest_nodes_begin_with_a_text_or_contain_it_or_are_similar(
    name: str, names: list[str], want: list[str]
) -> None:
    assert nearest_nodes(name, names) == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("gpu", "--node: expected a node, got 'gpu'"),
        ("node-10", "--node: expected a node, got 'node-10'; try 'node-100'"),
        (
            "node",
            "--node: expected a node, got 'node'; try 'node-100', 'node-101', 'node-102', 'node-103', 'node-104' or 3 more",
        ),
    ],
)
def test_the_error_lists_up_to_five_names(name: str, want: str) -> None:
    names = [f"node-{number}" for number in ((100,) if name == "node-10" else range(100, 108))]
    assert str(unknown_node(name, names, wanted="a node")) == want
