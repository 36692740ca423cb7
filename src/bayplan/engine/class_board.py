"""What one plan knows by classes of rows: which classes pass the filters, what they are worth, and their best rows.

A placement moves one row to another class, and what whole classes are told or worth. Verdicts and totals of single rows follow
from their class and from what they say by themselves; nobody need sum them up to find the best ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from bayplan.engine.class_rules import ClassFilter, ClassScores
from bayplan.engine.class_tops import NOBODY, ClassTops
from bayplan.engine.part import FilterPart, ScorePart
from bayplan.engine.tie_set import BestRows
from bayplan.framework.plugin import FilterPlugin, Params, ScorePlugin
from bayplan.state.arrays import Bools, Ints, all_true
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_classes import Column, RowClasses
from bayplan.state.views import Row

FilterParams: TypeAlias = Callable[[FilterPart], Params | None]
ScoreParams: TypeAlias = Callable[[ScorePart], Params | None]
"""Return the params of a filter or a scorer in this cycle."""


def columns_of_filter(part: FilterPart, params: Params | None, state: ClusterState) -> Sequence[Column] | None:
    """Return the columns that a filter's verdicts follow from, None where it takes more to tell."""
    if params is None or type(part.plugin).filter_columns is FilterPlugin.filter_columns:
        return None
    return part.plugin.filter_columns(part.spec, params, state)


def columns_of_score(part: ScorePart, params: Params | None, state: ClusterState) -> Sequence[Column] | None:
    """Return the columns that scores follow from, None where it takes more to tell."""
    if params is None or type(part.plugin).score_columns is ScorePlugin.score_columns:
        return None
    return part.plugin.score_columns(part.spec, params, state)


def some_filter_has_columns(parts: Iterable[FilterPart]) -> bool:
    """Return whether some of these filters can ever be asked about classes."""
    return any(type(part.plugin).filter_columns is not FilterPlugin.filter_columns for part in parts)


def some_score_has_columns(parts: Iterable[ScorePart]) -> bool:
    """Return whether some of these scorers can ever be asked about classes."""
    return any(type(part.plugin).score_columns is not ScorePlugin.score_columns for part in parts)


class ClassBoard:
    """The classes of one plan.

    Args:
        state: the cluster.
        classes: the classes, by all columns that the rules look at.
        filters, scores: the rules that look at classes, by their numbers among the plan's filters and scorers.

    Attributes:
        scorers: the names of the plugins of `scores`.
        fits: bool[capacity], the rows that pass all other filters. Kept by this object.
        renewed: whether the last `follow_scores` met other params: raw scores are others then, even if they come to the same.
    """

    def __init__(
        self,
        state: ClusterState,
        classes: RowClasses,
        filters: Mapping[int, ClassFilter],
        scores: Mapping[int, ClassScores],
        fits: Bools,
    ) -> None:
        self._state = state
        self._classes = classes
        self.filters = filters
        self.scores = scores
        self.scorers = frozenset(rule.part.name for rule in scores.values())
        self.fits = fits
        self.renewed = False
        self._open: Bools = self._passing()
        self._some_closed = not all_true(self._open)
        self._tops = ClassTops(np.where(fits[: len(classes.codes)], classes.codes, -1), classes.size)
        self._present: Bools = self._open & (self._tops.held > 0)
        # int64[classes], what all rules add to their rows' totals; None where that, or who is present, may be otherwise now.
        self._worth: Ints | None = None
        # What rows are worth with their class, as it was found last.
        self._total: Ints | None = None
        for rule in scores.values():
            rule.evaluate(classes.view, self._present)

    # Filters.

    def _passing(self) -> Bools:
        passing: Bools = np.ones(self._classes.size, dtype=np.bool_)
        for rule in self.filters.values():
            passing &= rule.passes(self._classes.view)
        return passing

    def follow(self, rows: Iterable[int], params_of: FilterParams, *, asked: bool) -> bool | None:
        """Take over counts that changed in rows, and where filters were `asked` again their params.

        Returns:
            Whether classes became or stopped being passed; None where classes must be made anew.
        """
        before = self._classes.size
        if not self._classes.follow(rows):
            return None
        again = before != self._classes.size
        if again:
            self._tops.grow(self._classes.size)
        if asked:
            for rule in self.filters.values():
                params = params_of(rule.part)
                if params != rule.params:
                    columns = columns_of_filter(rule.part, params, self._state)
                    if columns != rule.columns and not self._knows(columns):
                        return None
                    rule.params, again = params, True
        if not again:
            return False
        known, self._open = self._open, self._passing()
        self._some_closed, self._worth = not all_true(self._open), None
        moved = known != self._open[:before]
        return bool((moved & (self._tops.held[:before] > 0)).any())

    def put(self, row: int, fits: bool) -> bool:
        """Take over whether a row passes the other filters now; return whether it passes all."""
        code = self._classes.codes.item(row)
        self.fits[row] = fits
        self._tops.move(row, code if fits else -1)
        self._total = None
        return fits and self._open.item(code)

    def feasible(self) -> Bools:
        """Return bool[capacity], the rows that pass all filters."""
        if not self._some_closed:
            return self.fits.copy()
        feasible: Bools = np.zeros_like(self.fits)
        codes = self._classes.codes
        np.logical_and(self.fits[: len(codes)], self._open[codes], out=feasible[: len(codes)])
        return feasible

    # Scores.

    def follow_scores(self, params_of: ScoreParams, scales: list[Params | None]) -> bool:
        """Bring what classes are worth up to date; return False where classes must be chosen anew.

        Some row must be feasible. `scales` takes what scores were normalised by.
        """
        view, present, same = self._classes.view, self._present, True
        if self._tops.changed or self._worth is None:
            before, present = present, self._open & (self._tops.held > 0)
            same = len(present) == len(before) and all_true(present == before)
            more = len(present) != len(before)
            self._present, self._tops.changed, self._worth = present, False, None
        self.renewed = False
        for number, rule in self.scores.items():
            params = params_of(rule.part)
            if params != rule.params:
                columns = columns_of_score(rule.part, params, self._state)
                if columns != rule.columns and not self._knows(columns):
                    return False
                rule.params, self.renewed, self._worth = params, True, None
                rule.evaluate(view, present)
            elif not same and more:
                rule.evaluate(view, present)
            elif not same:
                rule.rescale(view, present)
            scales[number] = rule.scale
        return True

    def _knows(self, columns: Sequence[Column] | None) -> bool:
        """Return whether classes are told apart by these columns."""
        return columns is not None and all(column in self._classes.columns for column in columns)

    def start(self, own: Ints) -> None:
        """Take over what rows (int64[rows in use]) score by themselves."""
        self._tops.start(own)
        self._total = None

    def enter(self, row: int, own: int) -> None:
        """Take over what a row that was put scores by itself."""
        self._tops.enter(row, own)
        self._total = None

    def best(self) -> tuple[int, BestRows]:
        """Return the highest total and the rows that have it, ascending; -1 and none where nothing is feasible."""
        worth = self._worth
        if worth is None:
            worth = self._sum()
            if self._some_closed:
                # Classes without rows have no best ones, whatever they are worth.
                worth = np.where(self._open, worth, NOBODY)
            self._worth, self._total = worth, None
        return self._tops.best(worth)

    def _sum(self) -> Ints:
        sums: Ints | None = None
        for rule in self.scores.values():
            sums = rule.worth if sums is None else sums + rule.worth
        return sums if sums is not None else np.zeros(self._classes.size, dtype=np.int64)

    def totals(self, feasible: Bools) -> Ints:
        """Return int64[capacity], the totals; -1 where not feasible (bool[capacity])."""
        self.best()
        total = self._total
        if total is None:
            codes = self._classes.codes
            total = self._total = np.full(len(self.fits), -1, dtype=np.int64)
            sums = self._tops.own_scores() + self._sum()[codes]
            np.copyto(total[: len(codes)], sums, where=feasible[: len(codes)])
        return total

    def scale_alike(self, feasible: Bools) -> bool:
        """Return whether normalising would need the same if other rows (bool[capacity]) were the feasible ones."""
        codes = self._classes.codes
        present: Bools = np.zeros(self._classes.size, dtype=np.bool_)
        present[codes[feasible[: len(codes)]]] = True
        return all(rule.scale == rule.scale_for(self._classes.view, present) for rule in self.scores.values())

    def settle_scores(self, row_view: Row) -> None:
        """Bring the values of the scorers themselves up to date, as somebody reads them."""
        for rule in self.scores.values():
            rule.part.bring_up_to_date(self._state, rule.params, row_view)


def choose_board(
    state: ClusterState,
    filters: Sequence[tuple[int, FilterPart]],
    scores: Sequence[tuple[int, ScorePart, int]],
    filter_params: FilterParams,
    score_params: ScoreParams,
    fits: Callable[[frozenset[int]], Bools],
) -> ClassBoard | None:
    """Find the rules that can be asked about classes, and ask them; None where none can, or classes are too many.

    Args:
        state: the cluster.
        filters: those that placements can change, with their numbers. scores: scorers, with numbers and weights.
        filter_params, score_params: params of this cycle.
        fits: returns bool[capacity], the rows that pass the filters beside those with these numbers; the board's own then.
    """
    columns: dict[Column, None] = {}
    class_filters, class_scores = dict[int, ClassFilter](), dict[int, ClassScores]()
    for number, part in filters:
        params = filter_params(part)
        found = columns_of_filter(part, params, state)
        if found is not None:
            class_filters[number] = ClassFilter(part, params, found)
            columns.update(dict.fromkeys(found))
    for number, score_part, weight in scores:
        params = score_params(score_part)
        found = columns_of_score(score_part, params, state)
        if found is not None:
            class_scores[number] = ClassScores(score_part, weight, params, found)
            columns.update(dict.fromkeys(found))
    if not class_filters and not class_scores:
        return None
    classes = RowClasses(state, list(columns))
    if not classes.size:
        return None
    return ClassBoard(state, classes, class_filters, class_scores, fits(frozenset(class_filters)))
