"""Choose among the nodes with the highest total: the tie set, and the seeded pick from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bayplan.engine.best_rows import BestRows
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState

Ties: TypeAlias = list[int] | Index | BestRows
"""Row numbers, ascending."""

Pick = Callable[[ClusterState, Ties], int]
"""Chooses a row from a tie set (never empty)."""


def tie_set(total: Ints, count: int) -> tuple[int, Index]:
    """Return the highest total of the first `count` rows and the rows that have it; -1 and no rows if none is feasible."""
    total = total[:count]
    highest = int(total.max(initial=-1))
    return highest, (total == highest).nonzero()[0] if highest >= 0 else total.nonzero()[0][:0]


def seeded_pick(random: Callable[[], float]) -> Pick:
    """Return a pick that draws from a stream of floats in [0, 1): one draw for each tie set of more than one row."""

    def pick(state: ClusterState, rows: Ties) -> int:
        count = len(rows)
        return int(rows[int(random() * count)]) if count > 1 else int(rows[0])

    return pick


def first_by_name(state: ClusterState, rows: Ties) -> int:
    """Pick the node whose name sorts first, as recorded answers do."""
    names = state.nodes.names
    return int(min(map(int, rows), key=lambda row: names[row] or ""))
