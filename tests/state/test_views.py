"""The number functions of the views: Go's arithmetic on arrays, and the same on one row of plain numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.state.cluster_state import ClusterState
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.views import GatheredRows, Row, Rows
from bayplan.testing.builders import make_pod

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-(2**46), 2**46)


def make_state(*memory: str) -> ClusterState:
    """Return a state with a node for each amount of memory."""
    state = ClusterState()
    for number, amount in enumerate(memory):
        allocatable = {"cpu": "2", "memory": amount, "pods": "9"}
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}}
        node = decode({**document, "status": {"allocatable": allocatable}})
        assert isinstance(node, Node)
        state.add_node(node)
    return state


SMALL_STATE, LARGE_STATE = make_state("1Gi"), make_state("1Ei")


def wrapped(number: int) -> int:
    """Return what Go's int64 keeps."""
    return (number + 2**63) % 2**64 - 2**63


def go_quotient(dividend: int, divisor: int) -> int:
    magnitude = abs(dividend) // abs(divisor)
    return wrapped(magnitude if (dividend < 0) == (divisor < 0) else -magnitude)


@given(dividend=INT64, divisor=INT64.filter(bool))
def test_large_integers_are_divided_as_go_does(dividend: int, divisor: int) -> None:
    rows = Rows(LARGE_STATE)
    found = rows.quotient(np.array([dividend], dtype=np.int64), np.array([divisor], dtype=np.int64))
    assert found.tolist() == [go_quotient(dividend, divisor)]


@given(dividend=INT64, divisor=INT64.filter(bool))
def test_large_integers_of_one_row_are_divided_as_go_does(dividend: int, divisor: int) -> None:
    number: object = Row(LARGE_STATE, 0).quotient(dividend, divisor)
    assert isinstance(number, int)
    assert wrapped(number) == go_quotient(dividend, divisor)


@given(dividend=SMALL.map(lambda number: number * 100), divisor=SMALL.filter(bool))
def test_small_integers_are_divided_as_go_does_in_both_views(dividend: int, divisor: int) -> None:
    rows, row = Rows(SMALL_STATE), Row(SMALL_STATE, 0)
    found = rows.quotient(np.array([dividend], dtype=np.int64), np.array([divisor], dtype=np.int64))
    number: object = row.quotient(dividend, divisor)
    assert found.tolist() == [number] == [go_quotient(dividend, divisor)]


@pytest.mark.parametrize(
    ("number", "want"),
    [
        pytest.param(2.9, 2, id="cut"),
        pytest.param(-2.9, -2, id="towards zero"),
        pytest.param(-(2.0**63), -(2**63), id="the smallest int64"),
        pytest.param(2.0**63, -(2**63), id="what does not fit becomes the smallest int64, as on amd64"),
        pytest.param(-1e300, -(2**63), id="on both sides"),
        pytest.param(float("nan"), -(2**63), id="and what is no number"),
    ],
)
def test_floats_become_integers_as_go_does(number: float, want: int) -> None:
    assert Rows(LARGE_STATE).trunc(np.array([number])).tolist() == [want]


@given(number=st.integers(-(2**70), 2**70))
def test_plain_numbers_are_wrapped(number: int) -> None:
    assert Row(SMALL_STATE, 0).wrap(number) == wrapped(number)


def test_columns_of_amounts_are_the_same_in_every_view() -> None:
    state = make_state("1Gi", "2Gi", "3Gi", "4Gi")
    for row in range(4):
        state.place(state.pod_info(make_pod(f"p{row}").req(cpu=f"{100 * row}m", memory="64Mi").obj()), row)
    before = Rows(state).cpu_memory_requested().copy()
    state.remove_pod("default/p1")
    state.place(state.pod_info(make_pod("more").obj()), 3)
    index = np.array([3, 1, 1], dtype=np.intp)
    everything, some, gathered = Rows(state), Rows(state, index), GatheredRows(state, index)
    pairs = {
        "cpu_memory_divisors": everything.divisor,
        "cpu_memory_requested": everything.requested,
        "cpu_memory_non_zero_requested": everything.non_zero_requested,
    }
    wanted = {name: np.stack([column(CPU), column(MEMORY)]).astype(np.float64) for name, column in pairs.items()}
    offered = wanted["cpu_memory_divisors"]
    wanted["cpu_memory_hundredfold"] = 100 * (offered - wanted["cpu_memory_non_zero_requested"])
    for name, want in wanted.items():
        assert np.array_equal(getattr(everything, name)(), want)
        assert np.array_equal(getattr(some, name)(), want[:, index])
        assert np.array_equal(getattr(gathered, name)(), want[:, index])
    assert not np.array_equal(everything.cpu_memory_requested(), before)
    for resource in (CPU, MEMORY):
        for number, row in enumerate(index.tolist()):
            one: Any = Row(state, row)
            assert gathered.requested(resource)[number] == some.requested(resource)[number] == one.requested(resource)
            assert gathered.allocatable(resource)[number] == one.allocatable(resource)
            assert gathered.divisor(resource)[number] == one.divisor(resource)
            assert gathered.non_zero_requested(resource)[number] == one.non_zero_requested(resource)
            assert (gathered.pod_count()[number], gathered.allowed_pods()[number]) == (
                one.pod_count(),
                one.allowed_pods(),
            )


def test_verdicts_are_united() -> None:
    state = make_state("1", "2", "3", "4")
    rows = Rows(state)
    odd, large = np.array([True, False, True, False]), np.array([False, False, True, True])
    found = rows.verdicts((odd, 1), (large, 0x4000), (odd & large, 2))
    assert (found.dtype, found.tolist()) == (np.dtype(np.uint16), [1, 0, 0x4003, 0x4000])
    assert rows.verdicts().tolist() == [0, 0, 0, 0]
    number: object = Row(state, 2).verdicts((True, 1), (True, 0x4000), (False, 8))
    assert number == 0x4001


def test_divisors_are_what_nodes_offer_and_1_where_they_offer_nothing() -> None:
    state = make_state("5", "0", "7")
    assert Rows(state).divisor(MEMORY).tolist() == [5.0, 1.0, 7.0]
    assert Rows(state, np.array([2], dtype=np.intp)).divisor(CPU).tolist() == [2000.0]
    number: object = Row(state, 1).divisor(MEMORY)
    assert number == 1.0


@pytest.mark.parametrize(
    ("memory", "want"),
    [
        pytest.param(["1Gi", "1"], True, id="every node has some memory"),
        pytest.param(["1Gi", "0"], False, id="one node has none"),
        pytest.param(["1Ei"], False, id="an amount is not small"),
        pytest.param([], True, id="there are no nodes"),
    ],
)
def test_a_state_is_regular_where_short_cuts_hold(memory: list[str], want: bool) -> None:
    state = make_state(*memory)
    assert state.regular is want
    state.check_invariants()


def test_a_state_becomes_regular_when_the_odd_node_goes() -> None:
    state = make_state("1Gi", "0")
    found = [state.regular, state.fork().regular]
    with state.trial():
        state.remove_node("n1")
        found.append(state.regular)
    found.append(state.regular)
    assert found == [False, False, True, False]
    state.check_invariants()


@pytest.mark.parametrize(
    ("amount", "want"),
    [
        pytest.param(0, True, id="nothing"),
        pytest.param(2**62 - 1, True, id="a request far above all nodes can't make a sum wrap"),
        pytest.param(2**62, False, id="one that could"),
        pytest.param(-1, False, id="a negative one"),
    ],
)
def test_admitting_a_request_that_could_make_sums_wrap_ends_being_small(amount: int, want: bool) -> None:
    state = make_state("1Gi")
    state.admit(amount)
    assert state.small is want


def test_images_of_rows_follow_the_nodes() -> None:
    state = make_state("1", "1")

    def holding(name: str, *images: str) -> Node:
        status = {"allocatable": {"cpu": "2"}, "images": [{"names": list(images), "sizeBytes": 5}]}
        node = decode({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
        assert isinstance(node, Node)
        return node

    assert Rows(state).has_image("a").tolist() == [False, False]
    state.add_node(holding("n1", "a", "b"))
    assert Rows(state).has_image("a").tolist() == [False, True]
    state.add_node(holding("n2", "a"))
    assert Rows(state).has_image("a").tolist() == [False, True, True]
    assert Rows(state).has_image("b").tolist() == [False, True, False]
    state.update_node(holding("n1", "b"))
    assert Rows(state).has_image("a").tolist() == [False, False, True]
    held: object = Row(state, 1).has_image("b")
    assert held is True
