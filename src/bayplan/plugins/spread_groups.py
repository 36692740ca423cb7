"""Groups of nodes that are equal to soft topology spread constraints. Not a plugin.

A node's score depends on its domain of each constraint, and for host names on the number of matching pods on the node itself. Nodes
that agree in these form a group, and a cycle scores each group once: three zones and up to four pods a node make at most 15 groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.plugins.spread_constraints import HOSTNAME
from bayplan.plugins.spread_tables import ConstraintTable
from bayplan.state.row_log import RowLog

MIN_GROUPS = 64


class SpreadGroups:
    """The groups of all rows, brought up to date by the rows that changed.

    Args:
        tables: the tables of the constraints, in order.
        requires_all_keys: whether only nodes that have the keys of all constraints are scored.
        node_log: the node log of the state.

    Attributes:
        by_node: uint8[constraints], whether the domains of a constraint are host names.
        of_row: intp[capacity], the group of each row in use.
        count: how many groups there are; some may have no rows any more.
        parts: int64[groups * constraints], by group and constraint the domain, or the pods on the node; -1 if it lacks the key.
        scored: uint8[groups].
        all_scored: whether no group lacks a key that it must have.
        regrouped: how many times a row was assigned to a group. For measurements.
    """

    def __init__(self, tables: list[ConstraintTable], requires_all_keys: bool, node_log: RowLog) -> None:
        self.tables = tables
        self.by_node: Any = np.array([table.key == HOSTNAME for table in tables], dtype=np.uint8)
        self.requires_all_keys = requires_all_keys
        self.node_log = node_log
        self.of_row: Any = np.zeros(0, dtype=np.intp)
        self.count = 0
        self.parts: Any = np.zeros(0, dtype=np.int64)
        self.scored: Any = np.zeros(0, dtype=np.uint8)
        self.all_scored = True
        self.regrouped = 0
        self._numbers: dict[tuple[int, ...], int] = {}
        self._node_position = -1
        # Per constraint the position in the changes of its counter.
        self._positions: Any = np.zeros(len(tables), dtype=np.intp)

    def refresh(self, capacity: int, rows: int) -> None:
        """Assign the rows to groups whose nodes or pods have changed; the sums of the tables must be up to date."""
        whole = capacity != len(self.of_row) or self.count > 2 * rows + MIN_GROUPS
        node_log, start = self.node_log, self._node_position
        if start < node_log.start or node_log.end - start >= rows:
            whole = True
        for number in range(len(self.tables)):
            table = self.tables[number]
            if self.by_node[number]:
                before = self._positions[number]
                if before < table.counter.start or table.counter.end - before >= rows:
                    whole = True
        if whole:
            self._regroup_all(capacity, rows)
        else:
            for position in range(start, node_log.end):
                self._regroup(node_log.at(position))
            for number in range(len(self.tables)):
                if self.by_node[number]:
                    self._follow(number)
        self._node_position = node_log.end
        for number in range(len(self.tables)):
            table = self.tables[number]
            self._positions[number] = table.counter.end

    def _regroup_all(self, capacity: int, rows: int) -> None:
        self.of_row = np.zeros(capacity, dtype=np.intp)
        self.count = 0
        self.all_scored = True
        self._numbers = {}
        for row in range(rows):
            self._regroup(row)

    def _follow(self, number: int) -> None:
        """Assign the rows on which pods of a constraint came or went."""
        table = self.tables[number]
        counter = table.counter
        for position in range(self._positions[number], counter.end):
            self._regroup(counter.rows[position - counter.start])

    def _regroup(self, row: int) -> None:
        self.regrouped += 1
        key = tuple([self._part(number, row) for number in range(len(self.tables))])
        group = self._numbers.get(key)
        if group is None:
            group = self._numbers[key] = self._add(key)
        self.of_row[row] = group

    def _part(self, number: int, row: int) -> int:
        table = self.tables[number]
        code = table.sums.codes[row]
        if code >= 0 and self.by_node[number]:
            return int(table.counter.counts[row])
        return int(code)

    def _add(self, key: tuple[int, ...]) -> int:
        group, width = self.count, len(self.tables)
        if group == len(self.scored):
            size = max(2 * group, MIN_GROUPS)
            parts, scored = np.zeros(size * width, dtype=np.int64), np.zeros(size, dtype=np.uint8)
            parts[: group * width], scored[:group] = self.parts, self.scored
            self.parts, self.scored = parts, scored
        for number in range(width):
            self.parts[group * width + number] = key[number]
        self.scored[group] = not self.requires_all_keys or min(key, default=0) >= 0
        if not self.scored[group]:
            self.all_scored = False
        self.count = group + 1
        return group
