"""What is taken and free of CPU and memory as floats: columns for rules that divide, kept from one full pass to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.state.amount_columns import AmountColumns
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, POD_COUNT

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState

FEW_ROWS = 64
"""Up to here rows that changed are copied one by one; more of them, all at once."""

REQUESTED = slice(FIRST_RESOURCE, FIRST_RESOURCE + 2)
NON_ZERO = slice(NON_ZERO_CPU, NON_ZERO_CPU + 2)
"""Rows of CPU and memory in the usage matrix."""


class UsageFloats(AmountColumns):
    """Follows the usage of a cluster: its places are the rows of the node table. All holds as of the last `follow`."""

    __slots__ = ("_node_position", "_state", "_usage_position")

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.usage_log)
        self._state = state
        self._node_position = self._usage_position = -1

    def follow(self) -> UsageFloats:
        """Bring the columns up to date with the usage matrix; return this object."""
        state = self._state
        end = state.usage_log.end
        if self._usage_position == end and self._node_position == state.node_log.end:
            return self
        rows = state.usage_log.since(self._usage_position)
        if (
            rows is None
            or len(rows) > FEW_ROWS
            or self._node_position != state.node_log.end
            or self.offered.shape[1] != state.usage.shape[1]
        ):
            self.offered = state.nodes.divisors[:2].copy()
            self.requested = state.usage[REQUESTED].astype(np.float64)
            self.non_zero = state.usage[NON_ZERO].astype(np.float64)
            self.hundredfold = 100.0 * (self.offered - self.non_zero)
            self.crowded = (state.usage[POD_COUNT] >= state.nodes.allowed_pods) & state.nodes.alive
            self._bound(state.nodes.count)
            self._sum = None
            self.era = state.node_log.end
        else:
            for row in rows:
                self._take(row, state.usage[:, row].tolist(), state.nodes.allowed_pods.item(row))
        self._usage_position, self._node_position = end, state.node_log.end
        return self
