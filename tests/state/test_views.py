"""The number functions of the views: Go's arithmetic on arrays, and the same on one row of plain numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.state.cluster_state import ClusterState
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.views import Row, Rows

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


@given(part=SMALL, whole=st.integers(1, 2**46))
def test_percentages_are_exact_in_both_views(part: int, whole: int) -> None:
    want = 100 * part // whole if part > 0 else 0
    found = Rows(SMALL_STATE).percentage(np.array([float(part)]), np.array([float(whole)]))
    number: object = Row(SMALL_STATE, 0).percentage(float(part), float(whole))
    assert found.tolist() == [number] == [want]


@given(part=st.integers(0, 2**46), whole=st.integers(1, 2**46))
def test_shares_are_the_same_in_both_views(part: int, whole: int) -> None:
    found = Rows(SMALL_STATE).share(np.array([part], dtype=np.int64), np.array([float(whole)]))
    number: object = Row(SMALL_STATE, 0).share(part, float(whole))
    assert found.tolist() == [number] == [min(1.0, part / whole)]


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
