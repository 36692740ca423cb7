"""The choice among equally good hosts, by reservoir sampling over the list of priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from bayplan.base.random_streams import RandomStreams
from bayplan.classic.assemble import assemble_classic_scheduler, seeded_pick
from bayplan.classic.select_host import EMPTY_PRIORITY_LIST, reservoir_pick, select_host
from bayplan.engine.select_host import first_by_name
from bayplan.framework.status import Code, Status
from bayplan.state.cluster_state import ClusterState
from bayplan.testing.builders import make_pod
from tests.classic.cycles import configured, node

SEEDS = 10_000
CRITICAL = {2: 10.83, 3: 13.82, 7: 22.46, 100: 148.23}
"""Chi-square quantiles, exceeded with a probability of 0.001, by the number of equal nodes."""


@pytest.mark.parametrize("equals", CRITICAL)
def test_picks_are_uniform_over_seeds(equals: int) -> None:
    state, rows = ClusterState(), list(range(equals))
    counts: Counter[int] = Counter()
    for seed in range(SEEDS):
        counts[seeded_pick(RandomStreams(seed), "select_host")(state, rows)] += 1
    expected = SEEDS / equals
    assert sum((counts[row] - expected) ** 2 / expected for row in rows) < CRITICAL[equals]


@pytest.mark.parametrize("equals", CRITICAL)
def test_picks_are_uniform_within_one_stream(equals: int) -> None:
    state, rows = ClusterState(), list(range(equals))
    pick = seeded_pick(RandomStreams(7), "select_host")
    counts = Counter(pick(state, rows) for _ in range(SEEDS))
    expected = SEEDS / equals
    assert sum((counts[row] - expected) ** 2 / expected for row in rows) < CRITICAL[equals]


@pytest.mark.parametrize(
    ("drawn", "want"),
    [
        # After item n was selected, the next replacement is item floor(n / (1 - random)) + 1.
        pytest.param((0.9,), 4, id="the first stays: the next replacement is the 11th"),
        pytest.param((0.0, 0.9), 5, id="the second takes its place"),
        pytest.param((0.5, 0.9), 6, id="the third takes it"),
        pytest.param((0.0, 0.0, 0.0, 0.0), 7, id="each takes the place of the one before"),
    ],
)
def test_reservoir_pick_jumps_to_the_next_replacement(drawn: tuple[float, ...], want: int) -> None:
    numbers = iter(drawn)
    assert reservoir_pick(lambda: next(numbers))(ClusterState(), [4, 5, 6, 7]) == want
    assert list(numbers) == []


def test_reservoir_pick_has_the_distribution_of_upstreams_loop() -> None:
    # With five items, the documented walk and the jumps of this implementation select each item equally often.
    def walked(random: Callable[[], float]) -> int:
        selected = 1
        for count in range(2, 6):
            if random() * count < 1:
                selected = count
        return selected

    first, second = Random(1), Random(2)
    jump = reservoir_pick(second.random)
    by_walk = Counter(walked(first.random) for _ in range(SEEDS))
    by_jump = Counter(jump(ClusterState(), [1, 2, 3, 4, 5]) for _ in range(SEEDS))
    assert all(abs(by_walk[row] - by_jump[row]) < 250 for row in range(1, 6))


def test_a_single_node_is_always_picked() -> None:
    assert reservoir_pick(lambda: 0.0)(ClusterState(), [3]) == 3
    assert reservoir_pick(lambda: 1.0 - 2.0**-53)(ClusterState(), [3]) == 3


def test_an_empty_priority_list_is_an_error() -> None:
    found = select_host(ClusterState(), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp), first_by_name)
    assert isinstance(found, Status)
    assert (found.code, found.message) == (Code.ERROR, EMPTY_PRIORITY_LIST)
    assert EMPTY_PRIORITY_LIST == "empty priorityList"


def test_only_the_best_nodes_are_tied_in_list_order() -> None:
    seen: list[list[int]] = []

    def pick(state: ClusterState, rows: object) -> int:
        assert isinstance(rows, np.ndarray)
        seen.append(rows.tolist())
        return int(rows[-1])

    total = np.array([5, 9, 2, 9], dtype=np.int64)
    found = select_host(ClusterState(), total, np.array([3, 2, 1, 0], dtype=np.intp), pick)
    assert not isinstance(found, Status)
    row, highest, ties = found
    assert (row, highest, ties.tolist(), seen) == (1, 9, [3, 1], [[3, 1]])


def test_decisions_are_reproducible_with_a_seed_and_differ_between_seeds() -> None:
    def chosen(seed: int) -> list[str]:
        scheduler = assemble_classic_scheduler(configured(), seed=seed)
        for number in range(8):
            scheduler.handle(None, node(f"n{number}").obj(), 0)
        names = []
        for number in range(12):
            pod = make_pod(f"p{number}").req(cpu="0", memory="0").obj()
            scheduler.handle(None, pod, 0)
            report = scheduler.schedule_one(0)
            assert report is not None
            names.append(report.node_name)
        return names

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
