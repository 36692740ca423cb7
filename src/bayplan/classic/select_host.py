"""Choose the host among the nodes with the highest score: reservoir sampling over the list of priorities."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.engine.select_host import Pick, Ties
from bayplan.framework.status import Status, error
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState

EMPTY_PRIORITY_LIST = "empty priorityList"


def select_host(state: ClusterState, total: Ints, rows: Index, pick: Pick) -> tuple[int, int, Index] | Status:
    """Return the chosen row, the highest total, and all rows that have it, in the order of the list; or an error.

    Args:
        state: the cluster.
        total: int64[capacity], the total scores.
        rows: intp, the feasible rows in the order in which they were found.
        pick: the function that chooses among equals.
    """
    if not len(rows):
        return error(EMPTY_PRIORITY_LIST)
    scores = total[rows]
    highest = int(scores.max())
    ties: Index = rows[scores == highest]
    return pick(state, ties), highest, ties


def reservoir_pick(random: Callable[[], float]) -> Pick:
    """Return a pick that walks the list and replaces the choice by the n-th equal with probability 1/n.

    It jumps from one replacement to the next: after the n-th, the probability that the next one is beyond the k-th is n/k.

    Args:
        random: the function that returns a number from 0 to below 1.
    """

    def pick(state: ClusterState, rows: Ties) -> int:
        count, selected = len(rows), 1
        while (following := int(selected / (1.0 - random())) + 1) <= count:
            selected = following
        return int(rows[selected - 1])

    return pick
