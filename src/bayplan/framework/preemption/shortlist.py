"""The nodes on which preemption could make room, as columns, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from msgspec import Struct

from bayplan.framework.diagnosis import Candidate
from bayplan.framework.status import Status
from bayplan.state.arrays import Index, Ints
from bayplan.state.pod_info import PodInfo

PRIORITY_OFFSET = 1 << 31
"""Added to each priority before they are summed, so that more victims always weigh more, also those below 0."""


class Shortlist(Struct, frozen=True, eq=False):
    """Candidate nodes, in the order in which they were found.

    Attributes:
        rows: intp, one row a candidate.
        violations: int64, victims that a disruption budget protects.
        highest: int64, the priority of the most important victim.
        sums: int64, priorities of all victims, each with `PRIORITY_OFFSET`.
        counts: int64, how many victims.
        starts: int64, when the longest running of the victims with the highest priority started.
        victims_at: returns the victims of a candidate by its place, the most important first; before the cluster changes.
        refusals: why other nodes are no candidates, with how many nodes there are of each; complete where there is no candidate.
        refused_rows: returns the same with the rows (intp) of each, for records; likewise.
    """

    rows: Index
    violations: Ints
    highest: Ints
    sums: Ints
    counts: Ints
    starts: Ints
    victims_at: Callable[[int], Sequence[PodInfo]]
    refusals: Sequence[tuple[Status, int]] = ()
    refused_rows: Callable[[], Sequence[tuple[Status, Index]]] = tuple

    def __len__(self) -> int:
        return len(self.rows)

    def best(self) -> Index:
        """Return the places of the candidates that are best.

        Upstream's criteria, one after the other: fewest violations of budgets, lowest highest priority, lowest sum of priorities,
        fewest victims, latest start of the most important victims.
        """
        places: Index = np.arange(len(self.rows), dtype=np.intp)
        for compared in self.compared():
            values = compared if len(places) == len(compared) else compared[places]
            least = values.item(values.argmin())
            if values.item(values.argmax()) == least:
                continue
            places = places[values == least]
            if len(places) == 1:
                break
        return places

    def compared(self) -> tuple[Ints, ...]:
        """Return int64 columns, the criteria one after the other: the smaller the better."""
        return (self.violations, self.highest, self.sums, self.counts, -self.starts)

    def first(self, count: int) -> Shortlist:
        """Return the first so many candidates."""
        if count >= len(self.rows):
            return self
        return Shortlist(
            self.rows[:count],
            self.violations[:count],
            self.highest[:count],
            self.sums[:count],
            self.counts[:count],
            self.starts[:count],
            self.victims_at,
        )

    def at_places(self, places: Index, refusals: Sequence[tuple[Status, int]] = ()) -> Shortlist:
        """Return the candidates at some places, in that order."""
        return Shortlist(
            self.rows[places],
            self.violations[places],
            self.highest[places],
            self.sums[places],
            self.counts[places],
            self.starts[places],
            lambda place: self.victims_at(int(places[place])),
            refusals,
        )


def shortlist_of(
    found: Sequence[tuple[int, Sequence[PodInfo], int]],
    refusals: Sequence[tuple[Status, int]],
    refused_rows: Callable[[], Sequence[tuple[Status, Index]]] = tuple,
) -> Shortlist:
    """Return a shortlist of (row, victims, violations), victims sorted by importance and never empty."""

    def column(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    return Shortlist(
        np.array([row for row, _, _ in found], dtype=np.intp),
        column([violations for _, _, violations in found]),
        column([victims[0].priority for _, victims, _ in found]),
        column([sum(info.priority + PRIORITY_OFFSET for info in victims) for _, victims, _ in found]),
        column([len(victims) for _, victims, _ in found]),
        column([victims[0].start_ns for _, victims, _ in found]),
        lambda place: found[place][1],
        refusals,
        refused_rows,
    )


class Candidates(Collection[Candidate]):
    """A shortlist as candidates with names, each made when it is asked for: most are never looked at.

    To be read before the cluster changes.

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
        for place, row in enumerate(self._shortlist.rows.tolist()):
            victims = tuple(info.key for info in self._shortlist.victims_at(place))
            yield Candidate(self._names[row] or "", victims, int(self._shortlist.violations[place]))

    def __contains__(self, item: object) -> bool:
        return any(candidate == item for candidate in self)


class NodeNames(Collection[str]):
    """Rows as node names in alphabetical order, looked up when they are asked for. To be read before nodes change.

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
