"""Counts of pods per domain of a topology spread constraint, and groups of nodes that soft constraints don't distinguish."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.plugins.spread_constraints import HOSTNAME, SpreadConstraint
from bayplan.state.counters import DomainTable
from bayplan.state.row_log import LogReader, RowLog

NO_NODE = (1 << 31) - 1
"""Value of `smallest` if no domain has an eligible node."""


class ConstraintTable:
    """A constraint with its counts.

    Args:
        constraint: the constraint.
        matches_itself: whether the constraint's selector matches the pod itself.
        sums: the counts per domain, summed over eligible nodes.
        others: per domain, the pods that upstream counts only when a dry run adds or removes them: terminating pods, or
            all pods if the selector is empty.

    Attributes:
        smallest: the smallest count of a domain that has an eligible node; 0 if there are fewer than `min_domains`.
    """

    def __init__(
        self,
        constraint: SpreadConstraint,
        matches_itself: bool,
        sums: DomainTable,
        others: DomainTable,
    ) -> None:
        self.key = constraint.topology_key
        self.sums = sums
        self.others = others
        self.max_skew = constraint.max_skew
        self.min_domains = constraint.min_domains
        self.itself = int(matches_itself)
        self.smallest = 0
        self._exists: Any = np.zeros(1, dtype=np.uint8)
        self._domains = 0
        self._node_position = -1
        # The sums of `others` before pods were moved.
        self._others_before: Any = np.zeros(0, dtype=np.int64)
        self._had_others = self._on_trial = False
        # The domains that were uneven at the last call of `mark_uneven`, and the position in the node log at that time.
        self._uneven: Any = np.zeros(0, dtype=np.uint8)
        self._uneven_at = -1

    def refresh(self) -> None:
        """Update the counts; pods in `others` don't count."""
        self.sums.refresh()
        if self._node_position != self.sums.node_position:
            self._find_domains()
        self._on_trial = False
        self._had_others = self.others.counter.total != 0
        if self._had_others:
            self.others.refresh()
            self._others_before = np.array(self.others.values)
        self._find_smallest()

    def after_changes(self) -> None:
        """Update the counts after a dry run moved pods; those in `others` now count if they were added or removed."""
        self.sums.refresh()
        self._on_trial = self._had_others or self.others.counter.total != 0
        if self._on_trial:
            self.others.refresh()
            if not self._had_others:
                self._others_before = np.zeros(self.others.last + 1, dtype=np.int64)
        self._find_smallest()

    def _find_domains(self) -> None:
        nodes, self._node_position = self.sums.nodes, self.sums.node_position
        column = nodes.label_column(self.key)
        exists = np.zeros(len(column.values) + 1, dtype=np.uint8)
        assert self.sums.eligibility is not None
        exists[column.codes[: nodes.count][self.sums.eligibility.mask(self._node_position)]] = 1
        self._exists = exists
        self._domains = int(exists.sum())

    def _find_smallest(self) -> None:
        smallest = NO_NODE
        for code in range(len(self._exists)):
            if self._exists[code]:
                count = self._sum(code)
                if count < smallest:
                    smallest = count
        self.smallest = 0 if self._domains < self.min_domains else smallest

    def _sum(self, code: int) -> int:
        count = self.sums.values[code]
        if self._on_trial:
            count += self.others.values[code] - self._others_before[code]
        return count

    def mark_uneven(self) -> bool:
        """Record which domains are uneven; return whether that changed for any domain."""
        moved = self._uneven_at != self._node_position
        if moved:
            self._uneven_at = self._node_position
            self._uneven = np.zeros(len(self._exists), dtype=np.uint8)
        for code in range(len(self._exists)):
            uneven = self.is_uneven(code)
            if uneven != (self._uneven[code] != 0):
                self._uneven[code] = uneven
                moved = True
        return moved

    def is_uneven(self, code: int) -> bool:
        """Return whether one more pod in a domain would violate the constraint's maxSkew."""
        # A domain without eligible nodes counts as empty.
        count = self._sum(code) if self._exists[code] else 0
        return count + self.itself - self.smallest > self.max_skew


class SpreadTables:
    """The tables of one spec, rebuilt when services or workloads that determine default constraints change.

    Attributes:
        version: the version of the services and workloads from which the tables were built.
        hard, soft: one table per hard or soft constraint.
        hard_error, soft_error: why the constraints are invalid, or "".
        groups: the `SpreadGroups` of `soft`.
    """

    def __init__(self) -> None:
        self.version: tuple[int, ...] | None = None
        self.hard: list[ConstraintTable] = []
        self.soft: list[ConstraintTable] = []
        self.groups: Any = None
        self.hard_error = ""
        self.soft_error = ""


MIN_GROUPS = 64


class SpreadGroups:
    """Groups of nodes that soft constraints don't distinguish, updated for the rows that changed.

    Args:
        tables: the tables of the constraints, in order.
        requires_all_keys: whether only nodes that have the topology keys of all constraints are scored.
        node_log: the node log of the state.

    Attributes:
        by_node: uint8[constraints], whether the topology key of a constraint is the host name.
        of_row: intp[capacity], the group of each row in use.
        count: the number of groups; some may no longer have rows.
        parts: int64[groups * constraints], by group and constraint the domain, or with `by_node` the number of pods on
            the node; -1 without the key.
        scored: uint8[groups], whether the nodes of the group are scored.
        regrouped: how often a row was assigned to a group; scores of groups are valid until it changes.
    """

    def __init__(self, tables: list[ConstraintTable], requires_all_keys: bool, node_log: RowLog) -> None:
        self.tables = tables
        self.by_node: Any = np.array([table.key == HOSTNAME for table in tables], dtype=np.uint8)
        self.requires_all_keys = requires_all_keys
        self.of_row: Any = np.zeros(0, dtype=np.intp)
        self.count = 0
        self.parts: Any = np.zeros(0, dtype=np.int64)
        self.scored: Any = np.zeros(0, dtype=np.uint8)
        self.regrouped = 0
        self._numbers: dict[tuple[int, ...], int] = {}
        # Changed nodes, and pods if the number of pods on a node distinguishes groups.
        logs = [node_log, *(table.sums.counter.log for table in tables if table.key == HOSTNAME)]
        self._readers = [LogReader(log) for log in logs]

    def refresh(self, capacity: int, rows: int) -> None:
        """Assign rows whose node or pods changed to groups again. The tables' sums must be up to date."""
        # Many groups may be empty.
        all_rows = capacity != len(self.of_row) or self.count > 2 * rows + MIN_GROUPS
        for reader in self._readers:
            count = reader.take(rows)
            all_rows = all_rows or count < 0
            for number in range(0 if all_rows else count):
                row = reader.rows[number]
                self._regroup(row if row >= 0 else -1 - row)
        if all_rows:
            self.of_row = np.zeros(capacity, dtype=np.intp)
            self.count, self._numbers = 0, {}
            for row in range(rows):
                self._regroup(row)

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
            return int(table.sums.counter.counts[row])
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
        self.count = group + 1
        return group
