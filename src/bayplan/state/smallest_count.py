"""The smallest count of pods among the nodes that count, kept by deltas: what spreading over host names compares with."""

from __future__ import annotations

import numpy as np

from bayplan.state.arrays import Ints
from bayplan.state.counters import MOST_STEPS, Counter, Eligibility

NO_NODE = (1 << 31) - 1
"""What the smallest count is where no node counts."""


class SmallestCount:
    """The smallest count of a counter over eligible nodes.

    Args:
        counter: the pods per row.
        eligibility: which nodes count.
    """

    __slots__ = ("_counter", "_eligibility", "_held", "_node_position", "_nodes", "_position", "_seen", "_smallest")

    def __init__(self, counter: Counter, eligibility: Eligibility) -> None:
        self._counter = counter
        self._eligibility = eligibility
        self._position = -1
        self._node_position = -1
        self._seen: Ints = counter.values
        # How many nodes have which count.
        self._held: dict[int, int] = {}
        self._nodes = 0
        self._smallest = 0

    def now(self, node_position: int) -> tuple[int, int]:
        """Return the smallest count (`NO_NODE` without any) and how many nodes count.

        `node_position` is the end of the log of changed nodes.
        """
        counter, log = self._counter, self._counter.log
        if node_position == self._node_position:
            if self._position == log.end:
                return self._smallest, self._nodes
            rows = log.since(self._position)
            if rows is not None and len(rows) <= MOST_STEPS:
                mask = self._eligibility.mask(node_position)
                for row in rows:
                    if mask.item(row):
                        self._move(row, counter.values.item(row))
                self._position = log.end
                return self._smallest, self._nodes
        mask = self._eligibility.mask(node_position)
        self._seen = counter.values.copy()
        values, held = np.unique(self._seen[: len(mask)][mask], return_counts=True)
        self._held = dict(zip(values.tolist(), held.tolist(), strict=True))
        self._nodes = int(held.sum())
        self._smallest = int(values[0]) if len(values) else NO_NODE
        self._position, self._node_position = log.end, node_position
        return self._smallest, self._nodes

    def _move(self, row: int, now: int) -> None:
        before, held = self._seen.item(row), self._held
        if before == now:
            return
        self._seen[row] = now
        held[now] = held.get(now, 0) + 1
        held[before] -= 1
        if now < self._smallest:
            self._smallest = now
        elif before == self._smallest and not held[before]:
            self._smallest = min(count for count, nodes in held.items() if nodes)
