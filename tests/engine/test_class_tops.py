"""The best rows by classes are those that a look at the sums of all rows finds, whatever moves in between."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bayplan.engine.class_tops import NOBODY, ClassTops
from bayplan.state.arrays import Index, Ints

ROWS = 14


def best_of_all(member: list[int], own: list[int], worth: Ints) -> tuple[int, list[int]]:
    """Return what every row taken by itself gives."""
    sums = [own[row] + worth[code].item() if code >= 0 else -1 for row, code in enumerate(member)]
    highest = max(sums)
    return (highest, [row for row, total in enumerate(sums) if total == highest]) if highest >= 0 else (-1, [])


@pytest.mark.parametrize("classes", [1, 3, 9])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_rows_are_those_of_all_sums(seed: int, classes: int) -> None:
    random = Random(seed)
    member = [random.randrange(-1, classes) for _ in range(ROWS)]
    own = [random.randrange(4) for _ in range(ROWS)]
    codes: Index = np.array(member, dtype=np.intp)
    tops = ClassTops(codes, classes)
    tops.start(np.array(own, dtype=np.int64))
    worth: Ints = np.zeros(classes, dtype=np.int64)
    for _ in range(200):
        if random.random() < 0.1:
            classes += 1
            tops.grow(classes)
            worth = np.append(worth, 0)
        if random.random() < 0.5:
            worth = np.array([random.choice((0, 1, 2, NOBODY)) for _ in range(classes)], dtype=np.int64)
        changed = random.sample(range(ROWS), random.choice((0, 1, 1, 2, 6)))
        for row in changed:
            member[row], own[row] = random.randrange(-1, classes), random.randrange(4)
            tops.move(row, member[row])
        for row in changed:
            tops.enter(row, own[row])
        highest, rows = tops.best(worth)
        assert (highest, list(map(int, rows))) == best_of_all(member, own, worth)
        assert tops.held.tolist() == [member.count(code) for code in range(classes)]
