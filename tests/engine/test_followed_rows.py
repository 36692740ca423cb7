"""Rows that are followed one by one stay ascending, whether they are an array or a list."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from bayplan.engine.followed_rows import FollowedRows


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_those_that_are_left(seed: int) -> None:
    random = Random(seed)
    wanted = sorted(random.sample(range(40), 20))
    followed = FollowedRows(np.array(wanted, dtype=np.intp))
    for _ in range(30):
        row = random.randrange(40)
        if row in wanted:
            wanted.remove(row)
            followed.remove(row)
        elif random.random() < 0.5:
            wanted = sorted([*wanted, row])
            followed.add(row)
        assert list(followed.rows) == wanted


def test_an_array_that_somebody_holds_stays_as_it_is() -> None:
    rows = np.array([2, 4, 6], dtype=np.intp)
    followed = FollowedRows(rows)
    for row in (4, 2, 6):
        followed.remove(row)
    assert len(followed.rows) == 0
    assert rows.tolist() == [2, 4, 6]
