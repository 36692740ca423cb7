"""The scores of a plan: the parts of the score plugins, and their weighted sum, kept while the cluster changes.

The half of `bayplan.engine.plan` that comes after filtering; what is feasible is found there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.engine.part import FEW_ROWS, Changes, ScorePart
from bayplan.engine.part_store import PartStore
from bayplan.engine.pre_scores import PreScoreOutcome, PreScores
from bayplan.engine.tie_set import BestRows, TieSet
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizePlugin,
    Params,
    PreScorePlugin,
)
from bayplan.framework.profile import Profile
from bayplan.framework.status import Status, error
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Row, Rows


class PlanScores:
    """Scores one pod template over the rows that are feasible.

    Attributes:
        specs: what each plugin compiled of the template.
        feasible: bool[capacity]; feasible_count: how many are. Set by filtering.
        score_parts: the scorers that take part, in order, with their `weights` and the `scales` they were normalised by.
        total: int64[capacity], the weighted sum of normalised scores; -1 where not feasible.
        failure: the status that ended the last refresh early (an Error of a plugin), or None.
    """

    def __init__(self, profile: Profile, pod: Pod, state: ClusterState, parts: PartStore) -> None:
        self.profile = profile
        self.state = state
        self.specs: dict[str, Any] = {plugin.name: plugin.compile(pod, state) for plugin in profile.compiling}
        self._parts = parts
        self._row_view = Row(state)
        self._changes: Changes | None = None
        # Rows whose totals are not up to date, and rows that records have not seen; None stands for all.
        self._stale_rows: list[int] | None = None
        self._recorded_rows: list[int] | None = None
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.feasible_count = 0
        self.failure: Status | None = None
        self._pre_scores = PreScores(profile, self.specs, state)
        self._pre_score_seen: PreScoreOutcome | None = None
        self._scores_skipped: set[str] | None = None
        self.score_parts: list[ScorePart] = []
        self.weights: list[int] = []
        self.scales: list[Params | None] = []
        self.total: Ints = np.zeros(0, dtype=np.int64)
        # The weighted sum of the parts that placements leave alone, and by number the weighted scores of those parts that
        # placements change and that have a NormalizeScore; meaningful in feasible rows.
        self._static_sum: Ints = self.total
        self._weighted: dict[int, Ints] = {}
        self._uniform: dict[ScorePart, tuple[tuple[int, int], bool]] = {}
        self._ties = TieSet()
        self._has_custom_scores = False
        self._dynamic_scores: list[tuple[int, ScorePart]] = []
        self._dynamic_scales: list[int] = []
        self._score_epochs: list[int] = []

    def refresh_scores(self) -> None:
        """Bring `total` up to date; filters must be, and some node must be feasible."""
        state = self.state
        rows, self._stale_rows = self._stale_rows, []
        outcome = self._pre_scores.run(self.feasible[: state.nodes.count])
        self.failure = outcome.failure
        only_dynamic = outcome is self._pre_score_seen and rows is not None
        if not only_dynamic and self.failure is None:
            self._choose_scores(outcome)
        if self.failure is not None:
            self._stale_rows = None
            return
        if outcome.skipped != self._scores_skipped:
            self._scores_skipped = outcome.skipped
            rows = None
        self._pre_score_seen = outcome
        renewed: list[int] = []
        changes = self._changes if only_dynamic else None
        for number, part in self._dynamic_scores if only_dynamic else enumerate(self.score_parts):
            if changes is not None and part.follow(changes, self._score_epochs[number], self._row_view):
                continue
            part.bring_up_to_date(state, self._score_params(part), self._row_view)
            if part.epoch != self._score_epochs[number]:
                self._score_epochs[number] = part.epoch
                renewed.append(number)
        if rows is None:
            self._fuse_scores()
        else:
            if rows:
                self._fuse_score_rows(rows)
            if self._dynamic_scales:
                renewed += [item for item in self._dynamic_scales if item not in renewed and self._scale_moved(item)]
            if renewed:
                self._fuse_renewed_scores(renewed)
        if renewed:
            self._recorded_rows = None
        if self._has_custom_scores or not state.small:
            self._check_scores()

    def _score_params(self, part: ScorePart) -> Params | None:
        outcome = self._pre_score_seen
        if outcome is not None and part.name in self.profile.pre_score_names:
            return outcome.params.get(part.name, ())
        return None if isinstance(part.plugin, PreScorePlugin) else part.plugin.observe(part.spec, self.state)

    def _choose_scores(self, outcome: PreScoreOutcome) -> None:
        """Take the parts of the plugins that PreScore left in; set `failure` where one of them can't score."""
        if outcome is self._pre_score_seen:
            return
        if outcome.skipped != self._scores_skipped:
            chosen = [entry for entry in self.profile.score if entry.plugin.name not in outcome.skipped]
            self.score_parts = [self._parts.score_part(entry.plugin, self.specs[entry.plugin.name]) for entry in chosen]
            self.weights = [entry.weight for entry in chosen]
            self._dynamic_scores = [entry for entry in enumerate(self.score_parts) if not entry[1].static]
            self._dynamic_scales = [
                number for number, part in self._dynamic_scores if isinstance(part.plugin, NormalizePlugin)
            ]
            self._score_epochs = [-1] * len(chosen)
            self.scales = [None] * len(chosen)
            self._has_custom_scores = any(not type(entry.plugin).__module__.startswith("bayplan.") for entry in chosen)
        before, self._pre_score_seen = self._pre_score_seen, outcome
        for part in self.score_parts:
            text = part.plugin.score_error(part.spec, self._score_params(part))
            if text:
                self.failure = error(f'running Score plugins: plugin "{part.name}" failed with: {text}').by(part.name)
                break
        self._pre_score_seen = before

    def scale_of(self, number: int, feasible: Bools) -> Params | None:
        """Return what a score part's normalising needs, over the given feasible rows; None where it has no NormalizeScore."""
        part = self.score_parts[number]
        if not isinstance(part.plugin, NormalizePlugin):
            return None
        count = self.state.nodes.count
        rows = Rows(self.state)
        return part.plugin.scale_over(part.spec, part.params, part.values[:count], feasible[:count], rows)

    def normalized(self, number: int, scale: Params | None) -> Ints:
        """Return the normalised scores of one part over all rows."""
        raw = self.score_parts[number].values[: self.state.nodes.count]
        return raw if scale is None else self.normalize_values(number, scale, raw)

    def normalize_values(self, number: int, scale: Params, raw: Ints) -> Ints:
        """Return raw scores of one part, normalised by a scale."""
        part = self.score_parts[number]
        assert isinstance(part.plugin, NormalizePlugin)
        return part.plugin.normalize(part.spec, scale, raw, Rows(self.state))

    def _scales_hold(self) -> bool:
        """Return whether normalising over the nodes that are feasible now gives what it gave when scores were last fused."""
        if not self._pre_scores.static or self.feasible_count == 0:
            return False
        return not any(self._scale_moved(number) for number in range(len(self.scales)) if not self._is_uniform(number))

    def _scale_moved(self, number: int) -> bool:
        scale = self.scales[number]
        return scale is not None and scale != self.scale_of(number, self.feasible)

    def totals_hold_for(self, sample: Bools) -> bool:
        """Return whether totals of some feasible nodes (bool[capacity]) would be the same if only these were feasible."""
        if not self._pre_scores.would_answer_alike(sample[: self.state.nodes.count]):
            return False
        for number, scale in enumerate(self.scales):
            if scale is not None and not self._is_uniform(number) and scale != self.scale_of(number, sample):
                return False
        return True

    def _is_uniform(self, number: int) -> bool:
        """Return whether a score part that placements leave alone is equal for all nodes: then any of them scale alike."""
        part = self.score_parts[number]
        if not part.static:
            return False
        stamp = (self.state.node_log.end, part.epoch)
        known = self._uniform.get(part)
        if known is None or known[0] != stamp:
            values = part.values[self.state.nodes.alive]
            known = self._uniform[part] = (stamp, bool((values == values[:1]).all()))
        return known[1]

    def _fuse_scores(self) -> None:
        """Fuse all scores over all rows."""
        self._fuse_static_scores()
        for number, part in self._dynamic_scores:
            self._weigh(number, part)
        self._sum_up()

    def _fuse_renewed_scores(self, numbers: list[int]) -> None:
        """Fuse some parts anew over all rows; the others are up to date."""
        if any(self.score_parts[number].static for number in numbers):
            self._fuse_static_scores()
        for number in numbers:
            self._weigh(number, self.score_parts[number])
        self._sum_up()

    def _fuse_static_scores(self) -> None:
        sums: Ints = np.zeros(self.state.nodes.capacity, dtype=np.int64)
        if not self.profile.score:
            sums[:] = 1
        for number, part in enumerate(self.score_parts):
            if part.static:
                scale = self.scales[number] = self.scale_of(number, self.feasible)
                sums[: self.state.nodes.count] += self.weights[number] * self.normalized(number, scale)
        self._static_sum = sums

    def _weigh(self, number: int, part: ScorePart) -> None:
        """Normalise a part that placements change over the nodes that are feasible now, if it has a NormalizeScore."""
        if not part.static and isinstance(part.plugin, NormalizePlugin):
            scale = self.scales[number] = self.scale_of(number, self.feasible)
            self._weighted[number] = self.weights[number] * self.normalized(number, scale)

    def _sum_up(self) -> None:
        """Fuse what is kept of all parts over all rows."""
        total, count = self._static_sum.copy(), self.state.nodes.count
        for number, part in self._dynamic_scores:
            weighted = self._weighted.get(number)
            if weighted is None:
                weighted = part.values[:count]
                if self.weights[number] != 1:
                    weighted = self.weights[number] * weighted
            total[:count] += weighted
        total[~self.feasible] = -1
        self.total = total
        self._ties.forget()

    def _fuse_score_rows(self, rows: list[int]) -> None:
        """Fuse just these rows, of the parts that placements change."""
        if len(rows) > FEW_ROWS or not self.state.small:
            self._fuse_many_score_rows(rows)
            return
        total, feasible, sums, ties = self.total, self.feasible, self._static_sum, self._ties
        for row in rows:
            worth = -1
            if feasible.item(row):
                worth = sums.item(row)
                for number, part in self._dynamic_scores:
                    score = part.values.item(row)
                    if self.scales[number] is None:
                        worth += self.weights[number] * score
                    else:
                        worth += self._weigh_row(number, part, row, score)
            ties.move(row, total.item(row), worth)
            total[row] = worth

    def _fuse_many_score_rows(self, rows: list[int]) -> None:
        changes = self._changes
        if changes is not None and changes.rows is rows:
            index = changes.view(self.state).row_numbers()
        else:
            index = np.array(rows, dtype=np.intp)
        worths = self._static_sum.take(index)
        for number, part in self._dynamic_scores:
            weighted = part.values.take(index)
            scale = self.scales[number]
            if scale is not None and isinstance(part.plugin, NormalizePlugin):
                weighted = part.plugin.normalize(part.spec, scale, weighted, Rows(self.state, index))
            if self.weights[number] != 1:
                weighted = self.weights[number] * weighted
            if scale is not None:
                self._weighted[number][index] = weighted
            worths += weighted
        fits = self.feasible.take(index)
        if np.count_nonzero(fits) < len(index):
            worths[~fits] = -1
        self.total[index] = worths
        self._ties.forget()

    def _weigh_row(self, number: int, part: ScorePart, row: int, score: Any) -> int:
        """Normalise and weigh the score of one row as part number `number` was normalised last."""
        scale, plugin = self.scales[number], part.plugin
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
        return self._ties.of(self.total, self.state.nodes.count)

    def _check_scores(self) -> None:
        """Set `failure` where a normalised score of a feasible node is outside of 0 to 100."""
        feasible = self.feasible[: self.state.nodes.count]
        worst: tuple[str, str, int] | None = None
        for number, part in enumerate(self.score_parts):
            scores = self.normalized(number, self.scales[number])
            bad = np.flatnonzero(feasible & ((scores > MAX_NODE_SCORE) | (scores < MIN_NODE_SCORE)))
            for row in bad.tolist():
                name = self.state.nodes.names[row] or ""
                if worst is None or name < worst[0]:
                    worst = (name, part.name, int(scores[row]))
        if worst is not None:
            self.failure = error(
                f'applying score defaultWeights on Score plugins: plugin "{worst[1]}" returns an invalid score {worst[2]}, '
                f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
            ).by(worst[1])
