"""Choose among the nodes with the highest total: the tie set, and the seeded pick from it."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.engine.tie_set import BestRows, TieSet
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState

Pick = Callable[[ClusterState, BestRows], int]
"""Chooses a row from a tie set (row numbers, ascending, never empty)."""


def tie_set(total: Ints, count: int) -> tuple[int, BestRows]:
    """Return the highest total of the first `count` rows and the rows that have it; -1 and no rows where none is feasible."""
    return TieSet().of(total, count)


def seeded_pick(random: Callable[[], float]) -> Pick:
    """Return a pick that draws from a stream of floats in [0, 1): one draw for each tie set of more than one row."""

    def pick(state: ClusterState, rows: BestRows) -> int:
        count = len(rows)
        return int(rows[int(random() * count)]) if count > 1 else int(rows[0])

    return pick


def first_by_name(state: ClusterState, rows: BestRows) -> int:
    """Pick the node whose name sorts first, as recorded answers do."""
    names = state.nodes.names
    return int(min(map(int, rows), key=lambda row: names[row] or ""))
