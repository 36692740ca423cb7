"""Sets of completion indexes, and the next index to start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.controllers.job_indexes import IndexSet, PendingIndexes, completion_index
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod


@pytest.mark.parametrize(
    ("indexes", "want"),
    [
        pytest.param([], "", id="none"),
        pytest.param([3], "3", id="one"),
        pytest.param([1, 0], "0,1", id="two neighbours are written out"),
        pytest.param([2, 0, 1], "0-2", id="three are an interval"),
        pytest.param([0, 1, 2, 5, 7, 8, 9], "0-2,5,7-9", id="several intervals"),
        pytest.param([4, 4, 4], "4", id="a repeated index"),
        pytest.param([5, 7, 6], "5-7", id="a gap is closed"),
    ],
)
def test_index_sets_are_formatted_as_intervals(indexes: list[int], want: str) -> None:
    got = IndexSet()
    for index in indexes:
        got.add(index)
    assert str(got) == want
    assert str(IndexSet(want)) == want
    assert len(got) == len(set(indexes))


@given(st.lists(st.integers(0, 40)))
def test_an_index_set_behaves_like_a_set(indexes: list[int]) -> None:
    got = IndexSet()
    for index in indexes:
        got.add(index)
    assert [index for index in range(42) if index in got] == sorted(set(indexes))
    assert len(got) == len(set(indexes))


def test_the_lowest_pending_indexes_are_returned_first() -> None:
    pending = PendingIndexes(done="0,2", failed="4")
    pending.start(1)
    assert pending.allocate(3, 10) == [3, 5, 6]
    for index in (3, 5, 6):
        pending.start(index)
    assert pending.allocate(9, 8) == [7]
    pending.start(7)
    pending.stop(5)
    pending.stop(1)
    assert pending.allocate(5, 8) == [1, 5]
    pending.release([5])
    assert pending.allocate(5, 8) == [5]


def test_a_completed_index_is_not_returned_again() -> None:
    pending = PendingIndexes()
    assert pending.allocate(2, 2) == [0, 1]
    pending.start(0)
    pending.done.add(0)
    pending.stop(0)
    pending.release([1])
    assert pending.allocate(2, 2) == [1]


@given(st.lists(st.tuples(st.sampled_from(["take", "stop", "done", "fail"]), st.integers(0, 9)), max_size=40))
def test_pending_indexes_match_a_linear_search(steps: list[tuple[str, int]]) -> None:
    pending = PendingIndexes()
    active: set[int] = set()
    over: set[int] = set()
    for action, number in steps:
        if action == "take":
            want = [index for index in range(10) if index not in active and index not in over][:number]
            assert pending.allocate(number, 10) == want
            for index in want:
                pending.start(index)
            active |= set(want)
        elif number in active:
            if action == "done":
                pending.done.add(number)
            elif action == "fail":
                pending.failed.add(number)
            if action != "stop":
                over.add(number)
            pending.stop(number)
            active.discard(number)


@pytest.mark.parametrize(("text", "want"), [("7", 7), ("0", 0), ("-1", -1), ("x", -1), ("", -1)])
def test_completion_index_parses_the_annotation(text: str, want: int) -> None:
    metadata = ObjectMeta(annotations={"batch.kubernetes.io/job-completion-index": text})
    assert completion_index(Pod(metadata=metadata)) == want
