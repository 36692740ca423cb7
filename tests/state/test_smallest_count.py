"""The smallest count among nodes that count is what a look at all of them gives, however counts and nodes change."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bayplan.state.arrays import Bools
from bayplan.state.counters import MOST_STEPS, Counter, Eligibility
from bayplan.state.smallest_count import NO_NODE, SmallestCount

ROWS = 12


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_count_follows_counts_and_nodes(seed: int) -> None:
    random = Random(seed)
    mask: Bools = np.ones(ROWS, dtype=np.bool_)
    counter, eligibility = Counter(ROWS, None), Eligibility((), lambda: mask.copy())
    smallest = SmallestCount(counter, eligibility)
    position = 0
    for _ in range(300):
        for _ in range(random.choice((0, 1, 1, 3, MOST_STEPS + 1))):
            row = random.randrange(ROWS)
            counter.add(row, random.choice((1, 2, -1)) if counter.values[row] else 1)
        if random.random() < 0.05:
            mask[:] = [random.random() < random.choice((0.1, 0.9)) for _ in range(ROWS)]
            position += 1
        counted = counter.values[mask].tolist()
        assert smallest.now(position) == (min(counted, default=NO_NODE), len(counted))
        assert eligibility.flags(position) == mask.tobytes()
