"""Select the host among the nodes with the highest score: reservoir sampling over the list of priorities."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.engine.select_host import Pick, Ties
from bayplan.framework.status import Status, error
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState

EMPTY_PRIORITY_LIST = "empty priorityList"


def select_host(state: ClusterState, total: Ints, rows: Index, pick: Pick) -> tuple[int, int, Index] | Status:
    """Return the chosen row, the highest total, and the rows that have it, in the order of `rows`; or an Error.

    Args:
        state: the cluster.
        total: int64[capacity], the total scores.
        rows: intp, the feasible rows in the order in which they were found.
        pick: the function that chooses one of several best nodes.
    """
    if not len(rows):
        return error(EMPTY_PRIORITY_LIST)
    scores = total[rows]
    highest = int(scores.max())
    ties: Index = rows[scores == highest]
    return pick(state, ties), highest, ties


def reservoir_pick(random: Callable[[], float]) -> Pick:
    """Return a pick that draws as upstream's reservoir: the n-th row replaces the choice with probability 1/n.

    It jumps from one replacement to the next: after a replacement by the n-th row, the probability that the next one is
    beyond the k-th row is n/k.

    Args:
        random: the function that returns a number from 0 up to, but excluding, 1.
    """

    def pick(state: ClusterState, rows: Ties) -> int:
        count, selected = len(rows), 1
        while (following := int(selected / (1.0 - random())) + 1) <= count:
            selected = following
        return int(rows[selected - 1])

    return pick
