"""What dry runs found on each row, kept for the next preemptor of the same kind: only rows that changed are played through again.

A row's outcome follows from the plan's filters and params, the preemptor's priority, the budgets, and what is on the row or
nominated to it. All but the last is compared by value; the rows that changed stand in the logs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from bayplan.engine.nominated_pods import NominatedPods
from bayplan.engine.plan import Plan
from bayplan.engine.preemption.lockstep import Lockstep, Outcome
from bayplan.engine.preemption.victim_table import VictimTable
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.pod_info import PodInfo
from bayplan.state.row_log import RowLog


class KeptOutcomes:
    """Outcomes of dry runs by row, for one plan and one priority.

    Args:
        plan: of the pods that preempt.
        priority: of these pods.
        table: the pods of the nodes; brought up to date before each use.
        nominated: the nominations.
    """

    def __init__(self, plan: Plan, priority: int, table: VictimTable, nominated: NominatedPods) -> None:
        self._plan = plan
        self._priority = priority
        self._table = table
        state = plan.state
        self._logs: list[RowLog] = [state.usage_log, state.pod_log, nominated.log]
        self._positions = [-1, -1, -1]
        self._stamp: Hashable = None
        self._own_row = -1
        self._lockstep: Lockstep | None = None
        self._shape()

    def _shape(self) -> None:
        slots, capacity = self._table.priorities.shape
        self._known: Bools = np.zeros(capacity, dtype=np.bool_)
        # Rows of which it is not known that they are no candidates.
        self._hopeful: Bools = np.ones(capacity, dtype=np.bool_)
        self._first: Index = np.zeros(capacity, dtype=np.intp)
        self._verdicts: Codes = np.zeros(capacity, dtype=np.uint16)
        self._victims: Bools = np.zeros((slots, capacity), dtype=np.bool_)
        # Of candidates: violations, highest priority, sum of priorities, number of victims, start of the most important.
        self._columns: Ints = np.zeros((5, capacity), dtype=np.int64)

    def follow(self, lockstep: Lockstep, budgets: DisruptionBudgets, own_row: int) -> None:
        """Forget what has changed; `own_row` is where the preemptor itself is nominated (-1: nowhere), and never kept."""
        plan = self._plan
        params = tuple([(part.name, part.params) for part in plan.filter_parts])
        shape = (self._table.priorities.shape, plan.state.usage.shape)
        stamp = (params, shape, budgets.version, plan.state.node_log.end, plan.pre.node_names)
        missed = [log.since(position) for log, position in zip(self._logs, self._positions, strict=True)]
        if stamp != self._stamp or any(rows is None for rows in missed) or self._positions[0] < 0:
            self._stamp = stamp
            self._shape()
        else:
            for rows in missed:
                if rows:
                    self._forget(rows)
        self._positions = [log.end for log in self._logs]
        # What is found on a row without the nomination of the pod itself does not hold for others.
        for row in (self._own_row, own_row):
            if row >= 0:
                self._forget(row)
        self._own_row = own_row
        self._lockstep = lockstep

    def hopeful(self, rows: Index) -> Index:
        """Return those rows (intp) of which it is not known that they are no candidates, in their order."""
        return rows.compress(self._hopeful.take(rows))

    def _forget(self, rows: int | list[int]) -> None:
        self._known[rows] = False
        self._hopeful[rows] = True

    def run(self, rows: Index) -> Outcome:
        """Return the outcome of dry runs on rows (intp)."""
        assert self._lockstep is not None
        unknown = rows[~self._known[rows]]
        if len(unknown):
            self._take(unknown, self._lockstep.run(unknown, self._priority))
        first = self._first[rows]
        fits = first == -1
        places = fits.nonzero()[0]
        refused = (~fits).nonzero()[0]
        return Outcome(self._shortlist(rows[places]), places, refused, first[refused], self._verdicts[rows[refused]])

    def _take(self, rows: Index, outcome: Outcome) -> None:
        self._known[rows] = True
        refused = rows[outcome.refused]
        self._hopeful[refused] = False
        self._first[refused] = outcome.first
        self._verdicts[refused] = outcome.verdicts
        found = rows[outcome.places]
        if len(found):
            shortlist = outcome.shortlist
            self._first[found] = -1
            self._columns[:, found] = (
                shortlist.violations,
                shortlist.highest,
                shortlist.sums,
                shortlist.counts,
                shortlist.starts,
            )
            self._victims[:, found] = False
            self._victims[: len(outcome.victims), found] = outcome.victims

    def _shortlist(self, rows: Index) -> Shortlist:
        table, victims = self._table, self._victims

        def victims_at(place: int) -> Sequence[PodInfo]:
            row = int(rows[place])
            pods = table.pods[row]
            return [pods[slot] for slot in victims[:, row].nonzero()[0][::-1].tolist()]

        violations, highest, sums, counts, starts = self._columns.take(rows, axis=1)
        return Shortlist(rows, violations, highest, sums, counts, starts, victims_at)
