"""The totals of a plan: the weighted sums of its scores, and the rows with the highest one, kept while the cluster changes.

The part of `bayplan.engine.plan` that comes after scoring (`bayplan.engine.plan_scores`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.engine.part import FEW_ROWS, Part, ScorePart
from bayplan.engine.part_store import PartStore
from bayplan.engine.plan_progress import KEPT_CYCLES, PlanProgress
from bayplan.engine.state_pass import StatePass
from bayplan.engine.tie_set import BestRows
from bayplan.framework.plugin import NormalizePlugin, Params
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import GatheredRows, Rows


class PlanTotals(PlanProgress):
    """Sums up the scores of one pod template.

    Attributes:
        scales: what the scorers that take part (`score_parts`) were normalised by, in order.
    """

    def __init__(self, specs: dict[str, Any], state: ClusterState, parts: PartStore) -> None:
        super().__init__(specs, state, parts)
        self.scales: list[Params | None] = []
        # By number the weighted scores of those dynamic parts that have a NormalizeScore; meaningful in feasible rows.
        self._weighted: dict[int, Ints] = {}
        # What static scores come to where that is the same for all nodes.
        self._static_level: int | None = None

    def _sum_up(self) -> None:
        """Fuse what is known of all parts over all rows."""
        self.leave_convoy()
        state, total = self.state, self.static_sum.copy()
        count, states = state.nodes.count, self._pass_over_states(self.dynamic_scores)
        for number, part in self.dynamic_scores:
            weighted = self._weighted.get(number)
            if weighted is None and states is not None and part.follows_from_state:
                states.weigh(part, self.weights[number])
                continue
            if weighted is None:
                weighted = part.all_values(state)
                if self.weights[number] != 1:
                    weighted = self.weights[number] * weighted
            total[:count] += weighted
        if states is not None:
            states.add_to(total[:count])
        if self.was_scored:
            self._keeping_for = KEPT_CYCLES
        self.was_scored = True
        weighted_parts = [(part, self.weights[number]) for number, part in self.dynamic_scores]
        self._answers.choose_scores(weighted_parts, alone=self.board is None)
        if self.board is not None:
            self.board.start(total[:count])
            return
        if self.feasible_count < count:
            np.copyto(total, -1, where=~self.feasible)
        self._total = total
        self._ties.forget()

    def _pass_over_states(self, parts: Sequence[tuple[int, Part]]) -> StatePass | None:
        """Return a pass over states for parts that are evaluated in full, where it is worthwhile and some follow from states."""
        return StatePass.begin(self.state) if any(part.follows_from_state for _, part in parts) else None

    def _fuse_score_rows(self, rows: list[int]) -> None:
        """Fuse just these rows, of the parts that placements change."""
        answers = self._answers
        by_state = answers.scores and not self._keeping and answers.follow()
        if len(rows) > FEW_ROWS or not self.state.small:
            self._fuse_many_score_rows(rows, by_state=by_state)
            return
        total, sums, ties, row_view = self._total, self.static_sum, self._ties, self._row_view
        keeping, weights, board = self._keeping, self.weights, self.board
        fits = self.feasible if board is None else board.fits
        for row in rows:
            worth = -1
            if fits.item(row):
                worth = sums.item(row)
                row_view.number = row
                if by_state:
                    worth += answers.worth_of(row)
                for number, part in () if by_state else self.dynamic_scores:
                    if part.loose and not keeping:
                        worth += weights[number] * int(part.plugin.score(part.spec, part.params, row_view))
                    elif self.scales[number] is None:
                        worth += weights[number] * part.values.item(row)
                    else:
                        worth += self._weigh_row(number, part, row)
            if board is not None:
                board.enter(row, worth)
                continue
            ties.move(row, total.item(row), worth)
            total[row] = worth

    def _fuse_many_score_rows(self, rows: list[int], *, by_state: bool) -> None:
        changes, state = self._changes, self.state
        if changes is not None and changes.rows is rows:
            view = changes.view(state)
        else:
            view = GatheredRows(state, np.array(rows, dtype=np.intp))
        index = view.row_numbers()
        worths = self.static_sum.take(index)
        if by_state:
            worths += self._answers.worths_of(index)
        for number, part in () if by_state else self.dynamic_scores:
            loose = part.loose and not self._keeping
            weighted = part.evaluate(view) if loose else part.values.take(index)
            scale = self.scales[number]
            if scale is not None and isinstance(part.plugin, NormalizePlugin):
                weighted = part.plugin.normalize(part.spec, scale, weighted, view)
            if self.weights[number] != 1:
                weighted = self.weights[number] * weighted
            if scale is not None:
                self._weighted[number][index] = weighted
            worths += weighted
        if self.board is not None:
            for row, worth in zip(index.tolist(), worths.tolist(), strict=True):
                self.board.enter(row, worth)
            return
        fits = self.feasible.take(index)
        if np.count_nonzero(fits) < len(index):
            worths[~fits] = -1
        self._total[index] = worths
        self._ties.forget()

    def _weigh_row(self, number: int, part: ScorePart, row: int) -> int:
        """Normalise and weigh the score of one row as part number `number` was normalised last."""
        scale, plugin = self.scales[number], part.plugin
        score: Any = part.values.item(row)
        assert scale is not None
        assert isinstance(plugin, NormalizePlugin)
        if part.scalar:
            self._row_view.number = row
            normalized = int(plugin.normalize(part.spec, scale, score, self._row_view))
        else:
            index = np.array([row], dtype=np.intp)
            normalized = int(plugin.normalize(part.spec, scale, np.array([score]), Rows(self.state, index))[0])
        weighted = self._weighted[number][row] = self.weights[number] * normalized
        return weighted

    def best(self) -> tuple[int, BestRows]:
        """Return the highest total and the rows that have it, ascending; -1 and none where nothing is feasible."""
        if self.board is not None:
            return self.board.best()
        if self._totals_of_states is not None:
            return self._totals_of_states.best()
        return self._ties.of(self._total, self.state.nodes.count)
