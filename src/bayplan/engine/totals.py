"""The total score of each node for a plan's pod: weighted sums of normalised scores, updated where rows changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.engine.filtered_rows import FilteredRows
from bayplan.engine.rule_result import RuleResults, RuleSet, ScoreResult
from bayplan.engine.select_host import NO_TOTALS, BestRows, Sample, Ties
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LogReader


class Totals:
    """The scorers of a plan and the total scores.

    `floor` is the total of a feasible row before any score is added.

    Attributes:
        rules: the scorers to run.
        weights: the weights of these scorers.
        scales: per scorer, the scale that normalises its raw scores; None if it has no NormalizeScore.
        total: int64[capacity], -1 in rows that are not feasible.
        summed, sampled: number of times that all rows, or a sample of them, were summed up; for measurements.
    """

    def __init__(self, state: ClusterState, shared: RuleResults, filtered: FilteredRows, floor: int) -> None:
        self.rules = RuleSet("Score", shared)
        self.weights: list[int] = []
        self.scales: list[Any] = []
        self.total: Ints = NO_TOTALS
        self.summed = self.sampled = 0
        self._columns = state.columns
        self._filtered = filtered
        self._floor = floor
        self._changes = LogReader(state.change_log)
        self._total: Any = self.total
        self._scratch: Any = self.total
        self._best = BestRows()
        self._marks: Any = np.zeros(0, dtype=np.uint8)
        # `weights` as int64; the numbers of the scorers that distinguish nodes; and the weighted sum of all other scorers.
        self._weights: Any = NO_TOTALS
        self._varying: list[int] = []
        self._level = 0
        # Whether the raw scores of some scorer depend on which nodes are feasible.
        self._reads_feasible = False
        # By scorer: the normalised score if the scale makes it equal on all rows, else -1; and the epoch of the result.
        self._levels: list[int] = []
        self._epochs: list[int] = []
        self._node_log = state.node_log
        self._combined = self._flips = self._node_position = -1
        self._stale = True
        # As in `RuleResult`: collects reads of changed rows, so that their cache misses overlap.
        self._loaded = 0

    @property
    def results(self) -> list[ScoreResult]:
        """Return the results of the scorers that take part, in order."""
        return self.rules.results

    def choose(self, results: list[ScoreResult], weights: list[int]) -> None:
        """Set the scorers that take part."""
        self._reads_feasible = any(result.score_rule.reads_feasible for result in results)
        if self.rules.choose(results) or weights != self.weights:
            self.weights, self._weights = weights, np.array(weights, dtype=np.int64)
            self.scales = [None] * len(results)
            self._levels, self._epochs = [-1] * len(results), [-1] * len(results)
            self._stale = True

    def refresh(self, sample: Sample | None = None) -> None:
        """Run the scorers on the changed rows, and update the totals.

        The filters must be up to date, and at least one node must be feasible. With `sample`, only the totals of
        its rows are defined: as if only these rows were feasible.
        """
        filtered = self._filtered
        flags = filtered.flags
        if sample is not None and self._reads_feasible:
            flags = self._mark(sample)
        whole = self._stale or self._combined != filtered.combined
        self._stale = True
        self.rules.refresh(flags)
        if sample is not None and self._rescales_samples():
            self.sampled += 1
            self._rescale(self._mark(sample), False)
            self._sum_sample(sample)
            return
        count = self._changes.take(self._columns.count)
        if count < 0:
            whole = True
        if self._rescale(filtered.flags, not whole and self._flips == filtered.flips) or whole:
            self._sum_all()
        else:
            self._sum_rows(self._changes.rows, count)
        self._combined, self._flips = filtered.combined, filtered.flips
        self._stale = False

    def best(self, sample: Sample | None = None) -> tuple[int, Ties]:
        """Return the highest total (of the rows of the sample that was scored, if any), and the rows that have it."""
        if sample is None:
            return self._best.search(), self._best
        return sample.best(self._total)

    def _rescale(self, feasible: Any, same: bool) -> bool:
        """Compute the scales over the `feasible` rows (uint8[capacity]); return whether all totals may have changed.

        `same`: whether the same rows were feasible last time.
        """
        moved = False
        end = self._node_log.end
        same_nodes, self._node_position = end == self._node_position, end
        for number in range(len(self.rules.results)):
            result: ScoreResult = self.rules.results[number]
            rule, changed = result.score_rule, result.epoch != self._epochs[number]
            if rule.normalizes:
                known = result.static and not changed and same_nodes
                if not known or not (same or result.uniform_row() >= 0):
                    scale = rule.scale(result.raw, feasible)
                    if scale != self.scales[number]:
                        self.scales[number] = scale
                        changed = True
            if changed:
                level = rule.level(self.scales[number]) if rule.normalizes else -1
                moved = moved or level < 0 or level != self._levels[number]
                self._levels[number] = level
                self._epochs[number] = result.epoch
        return moved

    def _sum_all(self) -> None:
        feasible, count = self._filtered.flags, self._columns.count
        self.summed += 1
        level = self._begin_sum()
        total, scratch = self._total, self._scratch
        for row in range(count):
            total[row] = level
        for number in self._varying:
            result = self.rules.results[number]
            weight, values = self._weights[number], result.raw
            if result.score_rule.normalizes:
                result.score_rule.normalize_all(self.scales[number], values, scratch)
                values = scratch
            if weight == 1:
                for row in range(count):
                    total[row] += values[row]
            else:
                for row in range(count):
                    total[row] += weight * values[row]
        for row in range(count):
            # -1 has all bits set. Unlike a choice between the total and -1, this is vectorised.
            total[row] |= 0 if feasible[row] else -1
        self._best.begin(total, count)

    def _begin_sum(self) -> int:
        """Allocate the totals, and find the scorers that distinguish nodes; return the weighted sum of all others."""
        capacity = self._columns.capacity
        if len(self.total) != capacity:
            self.total = np.full(capacity, -1, dtype=np.int64)
            self._total = self.total
            self._scratch = np.zeros(capacity, dtype=np.int64)
        level, self._varying = self._floor, []
        for number in range(len(self.rules.results)):
            result: ScoreResult = self.rules.results[number]
            if self._levels[number] >= 0:
                level += self.weights[number] * self._levels[number]
            elif result.uniform_row() >= 0:
                row = result.uniform_row()
                score = int(result.raw[row])
                if result.score_rule.normalizes:
                    score = result.score_rule.normalize(self.scales[number], score, row)
                level += self.weights[number] * score
            else:
                self._varying.append(number)
        self._level = level
        return level

    def _sum_rows(self, rows: Any, count: int) -> None:
        total, loaded = self._total, 0
        for place in range(count):
            loaded ^= total[rows[place]]
        self._loaded = loaded
        for place in range(count):
            row, after = rows[place], -1
            if self._filtered.flags[row]:
                after = self._level
                for number in self._varying:
                    result = self.rules.results[number]
                    score = result.raw[row]
                    if result.score_rule.normalizes:
                        score = result.score_rule.normalize(self.scales[number], score, row)
                    after += self._weights[number] * score
            before = total[row]
            if after != before:
                total[row] = after
                self._best.update(row, before, after)

    def normalized(self, number: int) -> Ints:
        """Return int64[capacity], the normalised scores of one scorer."""
        return self.results[number].normalized(self.scales[number])

    # Samples.

    def _rescales_samples(self) -> bool:
        """Return whether some scorer normalises a sample differently from all feasible nodes."""
        if self._reads_feasible:
            return True
        for number in range(len(self.rules.results)):
            result: ScoreResult = self.rules.results[number]
            if result.score_rule.normalizes and result.uniform_row() < 0:
                return True
        return False

    def _mark(self, sample: Sample) -> Any:
        """Return uint8[capacity], 1 in the rows of a sample; valid until the next call."""
        if len(self._marks) != self._columns.capacity:
            self._marks = np.zeros(self._columns.capacity, dtype=np.uint8)
        marks, rows = self._marks, sample.rows
        for row in range(self._columns.count):
            marks[row] = 0
        for place in range(sample.count):
            marks[rows[place]] = 1
        return marks

    def _sum_sample(self, sample: Sample) -> None:
        level = self._begin_sum()
        rows, count, total, scratch = sample.rows, sample.count, self._total, self._scratch
        for place in range(count):
            total[rows[place]] = level
        for number in self._varying:
            result = self.rules.results[number]
            weight, values = self._weights[number], result.raw
            if result.score_rule.normalizes:
                result.score_rule.normalize_rows(self.scales[number], values, rows, count, scratch)
                values = scratch
            for place in range(count):
                total[rows[place]] += weight * values[rows[place]]
