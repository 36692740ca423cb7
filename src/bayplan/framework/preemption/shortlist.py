"""The nodes on which preemption could make room, as columns, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from bayplan.framework.diagnosis import Candidate
from bayplan.framework.status import Status
from bayplan.state.arrays import Index, Ints
from bayplan.state.pod_info import PodInfo

PRIORITY_OFFSET = 1 << 31
"""Added to each priority before they are summed, so that more victims always weigh more, also those below 0."""

CRITERIA = ("pdb violations", "highest priority", "sum of priorities", "number of victims", "latest start")
"""The criteria that compare candidates, in order; the names are from upstream's comments."""

Refused: TypeAlias = Callable[[], Sequence[tuple[Status, Index]]]

_OFFSET = PRIORITY_OFFSET
_CRITERIA = len(CRITERIA)


def new_table(places: int) -> Ints:
    """Return int64[criteria, places] for `fill`."""
    return np.zeros((len(CRITERIA), places), dtype=np.int64)


def fill(table: Any, place: int, victims: list[PodInfo], violations: int) -> None:
    """Write a candidate's criteria to its column of a table; smaller is better.

    Args:
        table: int64[criteria, places].
        place: the column.
        victims: sorted by importance, never empty.
        violations: the number of them that a disruption budget protects.
    """
    first, priorities = victims[0], 0
    for number in range(len(victims)):
        info = victims[number]
        priorities += info.priority + _OFFSET
    table[0, place] = violations
    table[1, place] = first.priority
    table[2, place] = priorities
    table[3, place] = len(victims)
    table[4, place] = -first.started_at()


class Shortlist:
    """Candidate nodes, in the order of the search. Valid until the cluster changes.

    Args:
        rows: intp, one row per candidate; also an attribute.
        places: intp, the index of each candidate in the table and in the victims.
        table: int64[criteria, places], see `fill`.
        victims: the victims of each candidate by place, most important first.
        refused: the function that returns why other nodes are not candidates, with their rows (intp); also an attribute.
    """

    def __init__(self, rows: Index, places: Index, table: Ints, victims: list[Any], refused: Refused = tuple) -> None:
        self.rows = rows
        self.places = places
        self.table = table
        self.victims = victims
        self.refused = refused
        self._places: Any = places
        self._table: Any = table

    def __len__(self) -> int:
        return len(self.rows)

    def victims_at(self, number: int) -> Sequence[PodInfo]:
        """Return the victims of a candidate by its number, most important first."""
        victims: Sequence[PodInfo] = self.victims[self.places[number]]
        return victims

    def violations_at(self, number: int) -> int:
        """Return how many of them a disruption budget protects."""
        return int(self.table[0, self.places[number]])

    def compared(self) -> Ints:
        """Return int64[criteria, candidates], as in `CRITERIA`: smaller is better."""
        return self.table[:, self.places]

    def best(self) -> Index:
        """Return the numbers of the candidates that are best by upstream's criteria, applied in order."""
        count, ties, leader = len(self._places), 0, 0
        found: Index = np.empty(count, dtype=np.intp)
        best: Any = found
        for number in range(count):
            order = self._compare(self._places[number], self._places[leader])
            if order < 0:
                leader, ties = number, 0
            if order <= 0:
                best[ties] = number
                ties += 1
        return found[:ties]

    def _compare(self, left: int, right: int) -> int:
        """Return -1 if the left place is better, 1 if the right one is, 0 if they are equal."""
        table = self._table
        for criterion in range(_CRITERIA):
            if table[criterion, left] != table[criterion, right]:
                return -1 if table[criterion, left] < table[criterion, right] else 1
        return 0


def shortlist_of(found: Sequence[tuple[int, list[PodInfo], int]]) -> Shortlist:
    """Return a shortlist of (row, victims, violations), victims sorted by importance and never empty."""
    table = new_table(len(found))
    for place, (_, victims, violations) in enumerate(found):
        fill(table, place, victims, violations)
    rows = np.array([row for row, _, _ in found], dtype=np.intp)
    return Shortlist(rows, np.arange(len(found)), table, [victims for _, victims, _ in found])


class Candidates(Collection[Candidate]):
    """A shortlist as candidates with names, created on demand because most are never used.

    Valid until the cluster changes.

    Args:
        shortlist: the candidates.
        names: node names by row.
    """

    def __init__(self, shortlist: Shortlist, names: Sequence[str | None]) -> None:
        self._shortlist = shortlist
        self._names = names

    def __len__(self) -> int:
        return len(self._shortlist)

    def __iter__(self) -> Iterator[Candidate]:
        for number, row in enumerate(self._shortlist.rows.tolist()):
            victims = tuple(info.key for info in self._shortlist.victims_at(number))
            yield Candidate(self._names[row] or "", victims, self._shortlist.violations_at(number))

    def __contains__(self, item: object) -> bool:
        return any(candidate == item for candidate in self)


class NodeNames(Collection[str]):
    """Rows as node names in alphabetical order, resolved on demand. Valid until nodes change.

    Args:
        rows: intp.
        names: node names by row.
    """

    def __init__(self, rows: Index, names: Sequence[str | None]) -> None:
        self._rows = rows
        self._names = names

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names[row] or "" for row in self._rows.tolist()))

    def __contains__(self, item: object) -> bool:
        return any(name == item for name in self)
