"""The counts of one pod's topology spread constraints. Not a plugin."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.plugins.spread_constraints import SpreadConstraint
from bayplan.state.counters import Counter, DomainTable, Eligibility

NO_NODE = (1 << 31) - 1
"""The smallest count if no domain has an eligible node."""


class ConstraintTable:
    """A constraint with its counts.

    Args:
        constraint: what is counted for.
        matches_itself: whether the pod will count, too.
        counter: pods per row.
        sums: per domain, over eligible nodes.
        others: pods that upstream does not count at first, but counts when they come or go during a dry run: terminating ones,
            and all if the selector is empty.
        eligibility: which nodes count.

    Attributes:
        smallest: the smallest count of a domain that has an eligible node; 0 if there are fewer than `min_domains`.
    """

    def __init__(
        self,
        constraint: SpreadConstraint,
        matches_itself: bool,
        counter: Counter,
        sums: DomainTable,
        others: DomainTable,
        eligibility: Eligibility,
    ) -> None:
        self.constraint = constraint
        self.key = constraint.topology_key
        self.counter = counter
        self.sums = sums
        self.others = others
        self.eligibility = eligibility
        self.max_skew = constraint.max_skew
        self.min_domains = constraint.min_domains
        self.itself = int(matches_itself)
        self.smallest = 0
        self._exists: Any = np.zeros(1, dtype=np.uint8)
        self._domains = 0
        self._node_position = -1
        # Of `others` what there was before pods were moved on trial.
        self._others_before: Any = np.zeros(0, dtype=np.int64)
        self._had_others = self._on_trial = False
        # Which domains were uneven when that was last asked, and for which nodes.
        self._uneven: Any = np.zeros(0, dtype=np.uint8)
        self._uneven_at = -1

    def refresh(self) -> None:
        """Bring the sums up to date, and find the smallest."""
        self.sums.refresh()
        if self._node_position != self.sums.node_position:
            self._find_domains()
        self._on_trial = False
        self._had_others = self.others.counter.total != 0
        if self._had_others:
            self._others_before = self.others.sums().copy()
        self._find_smallest()

    def after_changes(self) -> None:
        """Do the same while pods are moved on trial: of `others` those count that came or went since the last `refresh`."""
        self.sums.refresh()
        self._on_trial = self._had_others or self.others.counter.total != 0
        if self._on_trial:
            self.others.refresh()
            if not self._had_others:
                self._others_before = np.zeros(self.others.last + 1, dtype=np.int64)
        self._find_smallest()

    def _find_domains(self) -> None:
        column = self.sums.nodes.label_column(self.key)
        self._node_position = self.sums.node_position
        codes = column.codes[: self.sums.nodes.count][self.eligibility.mask(self._node_position)]
        exists = np.zeros(len(column.values) + 1, dtype=np.uint8)
        exists[codes] = 1
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

    def count(self, code: int) -> int:
        """Return how many pods count in a domain; in one without an eligible node none do."""
        return self._sum(code) if self._exists[code] else 0

    def mark_uneven(self) -> bool:
        """Note which domains are uneven; return whether one was not that is now, or the other way round."""
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
        """Return whether one more pod in a domain would make it uneven."""
        return self.count(code) + self.itself - self.smallest > self.max_skew


class SpreadTables:
    """The tables of one spec; made again when services or workloads changed that default constraints come from.

    Attributes:
        groups: the `SpreadGroups` of `soft`.
    """

    def __init__(self) -> None:
        self.version: tuple[int, ...] | None = None
        self.hard: list[ConstraintTable] = []
        self.soft: list[ConstraintTable] = []
        self.groups: Any = None
        self.hard_error = ""
        self.soft_error = ""
