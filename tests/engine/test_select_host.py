"""The choice among the best nodes: the set of equally good nodes, and a fair choice over many seeds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.random_streams import RandomStreams
from bayplan.engine.select_host import BestRows, Sample, first_by_name, seeded_pick
from bayplan.state.cluster_state import ClusterState
from bayplan.testing import make_node

CHI_SQUARE_999 = {1: 10.83, 2: 13.82, 4: 18.47, 6: 22.46}
"""Chi-square quantiles: the upper bound in 999 of 1,000 cases, by degrees of freedom."""


@pytest.mark.parametrize(
    ("total", "count", "want"),
    [
        pytest.param([3, 9, 5], 3, (9, [1]), id="one best node"),
        pytest.param([9, 3, 9, -1], 4, (9, [0, 2]), id="several"),
        pytest.param([0, -1, 0], 3, (0, [0, 2]), id="0 is a score"),
        pytest.param([-1, -1], 2, (-1, []), id="no feasible node"),
        pytest.param([1, 9], 1, (1, [0]), id="rows that are not in use don't count"),
        pytest.param([5], 0, (-1, []), id="no rows"),
        pytest.param([7, 7, 7], 3, (7, [0, 1, 2]), id="all are equal"),
    ],
)
def test_best_rows_returns_the_highest_total_and_its_rows(
    total: list[int], count: int, want: tuple[int, list[int]]
) -> None:
    values = np.array(total, dtype=np.int64)
    best = BestRows()
    best.begin(values, count)
    assert (best.search(), list(best)) == want
    assert [best[number] for number in range(len(best))] == want[1]
    highest, rows = Sample(np.arange(count, dtype=np.intp)[::-1].copy()).best(values)
    assert (highest, list(rows)) == want
    assert [rows[number] for number in range(len(rows))] == want[1]


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_the_first_pick_is_uniform_over_seeds(count: int) -> None:
    state, rows = ClusterState(), np.arange(10, 10 + count, dtype=np.intp)
    seeds = 2000 * count
    picked = [seeded_pick(RandomStreams(seed).stream("select_host").random)(state, rows) for seed in range(seeds)]
    observed = np.bincount(np.array(picked) - 10, minlength=count)
    assert observed.sum() == seeds
    assert float((((observed - 2000) ** 2) / 2000).sum()) < CHI_SQUARE_999[count - 1]


def test_picks_of_one_seed_are_uniform_and_independent() -> None:
    state, rows = ClusterState(), np.arange(3, dtype=np.intp)
    pick = seeded_pick(RandomStreams(1).stream("select_host").random)
    picked = np.array([pick(state, rows) for _ in range(9001)])
    pairs = np.bincount(picked[:-1] * 3 + picked[1:], minlength=9)
    # The limit of the chi-squared test with eight degrees of freedom.
    assert float((((pairs - 1000) ** 2) / 1000).sum()) < 26.12


def test_a_pick_from_a_single_row_draws_no_random_number() -> None:
    drawn = []

    def random() -> float:
        drawn.append(0.999999)
        return drawn[-1]

    pick, state = seeded_pick(random), ClusterState()
    assert pick(state, np.array([4], dtype=np.intp)) == 4
    assert drawn == []
    assert pick(state, np.array([4, 6, 8], dtype=np.intp)) == 8
    assert len(drawn) == 1


def test_the_smallest_draw_picks_the_first_row() -> None:
    assert seeded_pick(lambda: 0.0)(ClusterState(), np.array([4, 6], dtype=np.intp)) == 4


def test_first_by_name_sorts_by_name_instead_of_row() -> None:
    state = ClusterState()
    rows = {name: state.add_node(make_node(name).obj()) for name in ("n10", "n9", "a", "n1")}
    assert first_by_name(state, np.array(list(rows.values()), dtype=np.intp)) == rows["a"]
    assert first_by_name(state, np.array([rows["n10"], rows["n9"]], dtype=np.intp)) == rows["n10"]


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_updated_rows_give_the_same_best_rows_as_a_new_search(levels: list[int], random: Random) -> None:
    total = np.array([random.choice(levels) for _ in range(521)], dtype=np.int64)
    best = BestRows()
    best.begin(total, len(total))
    for _ in range(20):
        row, after = random.randrange(len(total)), random.choice(levels)
        before = int(total[row])
        total[row] = after
        if after != before:
            best.update(row, before, after)
        assert best.search() == total.max()
        want = np.flatnonzero(total == total.max()).tolist() if total.max() >= 0 else []
        assert list(best) == want
        assert [best[number] for number in reversed(range(len(best)))] == want[::-1]
    with pytest.raises(IndexError):
        best[len(best)]
