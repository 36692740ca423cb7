"""Dry-run preemption: take all pods of lower priority off a node, ask the filters, and put back what can stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.engine.changed_rows import ChangedRows
from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.engine.what_if import PASSES, Trial
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.evaluator import NO_VICTIMS
from bayplan.framework.preemption.importance import importance
from bayplan.framework.preemption.shortlist import PRIORITY_OFFSET, Shortlist
from bayplan.framework.status import Code, Status, error, unresolvable, verdict_code
from bayplan.state.arrays import Index, Ints
from bayplan.state.pod_info import PodInfo
from bayplan.state.row_log import RowLog

NO_VICTIMS_STATUS = unresolvable(NO_VICTIMS)

_PASSES = PASSES
_OFFSET = PRIORITY_OFFSET


class Candidate:
    """A row on which preemption could make room.

    Attributes:
        victims: the pods that must leave, the most important first. violations: how many of them a budget protects.
        priorities: the sum of their priorities, each with `PRIORITY_OFFSET`.
    """

    def __init__(self, row: int, victims: list[PodInfo], violations: int) -> None:
        self.row = row
        self.victims = victims
        self.violations = violations
        priorities = 0
        for number in range(len(victims)):
            info = victims[number]
            priorities += info.priority + _OFFSET
        self.priorities = priorities


def columns_of(found: list[Candidate]) -> Ints:
    """Return int64[6, candidates]: row, violations, highest priority, sum of priorities, victims, start of the most important."""
    count = len(found)
    table: Ints = np.zeros((6, count), dtype=np.int64)
    columns: Any = table
    for number in range(count):
        candidate = found[number]
        first = candidate.victims[0]
        columns[0, number] = candidate.row
        columns[1, number] = candidate.violations
        columns[2, number] = first.priority
        columns[3, number] = candidate.priorities
        columns[4, number] = len(candidate.victims)
        columns[5, number] = first.started_at()
    return table


def shortlist(found: list[Candidate], refused: dict[Status, list[int]]) -> Shortlist:
    """Return the candidates that were found, and why other rows are none."""
    rows, violations, highest, sums, counts, starts = columns_of(found)
    return Shortlist(
        rows,
        violations,
        highest,
        sums,
        counts,
        starts,
        lambda place: found[place].victims,
        tuple((status, len(rows)) for status, rows in refused.items()),
        lambda: [(status, np.array(rows, dtype=np.intp)) for status, rows in refused.items()],
    )


def is_more_important(left: PodInfo, right: PodInfo) -> bool:
    """Return whether a pod is spared before another one: if its priority is higher, then if it has run for longer."""
    if left.priority != right.priority:
        return left.priority > right.priority
    return left.started_at() < right.started_at()


class DryRun:
    """Preemption by the pods of one plan, played through node by node.

    What was found on a row holds until that row, its nominations or a budget change. (PreemptionBasic with 5,000 nodes: 500 rows
    are looked at for each preemptor, and all but some were known; docs/performance.md has what that is worth.)

    Args:
        plan: of the pods.
        nominations: the log of rows whose nominations changed.

    Attributes:
        asked_rows: how many rows were played through in all. known_rows: how many were known.
    """

    def __init__(self, plan: Plan, nominations: RowLog) -> None:
        self._plan = plan
        self._priority = plan.priority
        self._changed_rows = ChangedRows(plan, nominations)
        # Per row a candidate, why it is none, or None if that is not known.
        self._known: list[Candidate | Status | None] = []
        self.asked_rows = self.known_rows = 0
        self._crowd: Crowd | None = None
        self._budgets: DisruptionBudgets | None = None
        self._has_budgets = False
        self._pods_on = plan.state.pods_on
        self._trial = Trial(plan)
        self._statuses: dict[int, Status] = {}

    def search(self, rows: Index, wanted: int, crowd: Crowd, budgets: DisruptionBudgets) -> Shortlist:
        """Look at rows, in this order, until `wanted` candidates are found; the plan's filters must have been asked in this cycle.

        The search goes on while all that were found violate budgets; at most `wanted` of these are kept, behind the others.

        Args:
            rows: intp.
            wanted: how many candidates are enough.
            crowd: the nominated pods that count.
            budgets: the disruption budgets.
        """
        self._crowd, self._budgets, self._has_budgets = crowd, budgets, budgets.any()
        changed = self._changed_rows.take(crowd, budgets.version)
        if changed is None:
            self._known = [None] * self._plan.columns.capacity
        else:
            for row in changed:
                self._known[row] = None
        self._trial, self._statuses, self._pods_on = Trial(self._plan), {}, self._plan.state.pods_on
        safe: list[Candidate] = []
        violating: list[Candidate] = []
        refused: dict[Status, list[int]] = {}
        for row in rows.tolist():
            found = self._known[row]
            if found is None:
                found = self._known[row] = self.victims_on(row)
                self.asked_rows += 1
            else:
                self.known_rows += 1
            if isinstance(found, Status):
                refused.setdefault(found, []).append(row)
                continue
            if not found.violations:
                safe.append(found)
            elif len(violating) < wanted:
                violating.append(found)
            if safe and len(safe) + len(violating) >= wanted:
                break
        return shortlist([*safe, *violating], refused)

    def victims_on(self, row: int) -> Candidate | Status:
        """Return the pods that must leave a node so that the pod fits, the most important first, and how many are protected.

        All pods of lower priority are taken off, and put back one by one if the pod still fits: first those that a budget
        protects, each group from the most important on. Nominated pods count as if they ran there.

        Returns:
            The candidate, or why the node is none.
        """
        potential = self._potential_victims(row)
        if not potential:
            return NO_VICTIMS_STATUS
        try:
            return self._spare(row, potential)
        finally:
            self._trial.close()

    def _potential_victims(self, row: int) -> list[PodInfo]:
        """Return the pods of lower priority on a row, the most important first."""
        found: list[PodInfo] = []
        for info in self._pods_on[row].values():
            if info.priority < self._priority:
                found.append(info)
        # There are few, and they mostly come in this order.
        for number in range(1, len(found)):
            info, place = found[number], number
            while place > 0 and is_more_important(info, found[place - 1]):
                found[place] = found[place - 1]
                place -= 1
            found[place] = info
        return found

    def _spare(self, row: int, potential: list[PodInfo]) -> Candidate | Status:
        moves = self._trial.moves
        nominated = self._crowd.pods_at(row) if self._crowd is not None and row in self._crowd.infos else None
        for info in potential:
            moves.remove(info, row)
        failure = self._first_failure(row, nominated)
        if failure != _PASSES:
            return self._status_of(failure)
        order, guarded = potential, 0
        if self._has_budgets and self._budgets is not None:
            violations = self._budgets.violated_by(potential)
            protected = [info for info, violates in zip(potential, violations, strict=True) if violates]
            guarded = len(protected)
            order = [*protected, *(info for info, violates in zip(potential, violations, strict=True) if not violates)]
        victims: list[PodInfo] = []
        violating = 0
        for number in range(len(order)):
            info = order[number]
            moves.add(info, row)
            if self._first_failure(row, nominated) != _PASSES:
                moves.remove(info, row)
                victims.append(info)
                if number < guarded:
                    violating += 1
        if 0 < guarded < len(order):
            victims.sort(key=importance)
        if not victims:
            # The pod fits with all pods in place, although filters have rejected it there.
            return error(f'expected at least one victim pod on node "{self._plan.state.nodes.names[row]}"')
        return Candidate(row, victims, violating)

    def _first_failure(self, row: int, nominated: list[PodInfo] | None) -> int:
        """Return why the pod does not fit the node as it is now, with nominated pods and without them."""
        if nominated:
            failure = self._trial.first_failure_with(row, nominated)
            if failure != _PASSES:
                return failure
        return self._trial.first_failure(row)

    def _status_of(self, failure: int) -> Status:
        """Return the status of a failing filter, an Error in the words with which it would end a cycle."""
        known = self._statuses.get(failure)
        if known is None:
            number, verdict = failure >> 16, failure & 0xFFFF
            is_error = verdict_code(verdict) is Code.ERROR
            known = self._plan.filter_error(number, verdict) if is_error else self._plan.explain(number, verdict)
            self._statuses[failure] = known
        return known
