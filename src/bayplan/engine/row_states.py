"""Number the rows of the node table by what nodes offer and what their pods request: rows of one number are in the same state.

In most clusters states come again and again: machines are of a few kinds, and the pods on them of a few templates. What a rule
that reads nothing else said of one row it says of every row in that state, today and after any number of placements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bayplan.state.arrays import Index
from bayplan.state.cluster_state import ClusterState

StateNumbers: TypeAlias = npt.NDArray[np.uint16]
"""Small, as every plan keeps a copy and compares it."""

MOST_STATES = 4096
"""So many states are told apart; then numbering begins anew."""

TRIAL = 1024
"""So many changes of rows are looked at before it is decided whether states come again."""

REST = 32 * TRIAL
"""Where at least every second change made a new state, nothing is numbered for so many changes."""


class RowStates:
    """The state of every row of the node table, as a number that stays the same while a generation lasts.

    Args:
        state: the cluster.

    Attributes:
        numbers: uint16[capacity], the state of each row; meaningful after `follow` has said so.
        codes: intp[capacity], the same, to gather by.
        generation: moves when numbering begins anew. size: how many states have a number.
    """

    __slots__ = (
        "_begun",
        "_fresh",
        "_known",
        "_node_position",
        "_offers",
        "_offers_known",
        "_rest_until",
        "_state",
        "_usage_position",
        "codes",
        "generation",
        "numbers",
    )

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._known: dict[tuple[int, bytes], int] = {}
        self._offers_known: dict[tuple[bytes, int], int] = {}
        # What each row offers, as a number.
        self._offers: list[int] = []
        self._node_position = self._usage_position = -1
        # When the current trial began, how many states were new since, and until when nothing is numbered; positions in the log.
        self._begun = 0
        self._fresh = 0
        self._rest_until = -1
        self.generation = 0
        self.numbers: StateNumbers = np.zeros(0, dtype=np.uint16)
        self.codes: Index = np.zeros(0, dtype=np.intp)

    @property
    def size(self) -> int:
        """Return how many states have a number."""
        return len(self._known)

    def follow(self) -> bool:
        """Bring `numbers` up to date; return False where states hardly ever come again, and nothing is numbered."""
        state = self._state
        end = state.usage_log.end
        if end == self._usage_position and state.node_log.end == self._node_position:
            return True
        if end < self._rest_until:
            return False
        rows = state.usage_log.since(self._usage_position)
        nodes = state.node_log.since(self._node_position)
        many = rows is None or nodes is None or len(rows) + len(nodes) > TRIAL
        if rows is None or nodes is None or many or len(self.numbers) != state.nodes.capacity:
            self._begin()
            return True
        if nodes:
            self._look_at(nodes)
            rows = rows + nodes
            self._node_position = state.node_log.end
        for row in rows if len(rows) < 3 else dict.fromkeys(rows):
            self._number(row)
        self._usage_position = end
        if end - self._begun >= TRIAL:
            return self._judge(end)
        if len(self._known) > MOST_STATES:
            self._begin()
        return True

    def _look_at(self, rows: Iterable[int]) -> None:
        """Note what rows offer."""
        nodes, offers = self._state.nodes, self._offers_known
        for row in rows:
            offer = (nodes.allocatable[:, row].tobytes(), nodes.allowed_pods.item(row))
            self._offers[row] = offers.setdefault(offer, len(offers))

    def _number(self, row: int) -> None:
        key = (self._offers[row], self._state.usage[:, row].tobytes())
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._known)
            self._fresh += 1
        self.numbers[row] = self.codes[row] = number

    def _begin(self) -> None:
        """Number all rows anew."""
        state, nodes = self._state, self._state.nodes
        self.generation += 1
        self.numbers = np.zeros(nodes.capacity, dtype=np.uint16)
        self.codes = np.zeros(nodes.capacity, dtype=np.intp)
        self._known.clear()
        self._offers_known.clear()
        self._offers = [0] * nodes.capacity
        self._look_at(range(nodes.count))
        for row in range(nodes.count):
            self._number(row)
        self._node_position, self._usage_position = state.node_log.end, state.usage_log.end
        self._begun, self._fresh = self._usage_position, 0

    def _judge(self, end: int) -> bool:
        """End a trial: go on numbering, or rest because nearly every change makes another state."""
        worthwhile = 2 * self._fresh < end - self._begun
        self._begun, self._fresh = end, 0
        if not worthwhile:
            self._rest_until = end + REST
            # Whoever looks again finds too much changed, and begins anew.
            self._usage_position = -1
        return worthwhile
