"""The rows that pass all filters of a plan: the combined verdicts, updated for the rows that changed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from bayplan.engine.rule_result import FilterResult, RuleResults, RuleSet
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LogReader

PASSES = -1
"""Value of a first failure that means: the row passes all filters."""


class FilteredRows:
    """The filters of a plan and their combined verdicts.

    Attributes:
        rules: the filters to run.
        feasible: bool[capacity], the rows that pass all filters.
        flags: `feasible` as uint8.
        count: number of feasible rows.
        has_errors: whether some verdict may be an Error.
        combined: how many times all rows were combined; a reader must start over when it changes.
        flips: how many times a single row became feasible or infeasible.
    """

    def __init__(self, state: ClusterState, shared: RuleResults) -> None:
        self.rules = RuleSet("Filter", shared)
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.flags: Any = self.feasible.view(np.uint8)
        self.count = 0
        self.has_errors = False
        self.combined = self.flips = 0
        self._state = state
        self._columns = state.columns
        self._node_log = state.node_log
        self._changes = LogReader(state.change_log)
        self._node_position = self._capacity = -1
        self._node_names: frozenset[str] | None = None
        self._examined: Any = None

    @property
    def results(self) -> list[FilterResult]:
        """Return the results of the filters that take part, in order."""
        return self.rules.results

    def refresh(self, node_names: frozenset[str] | None) -> None:
        """Run the filters on the changed rows, and combine the verdicts.

        `node_names`: the nodes that PreFilter left; None for all.
        """
        whole = self.rules.refresh(None)
        columns = self._columns
        if node_names is not self._node_names:
            whole = whole or node_names != self._node_names
            self._node_names = node_names
        if self._node_position != self._node_log.end or self._capacity != columns.capacity:
            self._node_position = self._node_log.end
            whole = True
        count = self._changes.take(columns.count)
        if whole or count < 0:
            self._combine_all()
        elif count:
            self._combine_rows(self._changes.rows, count)

    def _combine_all(self) -> None:
        """Recompute which rows pass all filters."""
        columns = self._columns
        if self._capacity != columns.capacity:
            self._capacity = columns.capacity
            self.feasible = np.zeros(columns.capacity, dtype=np.bool_)
            self.flags = self.feasible.view(np.uint8)
        self._examined = self.examined().view(np.uint8)
        feasible, examined = self.flags, self._examined
        self.has_errors = False
        for row in range(columns.count):
            feasible[row] = examined[row]
        for number in range(len(self.rules.results)):
            result: FilterResult = self.rules.results[number]
            if result.failing:
                codes = result.codes
                self.has_errors = self.has_errors or result.has_errors
                for row in range(columns.count):
                    feasible[row] = feasible[row] if codes[row] == 0 else 0
        self.count = int(np.count_nonzero(self.feasible))
        self.combined += 1

    def _combine_rows(self, rows: Any, count: int) -> None:
        """Recompute which of the first `count` elements of `rows` (intp) pass all filters."""
        failing = [result for result in self.rules.results if result.failing]
        for place in range(count):
            row = rows[place]
            passes = self._examined[row] != 0
            if passes:
                for result in failing:
                    if result.codes[row]:
                        passes = False
                        self.has_errors = self.has_errors or result.has_errors
                        break
            if passes != (self.flags[row] != 0):
                self.flags[row] = passes
                self.count += 1 if passes else -1
                self.flips += 1

    def examined(self) -> Bools:
        """Return bool[capacity]: the nodes that PreFilter left to the filters."""
        nodes = self._state.nodes
        if self._node_names is None:
            return nodes.alive
        named = np.zeros_like(nodes.alive)
        row_of = nodes.row_of
        named[[row_of[name] for name in self._node_names if name in row_of]] = True
        return named

    def first_failures(self, skipped: Collection[str] = ()) -> Ints:
        """Return int64[capacity]: for each row, its first failing filter as `number << 16 | verdict`, or `PASSES`.

        `skipped`: the names of filters that don't count.
        """
        columns = self._columns
        found: Ints = np.full(columns.capacity, PASSES, dtype=np.int64)
        failures: Any = found
        for number in range(len(self.rules.results) - 1, -1, -1):
            result: FilterResult = self.rules.results[number]
            if result.failing and result.name not in skipped:
                codes = result.codes
                for row in range(columns.count):
                    if codes[row]:
                        failures[row] = codes[row]
                        failures[row] += number << 16
        return found

    def first_failure_at(self, row: int) -> int:
        """Return the value of `first_failures` for one row."""
        for number in range(len(self.rules.results)):
            result: FilterResult = self.rules.results[number]
            if result.codes[row]:
                return number << 16 | int(result.codes[row])
        return -1


def count_failures(values: Any) -> dict[int, int]:
    """Return the number of rows per value of int64[capacity], excluding `PASSES`. Most adjacent rows have equal values."""
    counts: dict[int, int] = {}
    value, length = PASSES, 0
    for row in range(len(values)):
        if values[row] != value:
            if value != PASSES:
                counts[value] = counts.get(value, 0) + length
            value, length = int(values[row]), 0
        length += 1
    if value != PASSES:
        counts[value] = counts.get(value, 0) + length
    return counts
