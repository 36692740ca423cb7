"""The states that rows are in follow usage and nodes, however they change, and are followed only where that is worthwhile."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from bayplan.base.errors import InvariantError
from bayplan.objects.requests import HostPort
from bayplan.state import usage_states
from bayplan.state.cluster_state import ClusterState
from bayplan.state.state_rows import StateRows
from bayplan.state.views import Rows
from bayplan.testing.builders import make_node, make_pod


def make_state(nodes: int, *, different: bool = False) -> ClusterState:
    state = ClusterState()
    for number in range(nodes):
        cpu = str(4 + number) if different else "4"
        state.add_node(make_node(f"n{number:04}").capacity(cpu=cpu, memory="8Gi", pods="5").obj())
    return state


def place(state: ClusterState, name: str, row: int, cpu: str = "100m") -> None:
    state.place(state.pod_info(make_pod(name).req(cpu=cpu, memory="1Gi").obj()), row)


def check(state: ClusterState) -> None:
    """Compare what states say with what rows say."""
    states = state.usage_states
    states.follow()
    states.check_invariants()
    rows, found = Rows(state), StateRows(state)
    codes = states.codes[: state.nodes.count]
    assert len(found) == states.size
    for resource in range(len(state.nodes.resources)):
        for name in ("allocatable", "divisor", "requested"):
            np.testing.assert_array_equal(getattr(found, name)(resource)[codes], getattr(rows, name)(resource))
    for resource in (0, 1):
        np.testing.assert_array_equal(found.non_zero_requested(resource)[codes], rows.non_zero_requested(resource))
    for name in ("pod_count", "allowed_pods"):
        np.testing.assert_array_equal(getattr(found, name)()[codes], getattr(rows, name)())
    for name in ("divisors", "requested", "non_zero_requested", "hundredfold"):
        columns = getattr(found, f"cpu_memory_{name}")()
        np.testing.assert_array_equal(columns[:, codes], getattr(rows, f"cpu_memory_{name}")())
    pod = np.array([[100.0], [5.0]])
    np.testing.assert_array_equal(
        found.cpu_memory_requested_with(pod)[:, codes], rows.cpu_memory_requested_with(pod)[:, : state.nodes.count]
    )
    alive = state.nodes.alive[: state.nodes.count]
    np.testing.assert_array_equal(found.crowded()[codes][alive], rows.crowded()[alive])
    if states.crowded_count:
        assert found.some_crowded()
    free = rows.cpu_memory_divisors() - rows.cpu_memory_requested()
    assert (np.array(states.least_free) <= free.min(axis=1)).all()
    assert (np.array(states.least_hundredfold) <= rows.cpu_memory_hundredfold().min(axis=1)).all()
    some = np.array([codes[-1], codes[0]], dtype=np.intp)
    np.testing.assert_array_equal(found.at(some).requested(0), rows.requested(0)[[-1, 0]])
    assert len(found.at(some)) == 2
    for code in {int(codes[0]), int(codes[-1])}:
        assert states.rows_of(code) == (codes == code).nonzero()[0].tolist()


@pytest.mark.parametrize("seed", range(6))
def test_states_follow_pods_that_come_and_go(seed: int) -> None:
    random = Random(seed)
    state = make_state(12)
    names: list[str] = []
    for step in range(150):
        if names and random.random() < 0.4:
            state.remove_pod(f"default/{names.pop(random.randrange(len(names)))}")
        else:
            names.append(f"p{step}")
            place(state, names[-1], random.randrange(12), cpu=f"{random.randrange(1, 4)}00m")
        if random.random() < 0.3:
            check(state)
    check(state)
    state.check_invariants()


def test_states_follow_nodes_names_of_resources_and_trials() -> None:
    state = make_state(5)
    place(state, "p", 1)
    check(state)
    state.add_node(make_node("another").capacity(cpu="64", memory="1Gi").obj())
    check(state)
    state.update_node(make_node("n0003").capacity(cpu="2", memory="8Gi").obj())
    check(state)
    state.register_resource("example.com/more")
    check(state)
    with state.trial():
        place(state, "tried", 2)
        check(state)
    check(state)
    state.remove_node("n0001")
    check(state)
    for number in range(100):
        state.add_node(make_node(f"m{number}").obj())
        place(state, f"q{number}", number % 5, cpu=f"{number + 1}m")
        check(state)


def test_many_new_states_find_room() -> None:
    state = make_state(200)
    check(state)
    for number in range(200):
        place(state, f"p{number}", number, cpu=f"{number + 1}m")
        state.usage_states.follow()
    check(state)
    assert state.usage_states.size == 200, "the state of empty nodes is that of the last pod's now"


def test_nothing_is_done_for_few_nodes() -> None:
    state = make_state(30)
    assert not any(state.usage_states.inquire() for _ in range(200))


@pytest.fixture
def few_nodes_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_states, "FEWEST_ROWS", 10)


@pytest.mark.usefixtures("few_nodes_are_many")
def test_states_are_found_when_inquiries_were_worth_it() -> None:
    state = make_state(30)
    answers = [state.usage_states.inquire() for _ in range(40)]
    assert answers == [False] * 31 + [True] * 9
    place(state, "p", 0)
    assert state.usage_states.inquire(), "one change is followed at once"
    for number in range(20):
        place(state, f"q{number}", number)
    assert [state.usage_states.inquire() for _ in range(3)] == [False, True, True], "many take another inquiry"
    check(state)
    state.add_node(make_node("another").obj())
    assert not state.usage_states.inquire()


@pytest.mark.usefixtures("few_nodes_are_many")
def test_rows_are_looked_at_where_nearly_all_differ() -> None:
    state = make_state(30, different=True)
    assert not any(state.usage_states.inquire() for _ in range(200))


@pytest.mark.usefixtures("few_nodes_are_many")
def test_nothing_is_said_of_numbers_that_may_leave_int64() -> None:
    state = make_state(30)
    for _ in range(40):
        state.usage_states.inquire()
    assert state.usage_states.inquire()
    state.admit(1 << 62)
    assert not state.usage_states.inquire()


@pytest.mark.parametrize(
    ("ask", "want"),
    [
        pytest.param(lambda rows: rows.row_numbers(), "row numbers", id="which rows they are"),
        pytest.param(lambda rows: rows.unschedulable(), "cordons", id="whether they are cordoned"),
        pytest.param(lambda rows: rows.taints(), "taints", id="their taints"),
        pytest.param(lambda rows: rows.label("zone"), "the label zone", id="a label"),
        pytest.param(lambda rows: rows.has_label("zone"), "the label zone", id="whether there is a label"),
        pytest.param(lambda rows: rows.named(["n0"]), "names of nodes", id="their names"),
        pytest.param(lambda rows: rows.has_image("web"), "the image web", id="an image"),
        pytest.param(lambda rows: rows.host_port_conflicts(HostPort("", "TCP", 80)), "host ports", id="ports in use"),
    ],
)
def test_states_know_amounts_alone(ask: Callable[[StateRows], object], want: str) -> None:
    state = make_state(3)
    state.usage_states.follow()
    with pytest.raises(TypeError, match=f"amounts alone, and asks for {want}"):
        ask(StateRows(state))


@pytest.mark.parametrize(
    ("harm", "want"),
    [
        pytest.param("usage", "not what rows of them say", id="a state that says something else"),
        pytest.param("_held", "held by other rows", id="a wrong number of rows"),
        pytest.param("_rows", "rows of state 0", id="a row too many"),
    ],
)
def test_contradictions_are_told(harm: str, want: str) -> None:
    state = make_state(3)
    states = state.usage_states
    states.follow()
    states.rows_of(0)
    if harm == "usage":
        states.usage[1] += 1
    elif harm == "_held":
        states._held[0] += 1
    else:
        states._rows[0].append(7)
    with pytest.raises(InvariantError, match=want):
        state.check_invariants()
    state.add_node(make_node("another").obj())
    # Whoever inquires next finds the states of all rows anew.
    state.check_invariants()
