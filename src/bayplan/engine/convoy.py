"""Keep the plans of several templates up to date together, as pods of many templates that come in turn need it.

A plan that comes again after fifty others finds fifty changed rows, and so does each of the others: the same rows, and dozens of
NumPy calls each time. The plans of a convoy have their arrays in common matrices. Every few placements the rows that changed are
evaluated for all of them at once, specs along one axis and rows along the other; what changed since then each evaluates for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bayplan.engine.part import FilterPart, ScorePart
from bayplan.framework.plugin import FilterPlugin, ScorePlugin
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import GatheredRows

if TYPE_CHECKING:
    from bayplan.engine.plan_progress import PlanProgress

MOST_BEHIND = 6
"""So many placements may have come since all plans of a convoy were brought up to date; one by one they are cheaper up to here."""

MOST_BYTES = 64 << 20
"""The matrices of a convoy take no more than this."""

BYTES_PER_ROW = 18
"""What they take for a plan and a row of the node table."""

PATIENCE = 64
"""A plan that nobody asked for during so many common refreshes leaves."""

Rules: TypeAlias = tuple[tuple[FilterPlugin[Any], ...], tuple[tuple[ScorePlugin[Any], int], ...]]
"""The filters that placements can change, and the scorers with their weights: plans of one convoy agree in them."""


def rules_of(filters: Sequence[tuple[int, FilterPart]], scores: Sequence[tuple[ScorePart, int]]) -> Rules | None:
    """Return the rules of the parts that placements can change; None where one of them is for one spec at a time only."""
    for _, part in filters:
        if not part.loose or part.params != () or type(part.plugin).filter_many is FilterPlugin.filter_many:
            return None
    for score_part, _ in scores:
        plugin = score_part.plugin
        if not score_part.loose or score_part.params != () or type(plugin).score_many is ScorePlugin.score_many:
            return None
    return tuple(part.plugin for _, part in filters), tuple((part.plugin, weight) for part, weight in scores)


class Convoy:
    """Plans of the same rules, and their arrays as rows of matrices.

    Nodes stay as they are while a convoy lasts. A plan that finds anything changed but what pods take leaves it.

    Attributes:
        position: how far the log of usage was followed for all plans.
        results: per rule, filters first, int64[plans, rows], what it said where rows changed: kept where records read it.
    """

    def __init__(self, rules: Rules, state: ClusterState) -> None:
        self._filters, self._scores = rules
        self._state = state
        self._plans: list[PlanProgress] = []
        self._node_position = state.node_log.end
        self.position = state.usage_log.end
        self._refreshes = 0
        self._asked: list[int] = []
        self._specs: list[list[Any]] | None = None
        # [plans, rows] each; and whether a plan has not been told yet that nodes became or stopped being feasible.
        capacity = state.nodes.capacity
        self._static_feasible: Bools = np.zeros((0, capacity), dtype=np.bool_)
        self._feasible: Bools = np.zeros((0, capacity), dtype=np.bool_)
        self._static_sum: Ints = np.zeros((0, capacity), dtype=np.int64)
        self._total: Ints = np.zeros((0, capacity), dtype=np.int64)
        self._flipped: Bools = np.zeros(0, dtype=np.bool_)
        self.results: list[Ints] = []

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def lasts(self) -> bool:
        """Return whether the nodes are still as they were."""
        return self._node_position == self._state.node_log.end

    def join(self, plan: PlanProgress, *, recorded: bool) -> int:
        """Take a plan that is up to date into the convoy; return its place. Its arrays become rows of the matrices.

        `recorded`: what single rules say is read in every cycle.
        """
        if recorded and not self.results:
            rules = len(self._filters) + len(self._scores)
            self.results = [np.zeros(self._total.shape, dtype=np.int64) for _ in range(rules)]
        place = len(self._plans)
        if place == len(self._total):
            self._grow(max(2 * place, 16))
        self._plans.append(plan)
        self._asked.append(self._refreshes)
        self._specs = None
        self._static_feasible[place] = plan.static_feasible
        self._feasible[place] = plan.feasible
        self._static_sum[place] = plan.static_sum
        self._total[place] = plan.total
        self._flipped[place] = False
        plan.feasible, plan.total = self._feasible[place], self._total[place]
        if not place:
            self.position = plan.usage_position
        return place

    def leave(self, place: int) -> int:
        """Let the plan at a place go; return -1, for no place. It gets arrays of its own, and another plan its place."""
        plan, last = self._plans[place], len(self._plans) - 1
        plan.feasible, plan.total = plan.feasible.copy(), plan.total.copy()
        if place != last:
            other = self._plans[place] = self._plans[last]
            self._asked[place] = self._asked[last]
            matrices: list[Any] = [self._static_feasible, self._feasible, self._static_sum, self._total, self._flipped]
            for matrix in (*matrices, *self.results):
                matrix[place] = matrix[last]
            other.feasible, other.total = self._feasible[place], self._total[place]
            other.place = place
        del self._plans[last], self._asked[last]
        self._specs = None
        return -1

    def take_flipped(self, place: int) -> bool:
        """Return whether nodes became or stopped being feasible for a plan in common refreshes since it last asked."""
        flipped = bool(self._flipped[place])
        self._flipped[place] = False
        return flipped

    def refresh(self, place: int) -> None:
        """Bring all plans up to date where too much has changed since that was last done; `place` is that of who asks."""
        state = self._state
        self._asked[place] = self._refreshes
        if state.usage_log.end - self.position <= MOST_BEHIND or len(self._plans) < 2:
            return
        rows = state.usage_log.since(self.position)
        if rows is None or len(rows) > state.nodes.count:
            return
        if self._evaluate(GatheredRows(state, np.array(list(dict.fromkeys(rows)), dtype=np.intp))):
            self.position = state.usage_log.end
            self._refreshes += 1
            if self._refreshes % PATIENCE == 0:
                self._dismiss_the_idle()

    def _evaluate(self, view: GatheredRows) -> bool:
        """Evaluate some rows for all plans; return False, with nothing done, where a rule can't do that now."""
        index, count = view.row_numbers(), len(self._plans)
        if self._specs is None:
            self._specs = [[plan.specs[plugin.name] for plan in self._plans] for plugin in self._filters]
            self._specs += [[plan.specs[plugin.name] for plan in self._plans] for plugin, _ in self._scores]
        results: list[Any] = []
        fits: Bools = self._static_feasible[:count].take(index, axis=1)
        for plugin, specs in zip(self._filters, self._specs, strict=False):
            verdicts = plugin.filter_many(specs, view)
            if verdicts is None:
                return False
            results.append(verdicts)
            fits &= verdicts == 0
        worths: Ints = self._static_sum[:count].take(index, axis=1)
        for (scorer, weight), specs in zip(self._scores, self._specs[len(self._filters) :], strict=True):
            scores = scorer.score_many(specs, view)
            if scores is None:
                return False
            results.append(scores)
            worths += scores if weight == 1 else weight * scores
        worths[~fits] = -1
        self._total[:count, index] = worths
        for matrix, values in zip(self.results, results, strict=False):
            matrix[:count, index] = values
        flips = self._feasible[:count].take(index, axis=1) != fits
        if np.count_nonzero(flips):
            self._feasible[:count, index] = fits
            self._flipped[:count] |= flips.any(axis=1)
        return True

    def _dismiss_the_idle(self) -> None:
        for place in reversed(range(len(self._plans))):
            if self._asked[place] <= self._refreshes - PATIENCE:
                self._plans[place].leave_convoy()

    def _grow(self, size: int) -> None:
        for name in ("_static_feasible", "_feasible", "_static_sum", "_total", "_flipped"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        more = (
            np.zeros((size - self.results[0].shape[0], self.results[0].shape[1]), dtype=np.int64)
            if self.results
            else None
        )
        self.results = [np.concatenate((matrix, more)) for matrix in self.results] if more is not None else []
        for place, plan in enumerate(self._plans):
            plan.feasible, plan.total = self._feasible[place], self._total[place]


class Convoys:
    """The convoys of a scheduler, by their rules."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_rules: dict[Rules, Convoy] = {}

    def of(self, rules: Rules) -> Convoy | None:
        """Return the convoy that a plan of these rules may join now, None where it is full."""
        convoy = self._by_rules.get(rules)
        if convoy is None or not convoy.lasts:
            convoy = self._by_rules[rules] = Convoy(rules, self._state)
        most = MOST_BYTES // (BYTES_PER_ROW * self._state.nodes.capacity)
        return convoy if len(convoy) < most else None
