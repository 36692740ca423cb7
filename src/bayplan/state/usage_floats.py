"""What pods take of nodes as floats: a copy of the usage matrix for rules that divide, kept from one full pass to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.state.arrays import Floats

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState

FEW_ROWS = 64
"""Up to here rows that changed are copied one by one; more of them, all at once."""


class UsageFloats:
    """Follows the usage of a cluster. Exact while the state is ``small``."""

    __slots__ = ("_node_position", "_state", "_usage_position", "_values")

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._node_position = self._usage_position = -1
        self._values: Floats = np.zeros((0, 0), dtype=np.float64)

    def now(self) -> Floats:
        """Return float64[3 + resources, capacity], the usage matrix as it is now. Not to be written to."""
        state, values = self._state, self._values
        rows = state.usage_log.since(self._usage_position)
        if (
            rows is None
            or len(rows) > FEW_ROWS
            or self._node_position != state.node_log.end
            or values.shape != state.usage.shape
        ):
            values = self._values = state.usage.astype(np.float64)
        else:
            for row in rows:
                values[:, row] = state.usage[:, row]
        self._usage_position, self._node_position = state.usage_log.end, state.node_log.end
        return values
