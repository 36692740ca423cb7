"""What the rules of one plan said of rows, kept by the state that the row was in (`bayplan.engine.row_states`).

A plan that comes again after many others finds many changed rows, and most of them in states that it has met before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from bayplan.engine.part import FilterPart, ScorePart
from bayplan.engine.row_states import RowStates
from bayplan.framework.status import ERROR_BIT
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.views import GatheredRows, Row

UNKNOWN = -1

PASSES, REJECTED, NOT_KNOWN = 0, 1, 2

FEW_STATES = 12
"""Up to so many states that are new to a plan are evaluated one by one; with more of them again and again, convoys are faster."""

MOST_STRIKES = 4
"""So many times running."""


NOTHING: Ints = np.zeros(0, dtype=np.int64)


class AnswersByState:
    """Verdicts and weighted scores of one plan by state: of the filters and scorers that placements can change, taken together.

    Args:
        states: of the rows.
        row_view: a view to reuse for single rows.

    Attributes:
        filters, scores: whether verdicts, and scores, follow from the state of a row.
        alone: whether placements change nothing else.
    """

    __slots__ = (
        "_failing",
        "_filter_parts",
        "_generation",
        "_row",
        "_score_parts",
        "_standing",
        "_state",
        "_states",
        "_strikes",
        "_totals_of",
        "_totals_wanted",
        "_verdicts",
        "_worths",
        "alone",
        "filters",
        "scores",
    )

    def __init__(self, states: RowStates, row_view: Row) -> None:
        self._states = states
        self._state = row_view.state
        self._row = row_view
        self._generation = -1
        self._filter_parts: Sequence[FilterPart] = ()
        self._score_parts: Sequence[tuple[ScorePart, int]] = ()
        self._strikes = 0
        # Whether a filter has said Error of some state.
        self._failing = False
        # The generation and the states of rows to which totals were brought up to date, and whether anybody has asked about that.
        self._totals_of = (-1, states.numbers)
        self._totals_wanted = False
        # By the number of a state whether it passes, uint8.
        self._standing: Any = np.zeros(0, dtype=np.uint8)
        # By the number of a state; -1 where it is not known.
        self._verdicts = self._worths = NOTHING
        self.filters = self.scores = self.alone = False

    def choose_filters(self, parts: Sequence[FilterPart]) -> None:
        """Forget verdicts; from now on they are those of these parts."""
        self._filter_parts = parts
        self.filters = all(part.follows_from_state for part in parts)
        self._failing = False
        self._verdicts[:] = UNKNOWN
        self._standing[:] = NOT_KNOWN

    def choose_scores(self, parts: Sequence[tuple[ScorePart, int]], *, alone: bool) -> None:
        """Forget scores; from now on they are those of these parts, by their weights. `alone`: all that placements change."""
        self._score_parts = parts
        self.scores = all(part.follows_from_state for part, _ in parts)
        self._worths[:] = UNKNOWN
        self._strikes = 0
        self.alone = alone

    @property
    def serve(self) -> bool:
        """Return whether all that placements change follows from states, and rows are mostly in states that this plan knows."""
        return self.alone and self.filters and self.scores and not self._failing and self._strikes < MOST_STRIKES

    def passing(self) -> Bools | None:
        """Return which rows in use no filter rejects, as bools; None where all pass. `follow` must have said that this is known."""
        codes = self._states.codes[: self._state.nodes.count]
        standing = self._standing.take(codes)
        worst = standing.item(standing.argmax()) if len(standing) else PASSES
        if worst == PASSES:
            return None
        if worst == NOT_KNOWN:
            unknown = (standing == NOT_KNOWN).nonzero()[0]
            if len(unknown) > FEW_STATES:
                # Of each state any row will do.
                unknown = unknown.take(np.unique(codes.take(unknown), return_index=True)[1])
            self.verdicts_of(unknown)
            standing = self._standing.take(codes)
        passing: Bools = standing == PASSES
        return passing

    def note_totals(self) -> None:
        """Note that totals of all rows are those of the states in which they are now."""
        known = self._totals_wanted and self.serve and self.follow()
        self._totals_of = (self._generation, self._states.numbers.copy()) if known else (-1, self._states.numbers)

    def rows_beside_totals(self) -> list[int] | None:
        """Return the rows that are in other states than when totals were noted last; None where that is not known."""
        generation, numbers = self._totals_of
        self._totals_wanted = True
        if not self.follow() or generation != self._generation:
            return None
        rows: list[int] = (self._states.numbers != numbers).nonzero()[0].tolist()
        return rows

    def follow(self) -> bool:
        """Bring the states of rows up to date, before anything is asked about them; return False where nothing can be asked."""
        states = self._states
        if not self._state.small or not states.follow():
            return False
        if states.generation != self._generation:
            self._generation = states.generation
            self._verdicts = np.full(max(64, 2 * states.size), UNKNOWN, dtype=np.int64)
            self._worths = self._verdicts.copy()
            self._standing = np.full(len(self._verdicts), NOT_KNOWN, dtype=np.uint8)
        elif states.size > len(self._verdicts):
            more = np.full(states.size, UNKNOWN, dtype=np.int64)
            self._verdicts = np.concatenate((self._verdicts, more))
            self._worths = np.concatenate((self._worths, more))
            self._standing = np.concatenate((self._standing, np.full(states.size, NOT_KNOWN, dtype=np.uint8)))
        return True

    def verdict_of(self, row: int) -> int:
        """Return the verdict of the first filter that rejects a row, 0 where none does."""
        number = self._states.numbers.item(row)
        verdict = self._verdicts.item(number)
        if verdict == UNKNOWN:
            self._row.number = row
            for part in self._filter_parts:
                verdict = int(part.plugin.filter(part.spec, part.params, self._row))
                if verdict:
                    break
            else:
                verdict = 0
            self._failing |= verdict >= ERROR_BIT
            self._verdicts[number] = verdict
            self._standing[number] = REJECTED if verdict else PASSES
        return verdict

    def worth_of(self, row: int) -> int:
        """Return the weighted scores of a row."""
        number = self._states.numbers.item(row)
        worth = self._worths.item(number)
        if worth == UNKNOWN:
            self._row.number, worth = row, 0
            for part, weight in self._score_parts:
                worth += weight * int(part.plugin.score(part.spec, part.params, self._row))
            self._worths[number] = worth
        return worth

    def verdicts_of_few(self, rows: Collection[int]) -> list[int]:
        """Return `verdict_of` for some rows."""
        state_of, known = self._states.codes.item, self._verdicts.item
        verdicts = [known(state_of(row)) for row in rows]
        return [self.verdict_of(row) for row in rows] if UNKNOWN in verdicts else verdicts

    def verdicts_of(self, index: Index) -> Ints:
        """Return `verdict_of` for rows (intp)."""
        states = self._states.codes.take(index)
        verdicts = self._verdicts.take(states)
        unknown = (verdicts < 0).nonzero()[0]
        if len(unknown) > FEW_STATES:
            fresh = index.take(unknown)
            view, found = GatheredRows(self._state, fresh), np.zeros(len(fresh), dtype=np.int64)
            for part in self._filter_parts:
                np.copyto(found, part.evaluate(view), where=found == 0)
            self._failing |= bool((found >= ERROR_BIT).any())
            self._verdicts[states.take(unknown)] = verdicts[unknown] = found
            self._standing[states.take(unknown)] = found != 0
        else:
            for place in unknown.tolist():
                verdicts[place] = self.verdict_of(index.item(place))
        return verdicts

    def worths_of(self, index: Index) -> Ints:
        """Return `worth_of` for rows (intp)."""
        states = self._states.codes.take(index)
        worths = self._worths.take(states)
        if not len(worths) or worths.item(worths.argmin()) >= 0:
            self._strikes = 0
            return worths
        unknown = (worths < 0).nonzero()[0]
        if len(unknown) > FEW_STATES:
            self._strikes += 1
            fresh = index.take(unknown)
            view, found = GatheredRows(self._state, fresh), np.zeros(len(fresh), dtype=np.int64)
            for part, weight in self._score_parts:
                found += weight * part.evaluate(view)
            self._worths[states.take(unknown)] = worths[unknown] = found
        else:
            self._strikes = 0
            for place in unknown.tolist():
                worths[place] = self.worth_of(index.item(place))
        return worths
