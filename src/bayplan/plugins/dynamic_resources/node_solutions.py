"""The allocations of one kind of claims on each node; only rows that changed are searched again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bayplan.objects.node import Node
from bayplan.objects.resource import ResourceClaim
from bayplan.plugins.dynamic_resources.allocator import ChosenClaim, SearchTimedOut
from bayplan.plugins.dynamic_resources.preferences import preference, prefers
from bayplan.plugins.dynamic_resources.selectors import AllocationFailed
from bayplan.state.arrays import Codes, Ints
from bayplan.state.row_log import RowLog

SOLVED = 0
UNSOLVED = 1
INVALID = 2
FAILED = 3
"""The search fails with a text that names the claim: search again to get it."""


class InvalidPools(Exception):
    """Nothing was found, and a pool of the node is invalid: only this node is out. Caught in this package."""


class Searcher(Protocol):
    """Searches nodes; `NodeAllocator`."""

    log: RowLog
    epoch: int

    def search(self, node: Node, claims: Sequence[ResourceClaim]) -> tuple[ChosenClaim, ...] | None:
        """Return what each claim would get on a node."""
        ...


class NodeSolutions:
    """The solutions of one kind of claims, by row.

    Attributes:
        outcomes: uint16[capacity], SOLVED, UNSOLVED, INVALID or FAILED; undefined in rows that are not in use.
        chosen: the devices for each claim, if there is a solution.
        preferences: int64[capacity], the score of the chosen alternatives.
    """

    def __init__(self, searcher: Searcher) -> None:
        self.outcomes: Codes = np.zeros(0, dtype=np.uint16)
        self.preferences: Ints = np.zeros(0, dtype=np.int64)
        self.chosen: list[tuple[ChosenClaim, ...] | None] = []
        self._searcher = searcher
        self._epoch = self._position = -1

    def refresh(self, claims: Sequence[ResourceClaim], nodes: Sequence[Node | None], capacity: int) -> None:
        """Search again where something changed, for claims of this kind."""
        searcher = self._searcher
        rows = searcher.log.since(self._position) if self._epoch == searcher.epoch else None
        self._epoch, self._position = searcher.epoch, searcher.log.end
        missing = capacity - len(self.chosen)
        if missing > 0:
            self.outcomes = np.concatenate([self.outcomes, np.zeros(missing, dtype=np.uint16)])
            self.preferences = np.concatenate([self.preferences, np.zeros(missing, dtype=np.int64)])
            self.chosen += [None] * missing
        ranked = prefers(claims)
        for row in range(len(nodes)) if rows is None else dict.fromkeys(rows):
            node = nodes[row]
            if node is not None:
                self._search(row, node, claims, ranked=ranked)

    def _search(self, row: int, node: Node, claims: Sequence[ResourceClaim], *, ranked: bool) -> None:
        chosen = None
        try:
            chosen = self._searcher.search(node, claims)
            outcome = UNSOLVED if chosen is None else SOLVED
        except InvalidPools:
            outcome = INVALID
        except (AllocationFailed, SearchTimedOut):
            outcome = FAILED
        self.chosen[row] = chosen
        self.outcomes[row] = outcome
        score = 0
        if ranked and chosen is not None:
            for claim, part in zip(claims, chosen, strict=True):
                score += preference(claim, {device.wish.wish.full_name for device in part.devices})
        self.preferences[row] = score
