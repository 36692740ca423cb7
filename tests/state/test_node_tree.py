"""The order of visits to nodes, against a naive implementation, under changes and undo."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_tree import zone_key
from bayplan.testing.builders import make_node

BETA = "failure-domain.beta.kubernetes.io"
STABLE = "topology.kubernetes.io"


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({}, "", id="no zone"),
        pytest.param({f"{STABLE}/zone": "a"}, ":\x00:a", id="a zone"),
        pytest.param({f"{STABLE}/region": "r"}, "r:\x00:", id="a region"),
        pytest.param({f"{STABLE}/zone": "a", f"{STABLE}/region": "r"}, "r:\x00:a", id="both"),
        pytest.param({f"{STABLE}/zone": "a", f"{BETA}/zone": "b"}, ":\x00:b", id="the older label counts"),
        pytest.param({f"{STABLE}/zone": "a", f"{BETA}/zone": ""}, "", id="even if it is empty"),
    ],
)
def test_zone_key_combines_region_and_zone(labels: dict[str, str], want: str) -> None:
    assert zone_key(make_node("n").label(labels).obj()) == want


def _order(state: ClusterState) -> list[str]:
    return [state.nodes.names[row] or "" for row in state.nodes.tree.order(state.nodes.row_of).tolist()]


def _naive(zones: dict[str, list[str]]) -> list[str]:
    longest = max(map(len, zones.values()), default=0)
    return [names[place] for place in range(longest) for names in zones.values() if place < len(names)]


@given(
    st.lists(st.tuples(st.sampled_from("amr"), st.integers(0, 7), st.sampled_from(("", "x", "y", "z"))), max_size=40)
)
def test_nodes_are_visited_round_robin_by_zone(steps: list[tuple[str, int, str]]) -> None:
    state = ClusterState()
    zones: dict[str, list[str]] = {}
    zone_of: dict[str, str] = {}

    def leave(name: str) -> None:
        zone = zone_of.pop(name)
        zones[zone].remove(name)
        if not zones[zone]:
            del zones[zone]

    for kind, number, zone in steps:
        name = f"n{number}"
        if kind == "r":
            if name in zone_of:
                state.remove_node(name)
                leave(name)
        elif kind == "m" or name not in zone_of:
            state.add_node(make_node(name).zone(zone).obj() if zone else make_node(name).obj())
            if zone_of.get(name, "none") != zone:
                if name in zone_of:
                    leave(name)
                zone_of[name] = zone
                zones.setdefault(zone, []).append(name)
        assert _order(state) == _naive(zones)
    assert _order(state.fork()) == _naive(zones)


def test_undoing_a_removal_restores_the_node_order() -> None:
    state = ClusterState()
    for name in ("a", "b", "c"):
        state.add_node(make_node(name).obj())
    with state.trial():
        state.remove_node("a")
        assert _order(state) == ["b", "c"]
    assert _order(state) == ["a", "b", "c"]
