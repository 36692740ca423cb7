"""What is taken and free as floats follows usage and nodes, however they change."""

from __future__ import annotations

import numpy as np
import pytest

from bayplan.state import usage_floats
from bayplan.state.cluster_state import ClusterState
from bayplan.testing.builders import make_node, make_pod


def make_state() -> ClusterState:
    state = ClusterState()
    for number in range(5):
        state.add_node(make_node(f"n{number}").capacity(cpu="4", memory="8Gi").obj())
    return state


def place(state: ClusterState, name: str, row: int) -> None:
    state.place(state.pod_info(make_pod(name).req(cpu="100m", memory="1Gi").obj()), row)


def check(state: ClusterState) -> None:
    floats, offered = state.usage_floats.follow(), state.nodes.divisors[:2]
    requested, non_zero = state.usage[3:5], state.usage[1:3]
    wanted = {
        "offered": offered,
        "requested": requested,
        "non_zero": non_zero,
        "hundredfold": 100 * (offered - non_zero),
        "crowded": (state.usage[0] >= state.nodes.allowed_pods) & state.nodes.alive,
    }
    for name, columns in wanted.items():
        assert np.array_equal(getattr(floats, name), columns)
    assert floats.crowded_count == int(floats.crowded.sum())
    for least, columns in ((floats.least_free, offered - requested), (floats.least_hundredfold, floats.hundredfold)):
        assert (np.array(least) <= columns[:, : state.nodes.count].min(axis=1)).all()
    pods = [np.array([[cpu], [5.0]]) for cpu in (1.0, 2.0)]
    for pod in pods:
        for _ in range(2):
            assert np.array_equal(floats.requested_with(pod, len(requested[0])), requested + pod)


@pytest.mark.parametrize("few", [0, 1, 64], ids=["all at once", "one by one up to one", "one by one"])
def test_floats_follow_usage(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_floats, "FEW_ROWS", few)
    state = make_state()
    for step in range(4):
        place(state, f"p{step}", step)
        place(state, f"q{step}", 4)
        check(state)
    state.remove_pod("default/p2")
    check(state)
    with state.trial():
        place(state, "tried", 2)
        check(state)
    check(state)
    state.register_resource("example.com/more")
    for number in range(100):
        state.add_node(make_node(f"m{number}").obj())
    check(state)


def test_a_fork_has_floats_of_its_own() -> None:
    state = make_state()
    place(state, "p", 0)
    check(state)
    fork = state.fork()
    place(fork, "q", 1)
    check(fork)
    check(state)
