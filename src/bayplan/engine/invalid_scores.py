"""Normalised scores outside of 0 to 100, which end a cycle with an Error."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from bayplan.framework.status import Status, error
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState


def invalid_score(state: ClusterState, scores: Iterable[tuple[str, Ints]], feasible: Bools) -> Status | None:
    """Return the Error for the first feasible node, by name, with such a score; None if there is none.

    Args:
        state: the cluster.
        scores: per plugin int64[rows in use], in order.
        feasible: bool[rows in use].
    """
    worst: tuple[str, str, int] | None = None
    names = state.nodes.names
    for plugin, normalized in scores:
        bad = np.flatnonzero(feasible & ((normalized > MAX_NODE_SCORE) | (normalized < MIN_NODE_SCORE)))
        for row in bad.tolist():
            name = names[row] or ""
            if worst is None or name < worst[0]:
                worst = (name, plugin, int(normalized[row]))
    if worst is None:
        return None
    return error(
        f'applying score defaultWeights on Score plugins: plugin "{worst[1]}" returns an invalid score {worst[2]}, '
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    ).by(worst[1])
