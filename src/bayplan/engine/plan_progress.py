"""How far a plan has followed the cluster: which rows changed since, which parts it keeps up to date, and with whom it goes.

The base of `bayplan.engine.plan`: what is feasible and what it is worth is found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.engine.answers_by_state import AnswersByState
from bayplan.engine.class_board import ClassBoard
from bayplan.engine.convoy import Convoy, rules_of
from bayplan.engine.node_sampling import Visits
from bayplan.engine.part import FULL_SHARE, Changes, FilterPart, Part, ScorePart
from bayplan.engine.part_store import PartStore
from bayplan.engine.state_pass import StatePass
from bayplan.engine.tie_set import TieSet
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Row

KEPT_CYCLES = 64
"""A plan that has needed all rows of its parts more than once keeps them up to date for so many cycles."""


class PlanProgress:
    """What is kept of one pod template while the cluster changes.

    Attributes:
        specs: what each plugin compiled of the template.
        feasible: bool[capacity]; feasible_count: how many are. static_feasible: bool[capacity], the nodes that were examined
            and pass all filters that placements leave alone. dynamic_filters: the others, with their numbers among those that
            take part.
        weights: of the scorers that take part, in order.
        dynamic_scores: those that placements can change and that are scored row by row, with their numbers.
        static_sum: int64[capacity], the weighted sum of those that they can't; meaningful in feasible rows.
        was_scored: whether totals were found before.
        supposable: free for `bayplan.engine.supposing`: filter parts, and what it remembers of them.
        board: what is known by classes of rows; None where nothing is, or nothing has been scored yet.
        usage_position: how far the log of usage was followed.
        convoy, place: the plans that this one goes with, and its place there; None and -1 where it is alone.
    """

    def __init__(self, specs: dict[str, Any], state: ClusterState, parts: PartStore) -> None:
        self.specs = specs
        self.state = state
        self._parts = parts
        self._row_view = Row(state)
        self.dynamic_filters: list[tuple[int, FilterPart]] = []
        self._filter_epochs: list[int] = []
        self.dynamic_scores: list[tuple[int, ScorePart]] = []
        self.weights: list[int] = []
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.static_feasible = self.feasible
        # How many rows that are.
        self._static_count = 0
        self.feasible_count = 0
        self.static_sum: Ints = np.zeros(0, dtype=np.int64)
        self._has_errors = self._has_static_errors = self._filters_have_columns = False
        self._begin()

    def _begin(self) -> None:
        """Be as a plan that was never asked."""
        # Whether loose parts are kept up to date in this cycle, whether somebody has asked for them since it began, and for how
        # many cycles they will be kept for having been needed as a whole.
        self._keeping = self._asked = False
        self._keeping_for = 0
        self._changes: Changes | None = None
        # What parts have missed that were read last; several mostly have missed the same.
        self._missed: Changes | None = None
        # Rows whose totals are not up to date, and rows that records have not seen; None stands for all. Whether samples have been
        # scored without totals: then more rows are not up to date.
        self._stale_rows: list[int] | None = None
        self._totals_wait = False
        self._recorded_rows: list[int] | None = None
        self.usage_position = -1
        self.convoy: Convoy | None = None
        self.place = self._joined_at = -1
        self.was_scored = False
        self._total: Ints = np.zeros(0, dtype=np.int64)
        self._ties = TieSet()
        self.board: ClassBoard | None = None
        # Whether this plan was made of another and nobody has asked for it yet. Then: what its filters said of states, and the same
        # once it has totals.
        self._is_new = False
        self._state_pass: StatePass | None = None
        self._totals_of_states: StatePass | None = None
        self.supposable: tuple[object, object] | None = None
        # The filters that are asked about rows: all that placements can change, or all but those that the board asks about classes.
        self._row_filters = self.dynamic_filters
        self._visits: Visits | None = None
        # Whether it is known that all rows pass the filters that placements can change.
        self._all_pass = False
        # What filters, and scorers, that placements can change say of rows by their state, where it follows from that.
        self._answers = AnswersByState(self._parts.row_states, self._row_view)

    @property
    def total(self) -> Ints:
        """Return int64[capacity], the weighted sum of normalised scores; -1 where not feasible."""
        if self.board is not None:
            return self.board.totals(self.feasible)
        return self._total if self._totals_of_states is None else self._totals_of_states.total()

    @total.setter
    def total(self, total: Ints) -> None:
        self._total = total

    def visits(self, order: Index) -> Visits:
        """Return the feasible rows in an order of visits (intp)."""
        visits = self._visits
        if visits is None or visits.order is not order:
            visits = self._visits = self._parts.visits(order, self.feasible)
        return visits

    def _scales_hold(self) -> bool:
        raise TypeError("a plan knows whether its scales hold")

    def filter_params(self, part: FilterPart) -> Params | None:
        """Return what a filter gets as params now: None where the profile leaves out its PreFilter."""
        raise TypeError("a plan knows what its filters get")

    def _fits_beside(self, filters: frozenset[int]) -> Bools:
        raise TypeError("a plan knows its filters")

    # Classes.

    def _follow_classes(self, board: ClassBoard, changes: Changes, *, asked: bool) -> bool | None:
        """Bring classes and their filters up to date; see `ClassBoard.follow`."""
        opened = board.follow(changes.rows, self.filter_params, asked=asked) if self.state.small else None
        for number, rule in board.filters.items():
            # Other plans may have been here with other params.
            if rule.part.params is not rule.params or rule.part.epoch != self._filter_epochs[number]:
                rule.part.adopt(rule.params)
                self._filter_epochs[number] = rule.part.epoch
        return opened

    # Parts.

    def _settle(self, parts: Sequence[tuple[int, Part]]) -> None:
        """Bring the parts up to date that need not be, as somebody reads them."""
        self._asked = True
        state, missed = self.state, self._missed
        for _, part in parts:
            if not part.loose or part.is_up_to_date():
                continue
            if missed is None or missed.usage_start != part.usage_position or missed.usage_end != state.usage_log.end:
                rows = state.usage_log.since(part.usage_position) or []
                missed = Changes(state, list(dict.fromkeys(rows)), part.usage_position, part.ports_position)
            if len(missed.rows) * FULL_SHARE > state.nodes.count or not part.follow(missed, part.epoch, self._row_view):
                part.settle(state, self._row_view)
        self._missed = missed

    def _choose_whether_to_keep(self, *, again: bool) -> None:
        """Begin a cycle: loose parts are kept where somebody reads them, or where all rows are needed again and again.

        In a convoy they are not: what others found out about this plan is not found out about its parts.
        """
        if again:
            self._keeping_for = KEPT_CYCLES
        elif self._keeping_for:
            self._keeping_for -= 1
        self._keeping = self.convoy is None and (self._asked or self._keeping_for > 0)
        self._asked = False

    def _refresh_part(self, part: Part, params: Params | None) -> None:
        if part.loose and not self._keeping:
            part.adopt(params)
        else:
            part.bring_up_to_date(self.state, params, self._row_view)

    # With other plans.

    def _join_convoy(self) -> None:
        """Join the plans that can be brought up to date together with this one, which has found many changed rows."""
        scores = [(part, self.weights[number]) for number, part in self.dynamic_scores]
        rules = rules_of(self.dynamic_filters, scores)
        convoy = None if rules is None else self._parts.convoys.of(rules)
        if convoy is not None:
            self.place = convoy.join(self, recorded=self._recorded_rows is not None)
            self.convoy, self._joined_at = convoy, self.usage_position

    def leave_convoy(self) -> None:
        """Have arrays of its own again: because other than the usual changed, or because nobody asks for this plan."""
        convoy = self.convoy
        if convoy is not None:
            self._take_over(convoy)
            self.place = convoy.leave(self.place)
            self.convoy = None

    def _follow_convoy(self) -> None:
        """Begin a cycle: see to it that the convoy is not far behind, and take over what was found for this plan."""
        convoy = self.convoy
        if convoy is None:
            return
        if not convoy.lasts:
            self.leave_convoy()
            return
        convoy.refresh(self.place)
        self._take_over(convoy)

    def _take_over(self, convoy: Convoy) -> None:
        """Note how far feasible nodes and totals, which are kept in the convoy, were brought up to date there."""
        if convoy.position <= self.usage_position:
            return
        if self._recorded_rows is not None:
            rows = self.state.usage_log.since(self.usage_position)
            self._recorded_rows = None if rows is None else united(self._recorded_rows, rows)
        self.usage_position = convoy.position
        self._ties.forget()
        if convoy.take_flipped(self.place):
            self.feasible_count = int(np.count_nonzero(self.feasible))
            self._visits, self._all_pass = None, False
            if not self._scales_hold():
                self._stale_rows = None


def united(known: list[int], rows: list[int]) -> list[int]:
    """Return the rows of both lists, each once; neither is changed."""
    if not known and len(rows) == 1:
        return rows
    return list(dict.fromkeys((*known, *rows)))
