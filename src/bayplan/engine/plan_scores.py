"""The scores of a plan: the parts of the score plugins, and their weighted sum, kept while the cluster changes.

The half of `bayplan.engine.plan` that comes after filtering; what is feasible is found there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayplan.engine.class_board import choose_board, some_score_has_columns
from bayplan.engine.invalid_scores import invalid_score
from bayplan.engine.part import ScorePart
from bayplan.engine.part_store import PartStore
from bayplan.engine.plan_progress import united
from bayplan.engine.plan_totals import PlanTotals
from bayplan.engine.pre_scores import NOBODY, PreScoreOutcome, PreScores
from bayplan.framework.plugin import (
    NormalizePlugin,
    Params,
    PreScorePlugin,
)
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status, error
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


class PlanScores(PlanTotals):
    """Scores one pod template over the rows that are feasible.

    Attributes:
        failure: the status that ended the last refresh early (an Error of a plugin), or None.
    """

    def __init__(self, profile: Profile, pod: Pod, state: ClusterState, parts: PartStore) -> None:
        super().__init__({plugin.name: plugin.compile(pod, state) for plugin in profile.compiling}, state, parts)
        self.profile = profile
        self.failure: Status | None = None
        self._pre_scores = PreScores(profile, self.specs, state)
        self._pre_score_seen: PreScoreOutcome | None = None
        self._scores_skipped: set[str] | None = None
        self._score_parts: list[ScorePart] = []
        # The parts among which it was last chosen who is asked about rows.
        self._chosen_from: list[ScorePart] | None = None
        self._uniform: dict[ScorePart, tuple[tuple[int, int], bool]] = {}
        self._static_score_stamp: tuple[int, list[tuple[ScorePart, int]]] | None = None
        # Whether any nodes normalise all scores alike.
        self._all_uniform = False
        self._has_custom_scores = self._scores_have_columns = False
        self._dynamic_scales: list[int] = []
        self._score_epochs: list[int] = []

    def pre_scores_said(self) -> tuple[tuple[str, Code], ...]:
        """Return what each PreScore plugin said that was asked when nodes were scored last; for records."""
        return self._pre_scores.said()

    def _begin_with(self, changed: Mapping[str, Any]) -> None:
        """Make of a copy of a plan one with other specs for some plugins, that has not been asked yet."""
        self._begin()
        self._is_new = True
        self.specs = {**self.specs, **changed}
        self.scales = self.scales.copy()
        self._weighted = {}
        scorers, self._score_epochs = self._score_parts.copy(), self._score_epochs.copy()
        for number, part in enumerate(scorers):
            if part.name in changed:
                scorers[number], self._score_epochs[number] = part.with_spec(changed[part.name]), -1
        self._score_parts = self._chosen_from = scorers
        self.dynamic_scores = [(number, part) for number, part in enumerate(scorers) if not part.static]

    @property
    def score_parts(self) -> list[ScorePart]:
        """Return the scorers that take part, in order, brought up to date."""
        self._settle(self.dynamic_scores)
        if self._stale_rows == [] and self.board is not None:
            self.board.settle_scores(self._row_view)
        return self._score_parts

    def refresh_scores(self) -> None:
        """Bring `total` up to date; filters must be, and some node must be feasible."""
        if self._state_pass is not None and self._score_states():
            return
        state = self.state
        rows, self._stale_rows, self._totals_of_states = self._stale_rows, [], None
        if self._totals_wait:
            self._totals_wait, waiting = False, self._answers.rows_beside_totals()
            rows = None if rows is None or waiting is None else united(waiting, rows)
        outcome = self._pre_scores.run(self.feasible[: state.nodes.count])
        self.failure = outcome.failure
        # What PreScore has renewed since this plan was last scored; None: who is asked may be others, too.
        answered = outcome.renewed_since(self._pre_score_seen)
        if answered != NOBODY and self.failure is None:
            self._choose_scores(outcome, answered)
        if self.failure is not None:
            self._stale_rows = None
            return
        if outcome.skipped != self._scores_skipped:
            self._scores_skipped = outcome.skipped
            rows = None
        self._pre_score_seen = outcome
        board = self.board
        if rows is not None and board is not None:
            if not board.follow_scores(self._score_params, self.scales):
                rows = None
            elif board.renewed:
                self._recorded_rows = None
                # Scorers that are asked about classes are up to date.
                answered = answered - board.scorers if answered is not None else None
        if rows is None:
            self._choose_classes()
        renewed = self._refresh_score_parts(answered, whole=rows is None)
        many = self._changes is not None and not self._changes.few
        if rows is None:
            self._fuse_scores()
        else:
            if rows:
                self._fuse_score_rows(rows)
            if self._dynamic_scales:
                renewed += [item for item in self._dynamic_scales if item not in renewed and self._scale_moved(item)]
            if renewed:
                self._fuse_renewed_scores(renewed)
            elif many and answered == NOBODY and self.convoy is None and board is None and not self._answers.serve:
                self._join_convoy()
        if renewed:
            self._recorded_rows = None
        self._answers.note_totals()
        if self._has_custom_scores or not state.small:
            self._check_scores()

    def _score_states(self) -> bool:
        """Score a new plan by states; return False where more than those, or than the new plan's own scorers, must be looked at.

        Totals of rows are then found only where somebody reads them, and anew when the plan comes again.
        """
        states, level, stamp = self._state_pass, self._static_level, self._static_score_stamp
        self._state_pass = None
        if states is None or level is None or stamp is None or not states.holds() or not self._all_uniform:
            return False
        if self._static_count < self.state.nodes.count or self._has_custom_scores or self.board is not None:
            return False
        if stamp[0] != self.state.node_log.end or any(part.epoch != epoch for part, epoch in stamp[1]):
            return False
        outcome = self._pre_scores.run(self.feasible[: self.state.nodes.count])
        if outcome is not self._pre_score_seen or outcome.failure is not None:
            return False
        for number, part in self.dynamic_scores:
            if part.epoch != self._score_epochs[number]:
                part.adopt(self._score_params(part))
                self._score_epochs[number] = part.epoch
            if not part.follows_from_state:
                return False
        states.close([(part, self.weights[number]) for number, part in self.dynamic_scores], level)
        self._totals_of_states, self._stale_rows = states, None
        return True

    def worths_of(self, sample: Index) -> Ints | None:
        """Return the totals of some feasible rows (intp) without bringing those of all rows up to date.

        To be called instead of `refresh_scores`. None where that must be called, because totals follow from more than what pods
        take of each node.
        """
        answers = self._answers
        if not answers.serve or self._stale_rows is None or self._recorded_rows is not None or self._keeping:
            return None
        if self.convoy is not None or self._has_custom_scores or not answers.follow():
            return None
        outcome = self._pre_scores.run(self.feasible[: self.state.nodes.count])
        if outcome is not self._pre_score_seen or outcome.failure is not None or not self.totals_ignore_others:
            return None
        for number, part in self.dynamic_scores:
            if part.epoch != self._score_epochs[number]:
                return None
        self.failure = None
        self._stale_rows, self._totals_wait = [], True
        worths = answers.worths_of(sample)
        worths += self._static_level if self._static_level is not None else self.static_sum.take(sample)
        return worths

    def _refresh_score_parts(self, answered: frozenset[str] | None, *, whole: bool) -> list[int]:
        """Bring the parts that are kept up to date; return the numbers of all parts that must be fused anew over all rows.

        Args:
            answered: the plugins whose PreScore said otherwise than before, None: all may have.
            whole: whether more than rows that changed must be looked at.
        """
        renewed, parts = [], self.dynamic_scores
        changes = None if whole else self._changes
        if whole or answered != NOBODY:
            parts = [entry for entry in enumerate(self._score_parts) if not self._is_classed(entry[0])]
        for number, part in parts:
            same = answered is not None and part.epoch == self._score_epochs[number] and part.name not in answered
            if same and part.static and part.is_up_to_date():
                continue
            if same and changes is not None:
                if part.loose and not self._keeping:
                    continue
                if part.follow(changes, part.epoch, self._row_view):
                    continue
            self._refresh_part(part, self._score_params(part))
            if part.epoch != self._score_epochs[number]:
                self._score_epochs[number] = part.epoch
                renewed.append(number)
        return renewed

    def _choose_classes(self) -> None:
        """Find the rules that can be asked about classes, and ask them."""
        before, self.board = self.board, None

        def fits(beside: frozenset[int]) -> Bools:
            if before is not None and beside == before.filters.keys():
                return before.fits
            return self._fits_beside(beside) if beside else self.feasible.copy()

        possible = self._filters_have_columns or self._scores_have_columns
        if not possible and before is None and self._chosen_from is self._score_parts:
            return
        self._chosen_from = self._score_parts
        # Numbers that may leave int64 are for the full way.
        if possible and self.state.small and not self._has_custom_scores and not self._has_errors:
            self.board = choose_board(
                self.state,
                self.dynamic_filters,
                [(number, part, self.weights[number]) for number, part in enumerate(self._score_parts)],
                self.filter_params,
                self._score_params,
                fits,
            )
        if self.board is not None:
            self.board.follow_scores(self._score_params, self.scales)
        self._row_filters = [entry for entry in self.dynamic_filters if not self._is_classed_filter(entry[0])]
        others = [entry for entry in enumerate(self._score_parts) if not self._is_classed(entry[0])]
        self.dynamic_scores = [entry for entry in others if not entry[1].static]
        self._dynamic_scales = [item for item, part in self.dynamic_scores if isinstance(part.plugin, NormalizePlugin)]

    def _is_classed(self, number: int) -> bool:
        """Return whether a scorer is asked about classes."""
        return self.board is not None and number in self.board.scores

    def _is_classed_filter(self, number: int) -> bool:
        """Return whether a filter is asked about classes."""
        return self.board is not None and number in self.board.filters

    def _score_params(self, part: ScorePart) -> Params | None:
        outcome = self._pre_score_seen
        if outcome is not None and part.name in self.profile.pre_score_names:
            return outcome.params.get(part.name, ())
        return None if isinstance(part.plugin, PreScorePlugin) else part.plugin.observe(part.spec, self.state)

    def _choose_scores(self, outcome: PreScoreOutcome, renewals: frozenset[str] | None) -> None:
        """Take the parts of the plugins that PreScore left in; set `failure` where one of them can't score.

        `renewals`: the plugins whose params are others than before, None: all may be.
        """
        if outcome is self._pre_score_seen:
            return
        if outcome.skipped != self._scores_skipped:
            chosen = [entry for entry in self.profile.score if entry.plugin.name not in outcome.skipped]
            self._score_parts = [
                self._parts.score_part(entry.plugin, self.specs[entry.plugin.name]) for entry in chosen
            ]
            self.weights = [entry.weight for entry in chosen]
            self._score_epochs = [-1] * len(chosen)
            self.scales = [None] * len(chosen)
            self._static_score_stamp = None
            self._has_custom_scores = any(not type(entry.plugin).__module__.startswith("bayplan.") for entry in chosen)
            self._scores_have_columns = some_score_has_columns(self._score_parts)
        before, self._pre_score_seen = self._pre_score_seen, outcome
        for part in self._score_parts:
            if renewals is not None and part.name not in renewals:
                continue
            text = part.plugin.score_error(part.spec, self._score_params(part))
            if text:
                self.failure = error(f'running Score plugins: plugin "{part.name}" failed with: {text}').by(part.name)
                break
        self._pre_score_seen = before

    def scale_of(self, number: int, feasible: Bools) -> Params | None:
        """Return what a score part's normalising needs, over the given feasible rows; None where it has no NormalizeScore."""
        part = self._score_parts[number]
        if not isinstance(part.plugin, NormalizePlugin):
            return None
        count = self.state.nodes.count
        rows = Rows(self.state)
        return part.plugin.scale_over(part.spec, part.params, part.values[:count], feasible[:count], rows)

    def normalized(self, number: int, scale: Params | None) -> Ints:
        """Return the normalised scores of one part over all rows."""
        raw = self._score_parts[number].all_values(self.state)
        return raw if scale is None else self.normalize_values(number, scale, raw)

    def normalize_values(self, number: int, scale: Params, raw: Ints) -> Ints:
        """Return raw scores of one part, normalised by a scale."""
        part = self._score_parts[number]
        assert isinstance(part.plugin, NormalizePlugin)
        return part.plugin.normalize(part.spec, scale, raw, Rows(self.state))

    def _scales_hold(self) -> bool:
        """Return whether normalising what placements leave alone gives, over the nodes that are feasible now, what it gave last.

        Of other parts that is asked when they are up to date, and so is what PreScore answers.
        """
        if self.feasible_count == 0:
            return False
        return not any(
            self._scale_moved(number)
            for number, part in enumerate(self._score_parts)
            if part.static and not self._is_classed(number) and not self._is_uniform(number)
        )

    def _scale_moved(self, number: int) -> bool:
        scale = self.scales[number]
        return scale is not None and scale != self.scale_of(number, self.feasible)

    @property
    def totals_ignore_others(self) -> bool:
        """Return whether the total of a feasible node would be the same whatever others are feasible."""
        return self.board is None and self._all_uniform and self._pre_scores.ignore_feasible

    def totals_hold_for(self, sample: Bools) -> bool:
        """Return whether totals of some feasible nodes (bool[capacity]) would be the same if only these were feasible."""
        if not self._pre_scores.would_answer_alike(sample[: self.state.nodes.count]):
            return False
        for number, scale in enumerate(self.scales):
            if scale is None or self._is_uniform(number):
                continue
            if not self._is_classed(number) and scale != self.scale_of(number, sample):
                return False
        return self.board is None or self.board.scale_alike(sample)

    def _is_uniform(self, number: int) -> bool:
        """Return whether a score part that placements leave alone is equal for all nodes: then any of them scale alike."""
        part = self._score_parts[number]
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
        for number, part in self.dynamic_scores:
            self._weigh(number, part)
        self._sum_up()

    def _fuse_renewed_scores(self, numbers: list[int]) -> None:
        """Fuse some parts anew over all rows; the others are up to date."""
        if any(self._score_parts[number].static for number in numbers):
            self._fuse_static_scores()
        for number in numbers:
            self._weigh(number, self._score_parts[number])
        self._sum_up()

    def _fuse_static_scores(self) -> None:
        """Fuse the scores that placements leave alone, where they or what they are normalised by has changed."""
        numbers = [item for item, part in enumerate(self._score_parts) if part.static and not self._is_classed(item)]
        parts = [self._score_parts[number] for number in numbers]
        stamp = (self.state.node_log.end, [(part, part.epoch) for part in parts])
        same = stamp == self._static_score_stamp
        moved = [number for number in numbers if not (same and self._is_uniform(number)) and self._rescale(number)]
        if same and not moved:
            return
        self._static_score_stamp = stamp
        sums: Ints = np.zeros(self.state.nodes.capacity, dtype=np.int64)
        if not self.profile.score:
            sums[:] = 1
        for number in numbers:
            sums[: self.state.nodes.count] += self.weights[number] * self.normalized(number, self.scales[number])
        self.static_sum = self._parts.interned(sums)
        levels = sums[self.state.nodes.alive]
        self._static_level = int(levels[0]) if len(levels) and (levels == levels[0]).all() else None
        self._all_uniform = not self._dynamic_scales and all(
            scale is None or self._is_uniform(number) for number, scale in enumerate(self.scales)
        )

    def _rescale(self, number: int) -> bool:
        """Find what a part is normalised by over the nodes that are feasible now; return whether that moved."""
        scale = self.scale_of(number, self.feasible)
        moved = scale != self.scales[number]
        self.scales[number] = scale
        return moved

    def _weigh(self, number: int, part: ScorePart) -> None:
        """Normalise a part that placements change over the nodes that are feasible now, if it has a NormalizeScore."""
        if not part.static and isinstance(part.plugin, NormalizePlugin):
            scale = self.scales[number] = self.scale_of(number, self.feasible)
            self._weighted[number] = self.weights[number] * self.normalized(number, scale)

    def _check_scores(self) -> None:
        """Set `failure` where a normalised score of a feasible node is outside of 0 to 100."""
        feasible = self.feasible[: self.state.nodes.count]
        scores = (
            (part.name, self.normalized(number, self.scales[number])) for number, part in enumerate(self._score_parts)
        )
        self.failure = invalid_score(self.state, scores, feasible) or self.failure
