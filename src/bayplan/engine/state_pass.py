"""A full pass over all rows of which only the states are asked about (`bayplan.state.usage_states`): for plans that come once.

Thousands of rows are in a few states. What rules about amounts say of these is found for each state, and looked up for rows only
where that is needed: the best rows are all rows in the best states.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.engine.part import FilterPart, ScorePart
from bayplan.engine.tie_set import BestRows
from bayplan.framework.status import ERROR_BIT
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.state_rows import StateRows


class StatePass:
    """What the rules of one plan say of the states that rows are in now.

    Made by `begin`. It holds until pods or nodes come or go, or states get other numbers.

    Attributes:
        passing: bool[states], those that all filters let pass that were asked; None: all. failing: whether one said Error.
        worths: int64[states], the weighted scores of the scorers that were asked; None before the first of them.
    """

    __slots__ = ("_position", "_rows", "_state", "_states", "_total", "failing", "passing", "worths")

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._states = state.usage_states
        self._rows = StateRows(state)
        self._position = self._now()
        self._total: Ints | None = None
        self.passing: Bools | None = None
        self.failing = False
        self.worths: Ints | None = None

    @classmethod
    def begin(cls, state: ClusterState) -> StatePass | None:
        """Return a pass over the states of now; None where looking at rows is no slower."""
        return cls(state) if state.usage_states.inquire() else None

    def holds(self) -> bool:
        """Return whether nothing has changed since."""
        return self._position == self._now()

    def _now(self) -> tuple[int, int, int]:
        return self._state.usage_log.end, self._state.node_log.end, self._states.era

    def filter(self, part: FilterPart) -> None:
        """Ask a filter that follows from states."""
        verdicts = part.evaluate(self._rows)
        if verdicts.item(verdicts.argmax()):
            verdicts[self._states.unheld] = 0
            self.failing |= bool((verdicts >= ERROR_BIT).any())
            passing = verdicts == 0
            self.passing = passing if self.passing is None else self.passing & passing

    def narrow(self, feasible: Bools) -> None:
        """Take the rows out of `feasible` (bool[capacity]) that are in states which do not pass."""
        if self.passing is not None:
            count = self._state.nodes.count
            feasible[:count] &= self.passing.take(self._states.codes[:count])

    def weigh(self, part: ScorePart, weight: int) -> None:
        """Ask a scorer that follows from states and has no NormalizeScore."""
        weighted = part.evaluate(self._rows)
        if weight != 1:
            weighted = weight * weighted
        self.worths = weighted if self.worths is None else self.worths + weighted

    def add_to(self, total: Ints) -> None:
        """Add what scorers said to totals (int64[rows in use])."""
        if self.worths is not None:
            total += self.worths.take(self._states.codes[: len(total)])

    # Where nothing but their states tells rows apart: what is worth most.

    def close(self, parts: Sequence[tuple[ScorePart, int]], level: int) -> None:
        """Ask scorers, by their weights. Every row is worth so much more, and is feasible if its state passes."""
        for part, weight in parts:
            self.weigh(part, weight)
        worths = np.zeros(len(self._rows), dtype=np.int64) if self.worths is None else self.worths
        worths = self.worths = worths + level
        worths[self._states.unheld] = -1
        if self.passing is not None:
            worths[~self.passing] = -1

    def best(self) -> tuple[int, BestRows]:
        """Return the highest total and the rows that have it, ascending. They may change with the next change of the cluster."""
        worths = self.worths
        assert worths is not None
        highest = worths.item(worths.argmax())
        alike = worths == highest
        places = alike.nonzero()[0]
        if len(places) == 1:
            return highest, self._states.rows_of(places.item())
        return highest, alike.take(self._states.codes[: self._state.nodes.count]).nonzero()[0]

    def total(self) -> Ints:
        """Return int64[capacity], the totals; -1 where a row is not feasible."""
        if self._total is None:
            if not self.holds():
                raise InvariantError("totals are asked for whose states are no longer known")
            assert self.worths is not None
            count = self._state.nodes.count
            self._total = np.full(self._state.nodes.capacity, -1, dtype=np.int64)
            self._total[:count] = self.worths.take(self._states.codes[:count])
        return self._total
