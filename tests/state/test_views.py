"""The number functions of the views: Go's arithmetic on arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

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
    """Return the number wrapped as Go's int64."""
    return (number + 2**63) % 2**64 - 2**63


def go_quotient(dividend: int, divisor: int) -> int:
    magnitude = abs(dividend) // abs(divisor)
    return wrapped(magnitude if (dividend < 0) == (divisor < 0) else -magnitude)


@given(dividend=INT64, divisor=INT64.filter(bool))
def test_large_integers_are_divided_as_in_go(dividend: int, divisor: int) -> None:
    rows = Rows(LARGE_STATE)
    found = rows.quotient(np.array([dividend], dtype=np.int64), np.array([divisor], dtype=np.int64))
    assert found.tolist() == [go_quotient(dividend, divisor)]


@given(dividend=SMALL.map(lambda number: number * 100), divisor=SMALL.filter(bool))
def test_small_integers_are_divided_as_in_go(dividend: int, divisor: int) -> None:
    found = Rows(SMALL_STATE).quotient(np.array([dividend], dtype=np.int64), np.array([divisor], dtype=np.int64))
    assert found.tolist() == [go_quotient(dividend, divisor)]


@pytest.mark.parametrize(
    ("number", "want"),
    [
        pytest.param(2.9, 2, id="cut"),
        pytest.param(-2.9, -2, id="towards zero"),
        pytest.param(-(2.0**63), -(2**63), id="the smallest int64"),
        pytest.param(2.0**63, -(2**63), id="a value outside int64 becomes the smallest int64, as on amd64"),
        pytest.param(-1e300, -(2**63), id="on both sides"),
        pytest.param(float("nan"), -(2**63), id="NaN becomes the smallest int64"),
    ],
)
def test_floats_are_truncated_as_in_go(number: float, want: int) -> None:
    assert Rows(LARGE_STATE).trunc(np.array([number])).tolist() == [want]


@pytest.mark.parametrize(
    ("amount", "want"),
    [
        pytest.param(0, True, id="nothing"),
        pytest.param(2**62 - 1, True, id="a request far above all nodes can't make a sum wrap"),
        pytest.param(2**62, False, id="one that could"),
        pytest.param(-1, False, id="a negative one"),
    ],
)
def test_admitting_an_overflowing_request_clears_small(amount: int, want: bool) -> None:
    state = make_state("1Gi")
    state.admit(amount)
    assert state.small is want


def test_image_rows_follow_node_changes() -> None:
    state = make_state("1", "1")

    def holding(name: str, *images: str) -> Node:
        status = {"allocatable": {"cpu": "2"}, "images": [{"names": list(images), "sizeBytes": 5}]}
        node = decode({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
        assert isinstance(node, Node)
        return node

    def rows_with(name: str) -> list[int]:
        image = state.nodes.images.get(name)
        return sorted(image.rows) if image is not None else []

    assert rows_with("a") == []
    state.add_node(holding("n1", "a", "b"))
    assert rows_with("a") == [1]
    state.add_node(holding("n2", "a"))
    assert rows_with("a") == [1, 2]
    assert rows_with("b") == [1]
    state.update_node(holding("n1", "b"))
    assert rows_with("a") == [2]
