"""The account of a search for victims, for decision records: candidates, victims, and reasons against other nodes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from bayplan.framework.preemption.shortlist import CRITERIA, Shortlist
from bayplan.framework.status import Status
from bayplan.state.arrays import Index

MAX_CANDIDATES = 32
MAX_NODES = 64
"""Maximum number of recorded candidates, and of recorded nodes per reason; of the rest, only the number is recorded."""


class Victim(msgspec.Struct, frozen=True):
    """A pod to evict. `start_ns` is the largest int64 if the pod has not started."""

    pod: str
    priority: int
    start_ns: int


class CandidateAccount(msgspec.Struct, frozen=True):
    """A node on which preemption could have made room.

    Attributes:
        victims: the pods to evict, most important first.
        pdb_violations: the number of victims that a disruption budget protects.
        lost_by: the criterion (see `CRITERIA`) by which other candidates were better; "" if none was better.
    """

    node: str
    victims: tuple[Victim, ...]
    pdb_violations: int
    priority_sum: int
    lost_by: str


class InfeasibleNodes(msgspec.Struct, frozen=True):
    """Nodes that the pod would not fit even without the victims: the status, some names, and the number of nodes."""

    status: Status
    nodes: tuple[str, ...]
    count: int


class PreemptionAccount(msgspec.Struct, frozen=True):
    """The account of a search for victims.

    Attributes:
        chosen: the chosen node, or "".
        candidates: the chosen candidate first, then the others, those that lost by the latest criterion first.
        refusals: nodes on which the pod would not fit even without any pod of lower priority, grouped by reason.
        struck_out: candidates that extenders removed.
        untried: the number of potential candidates that were not examined, because enough others were found.
        others: the number of nodes on which evicting pods can't help.
    """

    chosen: str
    candidates: tuple[CandidateAccount, ...] = ()
    candidate_count: int = 0
    refusals: tuple[InfeasibleNodes, ...] = ()
    struck_out: tuple[str, ...] = ()
    untried: int = 0
    others: int = 0


def account_of(
    potential: Index,
    found: Shortlist | None,
    left: Shortlist | None,
    chosen: str,
    names: Sequence[str | None],
    nodes: int,
) -> PreemptionAccount:
    """Return the account of a search; call it before the cluster changes.

    Args:
        potential: the rows (intp) of potential candidates.
        found: the result of the dry runs; None without dry runs.
        left: those of them that extenders accepted.
        chosen: the chosen node, or "".
        names: node names by row.
        nodes: the number of nodes.
    """
    if found is None or left is None:
        return PreemptionAccount("", others=nodes)
    lost = lost_by(left)
    chosen_row = next((row for row in left.rows.tolist() if names[row] == chosen), -1)

    def rank(place: int) -> tuple[bool, int]:
        late = CRITERIA.index(lost[place]) if lost[place] else len(CRITERIA)
        return (int(left.rows[place]) != chosen_row, -late)

    shown = sorted(range(len(left)), key=rank)[:MAX_CANDIDATES]
    infeasible = found.infeasible()
    tried = {*found.rows.tolist(), *(row for _, rows in infeasible for row in rows)}
    accepted = set(left.rows.tolist())
    return PreemptionAccount(
        chosen,
        candidates=tuple(_candidate(left, place, names, lost[place]) for place in shown),
        candidate_count=len(left),
        refusals=tuple(
            InfeasibleNodes(status, tuple(names[row] or "" for row in rows[:MAX_NODES]), len(rows))
            for status, rows in infeasible
        ),
        struck_out=tuple(names[row] or "" for row in found.rows.tolist() if row not in accepted),
        untried=sum(row not in tried for row in potential.tolist()),
        others=nodes - len(potential),
    )


def lost_by(shortlist: Shortlist) -> list[str]:
    """Return the criterion by which each candidate lost, in order of the shortlist; "" for the best."""
    lost = [""] * len(shortlist)
    places: Index = np.arange(len(shortlist), dtype=np.intp)
    for criterion, values in zip(CRITERIA, shortlist.compared(), strict=True):
        if len(places) < 2:
            break
        best = values[places] == values[places].min()
        for place in places[~best].tolist():
            lost[place] = criterion
        places = places[best]
    return lost


def _candidate(shortlist: Shortlist, place: int, names: Sequence[str | None], lost: str) -> CandidateAccount:
    victims = tuple(Victim(info.key, info.priority, info.started_at()) for info in shortlist.victims_at(place))
    return CandidateAccount(
        names[int(shortlist.rows[place])] or "",
        victims,
        shortlist.violations_at(place),
        sum(victim.priority for victim in victims),
        lost,
    )
