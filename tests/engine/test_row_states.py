"""Rows that look the same to rules about amounts have one number, and others another."""

from __future__ import annotations

from random import Random

import pytest

from bayplan.engine import row_states
from bayplan.engine.row_states import RowStates
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.testing.builders import make_node, make_pod


def cluster(nodes: int) -> ClusterState:
    """Return nodes of two kinds in turn."""
    state = ClusterState()
    for number in range(nodes):
        state.add_node(make_node(f"n{number:02}").capacity(cpu=str(4 + number % 2), memory="8Gi", pods="20").obj())
    return state


def place(state: ClusterState, pod: Pod, row: int) -> None:
    state.place(state.pod_info(pod), row)


def amounts(state: ClusterState, row: int) -> tuple[bytes, int, bytes]:
    nodes = state.nodes
    return nodes.allocatable[:, row].tobytes(), int(nodes.allowed_pods[row]), state.usage[:, row].tobytes()


def check_numbers(state: ClusterState, states: RowStates) -> None:
    numbers = states.numbers.tolist()
    rows = range(state.nodes.count)
    assert [[numbers[a] == numbers[b] for a in rows] for b in rows] == [
        [amounts(state, a) == amounts(state, b) for a in rows] for b in rows
    ]


def test_a_state_that_comes_again_has_the_number_it_had() -> None:
    state = cluster(4)
    states = RowStates(state)
    assert states.follow()
    before = states.numbers.copy()
    place(state, make_pod("p").req(cpu="1").obj(), 0)
    assert states.follow()
    assert states.numbers[0] not in before
    with_one = states.numbers[0]
    place(state, make_pod("q").label(app="other").req(cpu="1").obj(), 2)
    state.remove_pod("default/p")
    assert states.follow()
    assert states.numbers.tolist()[:4] == [before[0], before[1], with_one, before[3]]
    assert states.generation == 1


@pytest.mark.parametrize("most", [6, 4096])
def test_numbers_agree_where_amounts_do_while_pods_and_nodes_come_and_go(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_states, "MOST_STATES", most)
    random, state = Random(3), cluster(8)
    states = RowStates(state)
    for step in range(200):
        kind = random.random()
        if kind < 0.6 and len(state.nodes):
            row = state.nodes.row_of[random.choice(sorted(state.nodes.row_of))]
            request = {"cpu": f"{random.randrange(3)}", "example.com/gpu": str(random.randrange(2))}
            place(state, make_pod(f"p{step}").req(request).obj(), row)
        elif kind < 0.9 and state.pods:
            state.remove_pod(random.choice(sorted(state.pods)))
        elif kind < 0.95 and len(state.nodes) > 2:
            state.remove_node(random.choice(sorted(state.nodes.row_of)))
        else:
            capacity = {"cpu": str(random.randrange(1, 3)), "memory": "1Gi", "pods": "9", "example.com/gpu": "1"}
            state.add_node(make_node(f"n{random.randrange(12):02}").capacity(capacity).obj())
        if random.random() < 0.7:
            assert states.follow()
            check_numbers(state, states)


def test_numbering_rests_where_every_change_makes_a_new_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_states, "TRIAL", 10)
    monkeypatch.setattr(row_states, "REST", 20)
    state = cluster(4)
    states = RowStates(state)
    said = []
    for step in range(40):
        place(state, make_pod(f"p{step}").req(cpu=f"{step + 1}m").obj(), step % 4)
        said.append(states.follow())
    assert said == [True] * 10 + [False] * 20 + [True] * 10
    check_numbers(state, states)
