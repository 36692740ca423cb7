"""Dry-run preemption on many nodes at once: one array step takes the n-th victim of every node off, or puts it back.

Only for plans whose filters can be asked about supposed pods; it gives what `victims_on_node` gives, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.engine.preemption.one_row import RowTrial
from bayplan.engine.preemption.victim_table import VictimTable
from bayplan.engine.supposing import (
    FEW_SUPPOSED,
    SupposedParts,
    filter_supposing,
    nominated_pods_at,
    verdicts_supposing,
)
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import PRIORITY_OFFSET, Shortlist
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.hypothetical import HypotheticalRows
from bayplan.state.pod_info import PodInfo
from bayplan.state.supposed_pods import SupposedPods

NO_VICTIMS_AT_ALL = -2
STILL_FITS = -3
"""Outcomes of rows that no filter explains: no pod of lower priority is there, or none of them is in the way."""


_NO_MASK: Bools = np.zeros((0, 0), dtype=np.bool_)


class Outcome(Struct, frozen=True, eq=False):
    """What a lockstep found.

    Attributes:
        shortlist: the candidates, in the order of the rows.
        places: intp, where in the rows they are.
        refused: intp, the places of the other rows.
        first: intp, per refused row the filter that fails without all victims, or one of the outcomes above. verdicts: its verdict.
        victims: bool[slots, candidates], who must go (see `VictimTable`); empty where nobody asks.
    """

    shortlist: Shortlist
    places: Index
    refused: Index
    first: Index
    verdicts: Codes
    victims: Bools = _NO_MASK


class Lockstep:
    """Dry runs of one plan.

    Args:
        plan: of the pod that preempts.
        supposed: its filters that pods can change (`supposed_parts`).
        table: the pods of the nodes, up to date.
        crowd: the nominated pods that count.
        budgets: the disruption budgets.
    """

    def __init__(
        self,
        plan: Plan,
        supposed: SupposedParts,
        table: VictimTable,
        crowd: Crowd,
        budgets: DisruptionBudgets,
    ) -> None:
        self._plan = plan
        self._supposed = supposed
        self._table = table
        self._crowd = crowd
        self._budgets = budgets

    def run(self, rows: Index, priority: int) -> Outcome:
        """Find the victims of a pod of this priority on each row (intp)."""
        if len(rows) <= FEW_SUPPOSED and not self._supposed.needs_pods and not self._budgets.any():
            found = self._run_one_by_one(rows.tolist(), priority) if self._plan.state.small else None
            if found is not None:
                return found
        table = self._table
        count = len(rows)
        first = np.full(count, NO_VICTIMS_AT_ALL, dtype=np.intp)
        verdicts = np.zeros(count, dtype=np.uint16)
        potential = (table.priorities[:, rows] < priority).sum(axis=0)
        places = potential.nonzero()[0]
        if len(places):
            trial = self._without_victims(rows[places], potential[places])
            first[places], verdicts[places] = self._failures(trial)
            fits = first[places] == -1
            places = places[fits]
        if not len(places):
            return Outcome(self._shortlist(rows[:0], _NO_MASK, _NO_COUNTS), places, np.arange(count), first, verdicts)
        victims, violations = self._spare(trial.at(fits), potential[places])
        some = victims.any(axis=0)
        if not some.all():
            first[places[~some]] = STILL_FITS
            places, victims, violations = places[some], victims[:, some], violations[some]
        refused = (first != -1).nonzero()[0]
        shortlist = self._shortlist(rows[places], victims, violations)
        return Outcome(shortlist, places, refused, first[refused], verdicts[refused], victims)

    def _run_one_by_one(self, rows: list[int], priority: int) -> Outcome | None:
        """Do the same for a few rows, where no budget counts; None where numbers are too large for that."""
        table, trial = self._table, RowTrial(self._plan, self._supposed, self._crowd)
        first, verdicts, places = [NO_VICTIMS_AT_ALL] * len(rows), [0] * len(rows), list[int]()
        victims = np.zeros((len(table.priorities), len(rows)), dtype=np.bool_)
        for place, row in enumerate(rows):
            potential = [info for info in table.pods[row] if info.priority < priority]
            if not potential:
                continue
            found = trial.run(row, potential)
            if found is None:
                return None
            first[place], verdicts[place] = found.first, found.verdict
            if found.first < 0 and found.victims:
                victims[found.victims, place] = True
                places.append(place)
            elif found.first < 0:
                first[place] = STILL_FITS
        chosen, refused = np.array(places, dtype=np.intp), [place for place, it in enumerate(first) if it != -1]
        shortlist = self._shortlist(
            np.array([rows[place] for place in places], dtype=np.intp),
            victims[:, chosen],
            np.zeros(len(places), np.int64),
        )
        return Outcome(
            shortlist,
            chosen,
            np.array(refused, dtype=np.intp),
            np.array([first[place] for place in refused], dtype=np.intp),
            np.array([verdicts[place] for place in refused], dtype=np.uint16),
            victims[:, chosen],
        )

    def _without_victims(self, rows: Index, potential: Ints) -> _Trial:
        """Return rows from which all potential victims are gone."""
        table, state = self._table, self._plan.state
        usage = state.usage[:, rows]
        for slot in range(int(potential.max())):
            numbers = table.footprints[slot, rows]
            numbers[potential <= slot] = 0
            usage -= table.amounts[:, numbers]
        if not self._supposed.needs_pods:
            return _Trial(state, rows, usage, None, None)
        gone = np.arange(len(table.kinds), dtype=np.int64).reshape(-1, 1) < potential
        pods = SupposedPods(state, rows, None, table.pod_kinds, table.kinds[:, rows], gone)
        return _Trial(state, rows, usage, pods, gone)

    def _failures(self, trial: _Trial) -> tuple[Index, Codes]:
        """Return the first failing filter (-1: none) and its verdict: with nominated pods, then without."""
        first, verdicts = filter_supposing(self._plan, trial.view(), self._supposed)
        places, crowded = self._with_crowd(trial)
        if crowded is not None:
            with_them, their_verdicts = filter_supposing(self._plan, crowded, self._supposed)
            fail = with_them >= 0
            first[places[fail]], verdicts[places[fail]] = with_them[fail], their_verdicts[fail]
        return first, verdicts

    def _with_crowd(self, trial: _Trial) -> tuple[Index, HypotheticalRows | None]:
        """Return the places of rows where nominated pods count, and these rows as if these ran there; None without any."""
        if not len(self._crowd):
            return _NO_PLACES, None
        places, extra = self._crowd.extra_at(trial.rows)
        if not len(places):
            return places, None
        rows, pods = trial.rows[places], trial.pods
        if pods is not None:
            pods = pods.at(places, nominated_pods_at(self._crowd, rows, trial.state))
        return places, HypotheticalRows(trial.state, rows, trial.usage[:, places] + extra, pods)

    def _spare(self, trial: _Trial, potential: Ints) -> tuple[Bools, Ints]:
        """Put potential victims back one by one where the pod still fits.

        Returns:
            bool[slots, rows], who must go; int64[rows], how many of them a budget protects.
        """
        table, rows = self._table, trial.rows
        steps = int(potential.max())
        victims = np.zeros((steps, len(rows)), dtype=np.bool_)
        violations = np.zeros(len(rows), dtype=np.int64)
        order, guarded = self._order(rows, potential, steps)
        everywhere = np.arange(len(rows))
        for step in range(steps):
            slots = order[step]
            present = slots >= 0
            numbers = table.footprints[slots, rows]
            if not present.all():
                numbers[~present] = 0
            amounts = table.amounts[:, numbers]
            trial.usage += amounts
            if trial.gone is not None:
                trial.gone[slots[present], everywhere[present]] = False
            crowded = self._fails(trial) & present
            if crowded.any():
                places = crowded.nonzero()[0]
                trial.usage[:, places] -= amounts[:, places]
                if trial.gone is not None:
                    trial.gone[slots[places], places] = True
                victims[slots[places], places] = True
                if guarded is not None:
                    violations[places] += step < guarded[places]
        return victims, violations

    def _fails(self, trial: _Trial) -> Bools:
        """Return on which rows some filter fails, with nominated pods or without."""
        failing = self._fails_as_it_is(trial.view())
        places, crowded = self._with_crowd(trial)
        if crowded is not None:
            failing[places] |= self._fails_as_it_is(crowded)
        return failing

    def _fails_as_it_is(self, view: HypotheticalRows) -> Bools:
        # Rows that fail a filter which pods can't change are not here any more.
        if len(view) <= FEW_SUPPOSED:
            return filter_supposing(self._plan, view, self._supposed)[0] >= 0
        failing = np.zeros(len(view), dtype=np.bool_)
        for _, part in self._supposed.parts:
            failing |= verdicts_supposing(self._plan, part, view) != 0
        return failing

    def _order(self, rows: Index, potential: Ints, steps: int) -> tuple[Index, Ints | None]:
        """Return the slot that each row puts back at each step (-1: none left), and how many of them are protected (None: none).

        The most important come first, those before the others that a budget protects.
        """
        order = potential - 1 - np.arange(steps, dtype=np.intp).reshape(-1, 1)
        np.maximum(order, -1, out=order)
        if not self._budgets.any():
            return order, None
        guarded = np.zeros(len(rows), dtype=np.int64)
        for place, (row, number) in enumerate(zip(rows.tolist(), potential.tolist(), strict=True)):
            infos = self._table.pods[row][number - 1 :: -1] if number else []
            violations = self._budgets.violated_by(infos) if self._budgets.protects_some(infos) else []
            if any(violations):
                slots = range(number - 1, -1, -1)
                first = [slot for slot, violates in zip(slots, violations, strict=True) if violates]
                order[: len(first), place] = first
                order[len(first) : number, place] = [
                    slot for slot, violates in zip(slots, violations, strict=True) if not violates
                ]
                guarded[place] = len(first)
        return order, guarded

    def _shortlist(self, rows: Index, victims: Bools, violations: Ints) -> Shortlist:
        table = self._table
        slots = len(victims)
        if not len(rows):
            return Shortlist(rows, _NO_COUNTS, _NO_COUNTS, _NO_COUNTS, _NO_COUNTS, _NO_COUNTS, _nobody)
        priorities = table.priorities[:slots, rows]
        # The most important victim stands in the last slot that has one.
        top = slots - 1 - victims[::-1].argmax(axis=0)
        places = np.arange(len(rows))
        sums = np.where(victims, priorities + PRIORITY_OFFSET, 0).sum(axis=0)

        def victims_at(place: int) -> list[PodInfo]:
            pods = table.pods[int(rows[place])]
            return [pods[slot] for slot in victims[:, place].nonzero()[0][::-1].tolist()]

        return Shortlist(
            rows,
            violations,
            priorities[top, places],
            sums,
            victims.sum(axis=0),
            table.starts[top, rows],
            victims_at,
        )


class _Trial:
    """Rows as they are in the course of a dry run.

    Attributes:
        usage: int64[3 + resources, rows], what is taken.
        pods, gone: who is not there, bool[slots, rows], and a view of that; None where only usage is asked about.
    """

    __slots__ = ("gone", "pods", "rows", "state", "usage")

    def __init__(
        self, state: ClusterState, rows: Index, usage: Ints, pods: SupposedPods | None, gone: Bools | None
    ) -> None:
        self.state = state
        self.rows = rows
        self.usage = usage
        self.pods = pods
        self.gone = gone

    def view(self) -> HypotheticalRows:
        """Return the rows as filters see them; what changes later shows in it."""
        return HypotheticalRows(self.state, self.rows, self.usage, self.pods)

    def at(self, chosen: Bools) -> _Trial:
        """Return the chosen rows (bool[rows])."""
        if self.pods is None or self.gone is None:
            return _Trial(self.state, self.rows[chosen], self.usage[:, chosen], None, None)
        pods = self.pods.at(chosen.nonzero()[0], None)
        return _Trial(self.state, self.rows[chosen], self.usage[:, chosen], pods, pods.gone)


_NO_PLACES: Index = np.zeros(0, dtype=np.intp)
_NO_COUNTS: Ints = np.zeros(0, dtype=np.int64)


def _nobody(place: int) -> Sequence[PodInfo]:
    raise IndexError(place)
