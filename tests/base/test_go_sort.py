"""Go's order of equal items; `go_sort.jsonl` has the results of Go for some slices (`oracle/BIN/sort`)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.go_sort import MAX_INSERTION_SORTED, sort_slice

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "go_sort.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["note"]) for case in RECORDED])
def test_equal_items_are_ordered_as_in_go(case: dict[str, Any]) -> None:
    ranks = case["ranks"]
    assert sort_slice(range(len(ranks)), ranks.__getitem__) == case["places"]


@given(st.lists(st.integers(0, 5), max_size=120))
def test_sort_slice_returns_a_sorted_permutation(ranks: list[int]) -> None:
    places = sort_slice(range(len(ranks)), ranks.__getitem__)
    assert sorted(places) == [*range(len(ranks))]
    assert [ranks[place] for place in places] == sorted(ranks)


@given(st.lists(st.integers(0, 5), max_size=MAX_INSERTION_SORTED))
def test_sorting_a_short_list_is_stable(ranks: list[int]) -> None:
    places = sort_slice(range(len(ranks)), ranks.__getitem__)
    assert places == sorted(range(len(ranks)), key=ranks.__getitem__)
