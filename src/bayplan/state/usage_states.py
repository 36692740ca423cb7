"""The states that rows are in at the moment: what their nodes offer, and what the pods there take. One column for each.

Where pods are of few kinds, or most nodes are empty yet, thousands of rows are in a few states. What a rule about amounts says of
a state it says of every row that is in it, so that a pod which nobody has seen before need not be compared with all rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.state.amount_columns import AmountColumns
from bayplan.state.arrays import Index, Ints
from bayplan.state.row_log import RowLog
from bayplan.state.usage_floats import NON_ZERO, REQUESTED

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState

FEWEST_ROWS = 1024
"""With fewer rows than this, looking at all of them takes no longer."""

SHARE = 2
"""With more than one state to so many rows, looking at rows takes no longer either."""

ROWS_AN_INQUIRY = 16
"""Following so many changes costs about as much as an inquiry saves that is answered by states."""

INQUIRIES_A_BEGINNING = 32
"""Finding the states of all rows costs as much as so many of them save."""

FOLLOWED_STATES = 8
"""The rows of so many states are followed one by one."""

NO_ROWS: list[int] = []


class UsageStates(AmountColumns):
    """Follows the usage of a cluster: its places are states.

    Where many rows change and nobody inquires, nothing is done; what is to be done for the first inquiries after that must have
    been saved by inquiries before.

    Attributes:
        codes: intp[capacity], the state of each row.
        size: how many states there are; some of them may be held by no row any more.
        usage, allocatable, allowed_pods: int64[..., states], what rows of these names in the tables say of rows in each state.
        unheld: the states that no row is in.
    """

    __slots__ = (
        "_credit",
        "_held",
        "_keys",
        "_node_position",
        "_offers",
        "_rows",
        "_shape",
        "_state",
        "_states",
        "_usage_position",
        "allocatable",
        "allowed_pods",
        "codes",
        "size",
        "unheld",
        "usage",
    )

    def __init__(self, state: ClusterState) -> None:
        super().__init__(RowLog())
        self._state = state
        self._node_position = self._usage_position = -1
        # So many inquiries have been made that were not answered, since states were followed last; in ROWS_AN_INQUIRY parts.
        self._credit = 0
        self._shape = (0, 0)
        # By what rows say, and back. Of each row what its node offers, of each state how many rows are in it.
        self._states: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._offers: list[bytes] = []
        self._held: list[int] = []
        # The rows of states that somebody asked about.
        self._rows: dict[int, list[int]] = {}
        self.codes: Index = np.zeros(0, dtype=np.intp)
        self.size = 0
        self.unheld: list[int] = []
        self.usage = self.allocatable = np.zeros((0, 0), dtype=np.int64)
        self.allowed_pods: Ints = np.zeros(0, dtype=np.int64)

    def inquire(self) -> bool:
        """Bring everything up to date where that is worthwhile; return whether it is: what all rows say can be asked of states."""
        state = self._state
        if not state.small:
            return False
        changes = self._changes()
        if changes is not None and not changes:
            return True
        if state.nodes.count < FEWEST_ROWS:
            return False
        self._credit += ROWS_AN_INQUIRY
        most = INQUIRIES_A_BEGINNING * ROWS_AN_INQUIRY
        if self._credit < (most if changes is None else min(len(changes), most)):
            return False
        self.follow()
        if self.size * SHARE > state.nodes.count:
            # Nodes are too different. That is looked at again after as many inquiries as there are rows.
            self._usage_position, self._credit = -1, -ROWS_AN_INQUIRY * state.nodes.count
            return False
        return True

    def follow(self) -> None:
        """Bring everything up to date, whatever it takes."""
        changes = self._changes()
        if changes is None or len(changes) > INQUIRIES_A_BEGINNING * ROWS_AN_INQUIRY:
            self._begin()
        else:
            for row in changes:
                self._move(row)
        self._usage_position, self._node_position = self._state.usage_log.end, self._state.node_log.end
        self._credit = 0

    def _changes(self) -> list[int] | None:
        """Return the rows where pods came or went since states were followed last; None where more may have changed."""
        state = self._state
        # Matrices grow with nodes and with names of resources.
        if state.node_log.end != self._node_position or self._shape != state.usage.shape:
            return None
        if state.usage_log.end == self._usage_position:
            return NO_ROWS
        return state.usage_log.since(self._usage_position)

    def _begin(self) -> None:
        """Find the states of all rows."""
        state, nodes = self._state, self._state.nodes
        count, self._shape = nodes.count, state.usage.shape
        offers = np.vstack((nodes.allocatable[:, :count], nodes.allowed_pods[:count]))
        self._offers = _columns(offers)
        taken = _columns(state.usage[:, :count])
        self._states = {}
        number = self._states.setdefault
        codes = [number(key, len(self._states)) for key in map(bytes.__add__, taken, self._offers)]
        self.codes = np.zeros(nodes.capacity, dtype=np.intp)
        self.codes[:count] = codes
        self._keys = list(self._states)
        self.size = len(self._keys)
        self._held = np.bincount(self.codes[:count], minlength=self.size).tolist()
        self.unheld, self._rows = [], {}
        # Any row will do for each state; the last one that is written stays.
        rows = np.zeros(self.size, dtype=np.intp)
        rows[self.codes[:count]] = np.arange(count)
        rows = np.append(rows, np.zeros(self.size + 64, dtype=np.intp))
        self.usage = state.usage.take(rows, axis=1)
        self.allocatable = nodes.allocatable.take(rows, axis=1)
        self.allowed_pods = nodes.allowed_pods.take(rows)
        self.offered = nodes.divisors[:2].take(rows, axis=1)
        self.requested = self.usage[REQUESTED].astype(np.float64)
        self.non_zero = self.usage[NON_ZERO].astype(np.float64)
        self.hundredfold = 100.0 * (self.offered - self.non_zero)
        self.crowded = self.usage[0] >= self.allowed_pods
        self.crowded[self.size :] = False
        self._bound(self.size)
        self._sum = None
        self.era += 1

    def _move(self, row: int) -> None:
        """Put a row into the state that it is in now."""
        before, held = self.codes.item(row), self._held
        taken = self._state.usage[:, row]
        key = taken.tobytes() + self._offers[row]
        place = self._states.get(key)
        if place == before:
            return
        held[before] -= 1
        rows = self._rows.get(before)
        if rows is not None:
            del rows[bisect_left(rows, row)]
        if not held[before]:
            del self._states[self._keys[before]]
            self.unheld.append(before)
            self._rows.pop(before, None)
        if place is None:
            place = self._make(key, taken, row)
        elif place in self._rows:
            insort(self._rows[place], row)
        held[place] += 1
        self.codes[row] = place

    def rows_of(self, place: int) -> list[int]:
        """Return the rows in a state, ascending; the list may change with the next inquiry."""
        rows = self._rows.get(place)
        if rows is None:
            if len(self._rows) >= FOLLOWED_STATES:
                self._rows.clear()
            rows = self._rows[place] = (self.codes[: self._state.nodes.count] == place).nonzero()[0].tolist()
        return rows

    def _make(self, key: bytes, taken: Ints, row: int) -> int:
        """Return the number of a state that no other row is in; `taken` is the row's column of the usage matrix."""
        if self.unheld:
            place = self.unheld.pop()
            self._keys[place] = key
        else:
            place = self.size
            if place == len(self.allowed_pods):
                self._grow()
            self.size += 1
            self._keys.append(key)
            self._held.append(0)
        self._states[key] = place
        nodes = self._state.nodes
        self.usage[:, place] = taken
        self.allocatable[:, place] = nodes.allocatable[:, row]
        allowed_pods = nodes.allowed_pods.item(row)
        self.allowed_pods[place] = allowed_pods
        self.offered[:, place] = nodes.divisors[:2, row]
        self._take(place, taken.tolist(), allowed_pods)
        self.log.append(place)
        return place

    def _grow(self) -> None:
        """Make room for as many states again."""
        for name in (
            "usage",
            "allocatable",
            "allowed_pods",
            "offered",
            "requested",
            "non_zero",
            "hundredfold",
            "crowded",
        ):
            columns = getattr(self, name)
            setattr(self, name, np.concatenate((columns, np.zeros_like(columns)), axis=-1))
        self.era += 1

    def check_invariants(self) -> None:
        """Raise `InvariantError` where a row is not in the state that it should be in.

        Changes that nobody has asked about since are none: they are not followed yet.
        """
        if self._changes() != NO_ROWS:
            return
        state, nodes, codes = self._state, self._state.nodes, self.codes[: self._state.nodes.count]
        wanted = (state.usage, nodes.allocatable, nodes.allowed_pods)
        for known, columns in zip((self.usage, self.allocatable, self.allowed_pods), wanted, strict=True):
            if not np.array_equal(known[..., codes], columns[..., : nodes.count]):
                raise InvariantError("states are not what rows of them say")
        held = np.bincount(codes, minlength=self.size).tolist()
        if held != self._held or sorted(self.unheld) != [place for place, rows in enumerate(held) if not rows]:
            raise InvariantError("states are held by other rows than is known")
        for place, rows in self._rows.items():
            if rows != (codes == place).nonzero()[0].tolist():
                raise InvariantError(f"rows of state {place} are not those that are in it")


def _columns(matrix: Ints) -> list[bytes]:
    """Return the columns of a matrix as bytes."""
    text, width = matrix.T.tobytes(), matrix.itemsize * len(matrix)
    return [text[start : start + width] for start in range(0, len(text), width)]
