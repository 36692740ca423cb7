"""Dry-run preemption: remove all pods of lower priority from a node, run the filters, and reprieve pods."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bayplan.base.go_sort import sort_slice
from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.nominated_pods import NominatedPodLister, NominatedPods
from bayplan.engine.plan import Plan
from bayplan.engine.what_if import ChangedRows, Trial
from bayplan.framework.preemption import shortlist
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.evaluator import NO_VICTIMS, importance
from bayplan.framework.preemption.shortlist import Shortlist, new_table
from bayplan.framework.status import ERROR_BIT, Status, error, unresolvable
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Index
from bayplan.state.pod_info import PodInfo
from bayplan.state.row_log import RowLog

_NO_VICTIMS = -2
"""Value of `DryRun._found` for a row without potential victims."""

_CANDIDATE, _INFEASIBLE = 1, 2

_NO_CANDIDATES = new_table(0)


class DryRun:
    """Dry-run preemption by the pods of one plan, node by node.

    The result of a row is valid until that row, its nominations or a budget change. (PreemptionBasic with 5,000 nodes:
    a preemptor needs 1,650 rows, and 1,648 of them were cached.)

    Attributes:
        evaluated_rows, known_rows: number of rows evaluated, and number of rows found in the cache.
    """

    def __init__(self, plan: Plan, nominations: RowLog) -> None:
        self._plan = plan
        self._priority = plan.priority
        # Pods that have started since may change the order in which pods are reprieved.
        self._changed_rows = ChangedRows(plan, nominations, plan.state.pod_log)
        # `_found`: per row, its victims, or why it is not a candidate (an int: the failure of a filter, or
        # `_NO_VICTIMS`). `_known`: per row, 0 if nothing is cached, else `_CANDIDATE` or `_INFEASIBLE`.
        self._found: list[list[PodInfo] | Status | int | None] = []
        self._known: Any = np.zeros(0, dtype=np.uint8)
        self.table = new_table(0)
        self._table: Any = self.table
        self.evaluated_rows = self.known_rows = 0
        self._nominated: NominatedPods | None = None
        self._budgets: DisruptionBudgets | None = None

    def search(
        self, rows: Index, start: int, wanted: int, nominated: NominatedPods, budgets: DisruptionBudgets
    ) -> Shortlist:
        """Dry-run rows until `wanted` candidates are found; the plan's filters must have run in this cycle.

        The search begins at index `start` of `rows` (intp), and wraps around. It continues while all candidates violate
        budgets; at most `wanted` of these are returned, after the others.
        """
        self._nominated, self._budgets = nominated, budgets if budgets.any() else None
        changed = self._changed_rows.take(nominated, budgets.version)
        if changed is None:
            capacity = self._plan.state.columns.capacity
            self._found = [None] * capacity
            self._known = np.zeros(capacity, dtype=np.uint8)
            self.table = new_table(capacity)
            self._table = self.table
        else:
            for row in changed:
                self._known[row] = 0
        chosen: Index = np.empty(wanted, dtype=np.intp)
        violating: list[int] = []
        order, safe, known, table = rows, chosen, self._known, self._table
        safe_count = evaluated = visited = 0
        while visited < len(order):
            row = order[(start + visited) % len(order)]
            visited += 1
            if not known[row]:
                self._dry_run_row(int(row))
                evaluated += 1
            if known[row] == _INFEASIBLE:
                continue
            if not table[row, 0]:
                safe[safe_count] = row
                safe_count += 1
            elif len(violating) < wanted:
                violating.append(int(row))
            if safe_count and safe_count + len(violating) >= wanted:
                break
        self.evaluated_rows += evaluated
        self.known_rows += visited - evaluated
        chosen = chosen[:safe_count]
        if violating:
            chosen = np.concatenate((chosen, np.array(violating, dtype=np.intp)))
        return Shortlist(chosen, chosen, self.table, self._found, partial(self._infeasible, rows, start, visited))

    def _infeasible(self, rows: Index, start: int, visited: int) -> list[tuple[Status, list[int]]]:
        """Return the statuses of evaluated rows that are not candidates, each with its rows."""
        infeasible: dict[Status, list[int]] = {}
        of_reason: dict[object, list[int]] = {}
        order, found = rows, self._found
        for number in range(visited):
            row = int(order[(start + number) % len(order)])
            if self._known[row] == _INFEASIBLE:
                reason = found[row]
                if reason not in of_reason:
                    of_reason[reason] = infeasible.setdefault(self._status_of(reason), [])
                of_reason[reason].append(row)
        return list(infeasible.items())

    def _dry_run_row(self, row: int) -> None:
        """Find the victims on a row, most important first, or why removing pods would not help.

        All pods of lower priority are removed, and put back one by one if the pod still fits: first those that a budget
        protects, each group starting with the most important pod. Nominated pods count as if they ran on the node.
        """
        self._known[row] = _INFEASIBLE
        potential = self._potential_victims(row)
        if not potential:
            self._found[row] = _NO_VICTIMS
            return
        # If a plugin raises, this row must be evaluated again.
        self._known[row] = 0
        trial = Trial(self._plan)
        try:
            self._reprieve(trial, row, potential)
        finally:
            trial.close()

    def _potential_victims(self, row: int) -> list[PodInfo]:
        """Return the pods of lower priority on a row, most important first."""
        found = [info for info in self._plan.state.pods_on[row].values() if info.priority < self._priority]
        for number in range(1, len(found)):
            before, info = found[number - 1], found[number]
            if before.priority < info.priority or (
                before.priority == info.priority and before.started_at() > info.started_at()
            ):
                return sort_slice(found, importance)
        # Go's sort leaves sorted items as they are.
        return found

    def _reprieve(self, trial: Trial, row: int, potential: list[PodInfo]) -> None:
        moves = trial.moves
        nominated = self._nominated.pods_at(row) if self._nominated is not None else None
        for info in potential:
            moves.remove(info, row)
        failure = _first_failure(trial, row, nominated)
        if failure != PASSES:
            self._found[row] = failure
            self._known[row] = _INFEASIBLE
            return
        order, guarded = potential, 0
        if self._budgets is not None:
            violations = self._budgets.violated_by(potential)
            protected = [info for info, violates in zip(potential, violations, strict=True) if violates]
            guarded = len(protected)
            order = [*protected, *(info for info, violates in zip(potential, violations, strict=True) if not violates)]
        victims: list[PodInfo] = []
        violating = 0
        for number in range(len(order)):
            info = order[number]
            moves.add(info, row)
            if _first_failure(trial, row, nominated) != PASSES:
                moves.remove(info, row)
                victims.append(info)
                if number < guarded:
                    violating += 1
        if 0 < guarded < len(order):
            victims = sort_slice(victims, importance)
        if not victims:
            # The pod fits with all pods in place, although filters have rejected the node.
            self._found[row] = error(f'expected at least one victim pod on node "{self._plan.state.nodes.names[row]}"')
            self._known[row] = _INFEASIBLE
            return
        shortlist.fill(self._table, row, victims, violating)
        self._found[row] = victims
        self._known[row] = _CANDIDATE

    def _status_of(self, reason: Any) -> Status:
        """Return the status of a row that is not a candidate; an Error has the message with which it ends a cycle."""
        if isinstance(reason, Status):
            return reason
        if reason == _NO_VICTIMS:
            return unresolvable(NO_VICTIMS)
        if reason & ERROR_BIT:
            return self._plan.filter_error(reason)
        return self._plan.status_of(reason)


def _first_failure(trial: Trial, row: int, nominated: list[PodInfo] | None) -> int:
    """Return the first failure on a row in its current state, with its nominated pods or without, or `PASSES`."""
    if nominated:
        failure = trial.first_failure_with(row, nominated)
        if failure != PASSES:
            return failure
    return trial.first_failure(row)


def find_candidates(
    plan: Plan,
    nominated_pods: NominatedPodLister,
    pod: Pod,
    rows: Index,
    budgets: DisruptionBudgets,
    wanted: int,
    start: int = 0,
) -> Shortlist:
    """Dry-run preemption by a pod of a plan; see `DryRun.search`.

    If no pod has a lower priority, no row is examined.
    """
    if not plan.state.has_pods_below(plan.priority):
        nowhere, order = rows[:0], np.concatenate((rows[start:], rows[:start]))
        return Shortlist(nowhere, nowhere, _NO_CANDIDATES, [], lambda: [(unresolvable(NO_VICTIMS), order)])
    if not isinstance(plan.dry_run, DryRun):
        plan.dry_run = DryRun(plan, nominated_pods.log)
    return plan.dry_run.search(rows, start, wanted, nominated_pods(pod), budgets)
