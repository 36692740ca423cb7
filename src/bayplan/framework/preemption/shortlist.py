"""The candidates of preemption as columns, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bayplan.framework.status import Status
from bayplan.state.arrays import Index, Ints
from bayplan.state.pod_info import PodInfo

PRIORITY_OFFSET = 1 << 31
"""Added to each priority before summing, so that a victim with a negative priority increases the sum, too."""

CRITERIA = ("pdb violations", "highest priority", "sum of priorities", "number of victims", "latest start")
"""The criteria that compare candidates, in order; the names come from upstream's comments."""

Infeasible: TypeAlias = Callable[[], Sequence[tuple[Status, list[int] | Index]]]


def new_table(places: int) -> Ints:
    """Return an empty table for `fill`: int64[places, criteria]."""
    return np.zeros((places, len(CRITERIA)), dtype=np.int64)


def fill(table: Any, place: int, victims: list[PodInfo], violations: int) -> None:
    """Write a candidate's values of `CRITERIA` to the row `place` of a table; smaller is better.

    Args:
        table: int64[places, criteria].
        victims: sorted by importance, never empty.
        violations: the number of victims that a disruption budget protects.
    """
    first, priorities = victims[0], len(victims) * PRIORITY_OFFSET
    for info in victims:
        priorities += info.priority
    table[place, 0] = violations
    table[place, 1] = first.priority
    table[place, 2] = priorities
    table[place, 3] = len(victims)
    table[place, 4] = -first.started_at()


class Shortlist:
    """Candidate nodes, in the order of the search. Valid until the cluster changes.

    Args:
        rows: intp, one row per candidate; also an attribute.
        places: intp, the index of each candidate in the table and in the victims.
        table: int64[places, criteria], see `fill`.
        victims: the victims of each candidate by place, most important first.
        infeasible: the function that returns the statuses of the other examined nodes, each with its rows; also an
            attribute.
    """

    def __init__(
        self, rows: Index, places: Index, table: Ints, victims: list[Any], infeasible: Infeasible = tuple
    ) -> None:
        self.rows = rows
        self.places = places
        self.table = table
        self.victims = victims
        self.infeasible = infeasible

    def __len__(self) -> int:
        return len(self.rows)

    def victims_at(self, number: int) -> Sequence[PodInfo]:
        """Return the victims of the candidate at this index, most important first."""
        victims: Sequence[PodInfo] = self.victims[self.places[number]]
        return victims

    def violations_at(self, number: int) -> int:
        """Return the number of victims of the candidate at this index that a disruption budget protects."""
        return int(self.table[self.places[number], 0])

    def compared(self) -> Ints:
        """Return int64[criteria, candidates], the values of `CRITERIA`; smaller is better."""
        return self.table[self.places].T

    def best(self) -> Index:
        """Return the indexes of the candidates that are best by upstream's criteria, applied in order."""
        places: Any = self.places
        table: Any = self.table
        found: Index = np.empty(len(places), dtype=np.intp)
        best: Any = found
        ties = leader = 0
        criteria = table.shape[1]
        for number in range(len(places)):
            place, criterion = places[number], 0
            while criterion < criteria and table[place, criterion] == table[leader, criterion]:
                criterion += 1
            if not number or (criterion < criteria and table[place, criterion] < table[leader, criterion]):
                leader, ties, criterion = place, 0, criteria
            if criterion == criteria:
                best[ties] = number
                ties += 1
        return found[:ties]


def shortlist_of(found: Sequence[tuple[int, list[PodInfo], int]]) -> Shortlist:
    """Return a shortlist of (row, victims, violations); victims are sorted by importance, and never empty."""
    table = new_table(len(found))
    for place, (_, victims, violations) in enumerate(found):
        fill(table, place, victims, violations)
    rows = np.array([row for row, _, _ in found], dtype=np.intp)
    return Shortlist(rows, np.arange(len(found)), table, [victims for _, victims, _ in found])
