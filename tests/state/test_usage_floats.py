"""Usage as floats follows usage, however it changes."""

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


@pytest.mark.parametrize("few", [0, 1, 64], ids=["all at once", "one by one up to one", "one by one"])
def test_floats_follow_usage(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_floats, "FEW_ROWS", few)
    state = make_state()
    for step in range(4):
        place(state, f"p{step}", step)
        place(state, f"q{step}", 4)
        assert np.array_equal(state.usage_floats.now(), state.usage)
    state.remove_pod("default/p2")
    assert np.array_equal(state.usage_floats.now(), state.usage)
    with state.trial():
        place(state, "tried", 2)
        assert np.array_equal(state.usage_floats.now(), state.usage)
    assert np.array_equal(state.usage_floats.now(), state.usage)
    state.register_resource("example.com/more")
    for number in range(100):
        state.add_node(make_node(f"m{number}").obj())
    assert np.array_equal(state.usage_floats.now(), state.usage)


def test_a_fork_has_floats_of_its_own() -> None:
    state = make_state()
    place(state, "p", 0)
    assert np.array_equal(state.usage_floats.now(), state.usage)
    fork = state.fork()
    place(fork, "q", 1)
    assert np.array_equal(fork.usage_floats.now(), fork.usage)
    assert np.array_equal(state.usage_floats.now(), state.usage)
