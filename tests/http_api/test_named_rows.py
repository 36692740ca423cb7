"""Named rows and their order: after any additions and removals, it equals that of sorting all names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.http_api import named_rows
from bayplan.http_api.named_rows import NamedRows, NameOrder
from bayplan.state.arrays import Bools, Ints

Moment = tuple[int, list[str], Bools, Ints]

names = st.text("ab/", min_size=1, max_size=3)


def moment(rows: NamedRows) -> Moment:
    """Return copies, as readers hold them."""
    return rows.version, rows.names.copy(), rows.used.copy(), rows.born.copy()


def check(order: NameOrder, at: Moment) -> None:
    _, texts, used, _ = at
    want = sorted(text for text, is_used in zip(texts, used.tolist(), strict=False) if is_used)
    assert [texts[row] for row in order.at(*at).tolist()] == want


@pytest.mark.parametrize("most", [0, 2, 1000])
@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.lists(names, max_size=6), max_size=8))
def test_name_order_equals_sorting_all_names(most: int, steps: list[list[str]]) -> None:
    rows, order, moments = NamedRows(2), NameOrder(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named_rows, "MAX_INSERTED", most)
        for step in steps:
            for name in step:
                # An existing name is removed, a new name is added. A name may occur twice in a step.
                if rows.remove(name) is None:
                    rows.add(name)
            moments.append(moment(rows))
            check(order, moments[-1])
        for past in moments:
            check(order, past)


def test_columns_grow_and_free_rows_are_reused() -> None:
    table = {"cpu": np.zeros(1, dtype=np.int64)}
    rows = NamedRows(1, table)
    assert [rows.add(name) for name in "abc"] == [0, 1, 2]
    assert len(table["cpu"]) == len(rows.used) == 4
    assert rows.remove("b") == 1
    assert rows.remove("b") is None
    assert rows.add("d") == 1
    assert rows.rows == {"a": 0, "c": 2, "d": 1}
