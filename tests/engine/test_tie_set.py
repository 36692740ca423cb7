"""A tie set that is told of single moves holds what reading all totals would find."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.tie_set import TieSet

TOTALS = st.integers(min_value=-1, max_value=3)


@given(
    st.lists(TOTALS, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), TOTALS, st.booleans()), max_size=40),
)
def test_moves_give_what_a_new_look_gives(start: list[int], moves: list[tuple[int, int, bool]]) -> None:
    total = np.array(start, dtype=np.int64)
    ties = TieSet()
    for row, after, look in moves:
        place = row % len(total)
        if look:
            ties.of(total, len(total))
        ties.move(place, int(total[place]), after)
        total[place] = after
        if look:
            highest, rows = ties.of(total, len(total))
            wanted, found = TieSet().of(total, len(total))
            assert (highest, list(map(int, rows))) == (wanted, list(map(int, found)))


def test_forgetting_makes_the_next_look_a_new_one() -> None:
    total = np.array([1, 2, 2], dtype=np.int64)
    ties = TieSet()
    assert ties.of(total, 3)[0] == 2
    total[:] = (5, 0, 5)
    ties.forget()
    highest, rows = ties.of(total, 3)
    assert (highest, list(map(int, rows))) == (5, [0, 2])
