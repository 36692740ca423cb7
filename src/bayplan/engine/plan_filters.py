"""The filters of a plan: which nodes are feasible, kept while the cluster changes.

The half of `bayplan.engine.plan` that comes before scoring, and what it has to say about verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np

from bayplan.engine.class_board import some_filter_has_columns
from bayplan.engine.part import FULL_SHARE, Changes, FilterPart
from bayplan.engine.part_store import PartStore
from bayplan.engine.plan_progress import united
from bayplan.engine.plan_scores import PlanScores
from bayplan.engine.pre_filters import PreFilterOutcome
from bayplan.engine.state_pass import StatePass
from bayplan.framework.plugin import Params, PreFilterPlugin
from bayplan.framework.profile import Profile
from bayplan.framework.status import ERROR_BIT, Status, error, verdict_code
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Codes, Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import GatheredRows

ROWS_FOR_A_CHANGE = 512
"""Looking at so many rows by their states takes about as long as following one change of the log."""


class PlanFilters(PlanScores):
    """Filters one pod template over all rows.

    Attributes:
        pre: the outcome of PreFilter in the last cycle.
    """

    def __init__(self, profile: Profile, pod: Pod, state: ClusterState, parts: PartStore) -> None:
        super().__init__(profile, pod, state, parts)
        self.pre = PreFilterOutcome()
        self._pre_seen: PreFilterOutcome | None = None
        self._filters_skipped: set[str] | None = None
        self._narrowed_to: frozenset[str] | None = None
        self._filter_parts: list[FilterPart] = []
        self._static_stamp: tuple[int, frozenset[str] | None, list[tuple[FilterPart, int]]] | None = None
        self._node_position = -1
        self._ports_position = -1

    @property
    def filter_parts(self) -> list[FilterPart]:
        """Return the filters that take part, in order, brought up to date."""
        self._settle(self.dynamic_filters)
        return self._filter_parts

    def refresh_filters(self) -> None:
        """Bring `feasible` up to date with the cluster; PreFilter must have been run and must not have rejected."""
        state = self.state
        self.failure = None
        if self._is_new:
            self._is_new = False
            if self._pass_states():
                return
        elif self._answers.serve and self._follow_states():
            return
        self._state_pass = None
        self._follow_convoy()
        rows = self._changed_rows()
        if self.pre.node_names != self._narrowed_to:
            self._narrowed_to = self.pre.node_names
            rows = None
        again = rows is None and self.was_scored
        if again or self._asked or self._keeping_for:
            self._choose_whether_to_keep(again=again)
        else:
            self._keeping = False
        changes = None if rows is None else Changes(state, rows, self.usage_position, self._ports_position)
        self._changes = changes
        # Where another plan's PreFilter answered, or where it answered otherwise, filters may get other params.
        asked = self.pre is not self._pre_seen
        opened: bool | None = False
        whole = self._refresh_filter_parts(changes) or changes is None
        if self.board is not None and changes is not None and not whole:
            opened = self._follow_classes(self.board, changes, asked=asked)
            whole = opened is None
        if whole or changes is None:
            self._fuse_filters()
            self._stale_rows = None
            self._recorded_rows = None
        elif changes.rows or opened:
            self._take_rows(changes, opened=bool(opened))
        self.usage_position = state.usage_log.end
        self._node_position = state.node_log.end
        self._ports_position = state.ports_log.end
        if self._has_errors:
            self._find_filter_error()

    def _pass_states(self) -> bool:
        """Filter a new plan by states; return False where that takes more than asking those that placements can change."""
        state, node_end, stamp = self.state, self.state.node_log.end, self._static_stamp
        if self.pre is not self._pre_seen or self._node_position != node_end or self._has_static_errors:
            return False
        if stamp is None or stamp[0] != node_end or any(part.epoch != epoch for part, epoch in stamp[2]):
            return False
        states = StatePass.begin(state)
        if states is None:
            return False
        for number, part in self.dynamic_filters:
            if part.epoch != self._filter_epochs[number]:
                part.adopt(self.filter_params(part))
                self._filter_epochs[number] = part.epoch
            if not part.follows_from_state:
                return False
            states.filter(part)
        if states.failing:
            return False
        self.feasible, self.feasible_count = self.static_feasible.copy(), self._static_count
        if states.passing is not None:
            states.narrow(self.feasible)
            self.feasible_count = int(np.count_nonzero(self.feasible))
        self._state_pass = states
        self.usage_position, self._ports_position = state.usage_log.end, state.ports_log.end
        self._answers.choose_filters([part for _, part in self.dynamic_filters])
        return True

    def _follow_states(self) -> bool:
        """Bring `feasible` up to date where verdicts follow from the states of rows; return False where more may have changed.

        The way of plans that come again and again while pods of others come and go.
        """
        state, node_end = self.state, self.state.node_log.end
        if self.pre is not self._pre_seen or self._node_position != node_end or self.convoy is not None:
            return False
        # Parts that are kept follow the log: they have not seen what this plan has.
        failing = self._has_errors
        if self._asked or self._keeping_for or failing or self._recorded_rows is not None:
            return False
        # Few changes are read from the log.
        if (state.usage_log.end - self.usage_position) * ROWS_FOR_A_CHANGE <= state.nodes.count:
            return False
        for number, part in self.dynamic_filters:
            if part.epoch != self._filter_epochs[number]:
                return False
        if not self._answers.follow():
            return False
        passing = self._answers.passing()
        if not self._answers.serve:
            return False
        self._keeping, self._changes = False, None
        self._take_passing(passing)
        if self._stale_rows is not None:
            self._stale_rows, self._totals_wait = [], True
        self.usage_position, self._ports_position = state.usage_log.end, state.ports_log.end
        return True

    def _take_passing(self, passing: Bools | None) -> None:
        """Take over which rows pass the filters that placements can change; None: all."""
        if passing is None:
            if self._all_pass:
                return
            feasible = self.static_feasible.copy()
        else:
            feasible = self.static_feasible.copy()
            feasible[: len(passing)] &= passing
        self._all_pass = passing is None
        # Their bytes are compared in a fraction of the time that it takes to compare elements and count differences.
        if feasible.tobytes() == self.feasible.tobytes():
            return
        self.feasible, self._visits = feasible, None
        self.feasible_count = int(np.count_nonzero(feasible))
        if not self._scales_hold():
            self._stale_rows = None

    def _take_rows(self, changes: Changes, *, opened: bool) -> None:
        """Fuse the rows that changed; `opened`: classes became or stopped being passed, too."""
        if self._recorded_rows is not None:
            self._recorded_rows = None if opened else united(self._recorded_rows, changes.rows)
        flipped = bool(changes.rows) and self._fuse_filter_rows(changes)
        if opened and self.board is not None:
            self.feasible = self.board.feasible()
            self.feasible_count = int(np.count_nonzero(self.feasible))
            self._visits, self._all_pass = None, False
        if (flipped or opened) and not self._scales_hold():
            self._stale_rows = None
        elif self._stale_rows is not None:
            self._stale_rows = united(self._stale_rows, changes.rows) if self._stale_rows else changes.rows

    def _changed_rows(self) -> list[int] | None:
        """Return the rows that changed since the last refresh, each once, or None for all."""
        state = self.state
        if self._node_position != state.node_log.end:
            return None
        rows = state.usage_log.since(self.usage_position)
        if self._ports_position != state.ports_log.end:
            ports = state.ports_log.since(self._ports_position)
            rows = None if rows is None or ports is None else rows + ports
        if rows is None:
            return None
        if len(rows) > 1 and len(set(rows)) < len(rows):
            rows = list(dict.fromkeys(rows))
        return rows if len(rows) * FULL_SHARE <= state.nodes.count + 64 else None

    def _refresh_filter_parts(self, changes: Changes | None) -> bool:
        """Bring the filter parts up to date; return whether they must be fused anew as a whole."""
        pre = self.pre
        # Where no PreFilter answered otherwise and no node changed, only usage and ports can have changed verdicts.
        same_answers = pre is self._pre_seen
        only_dynamic = same_answers and changes is not None
        whole = False
        if not only_dynamic and pre.skipped != self._filters_skipped:
            self._choose_filters()
            whole = True
        self._pre_seen = pre
        same_nodes = self._node_position == self.state.node_log.end
        for number, part in self._row_filters if only_dynamic else enumerate(self._filter_parts):
            if not whole and self._is_classed_filter(number):
                continue
            same = part.epoch == self._filter_epochs[number] and (same_answers or self._has_its_params(part))
            if same and same_nodes and part.static:
                continue
            if same and changes is not None:
                if part.loose and not self._keeping:
                    continue
                if part.follow(changes, part.epoch, self._row_view):
                    continue
            self._refresh_part(part, self.filter_params(part))
            if part.epoch != self._filter_epochs[number]:
                self._filter_epochs[number] = part.epoch
                whole = True
        return whole

    def _has_its_params(self, part: FilterPart) -> bool:
        """Return whether a filter gets the params that its part was evaluated with."""
        params = self.filter_params(part)
        return params is not None and params == part.params

    def _choose_filters(self) -> None:
        """Take the parts of the filters that PreFilter left in."""
        skipped = self._filters_skipped = self.pre.skipped
        wanted = (plugin for plugin in self.profile.filter if plugin.name not in skipped)
        self._filter_parts = [self._parts.filter_part(plugin, self.specs[plugin.name]) for plugin in wanted]
        self.dynamic_filters = [entry for entry in enumerate(self._filter_parts) if not entry[1].static]
        self._filter_epochs = [-1] * len(self._filter_parts)
        self.board, self._row_filters = None, self.dynamic_filters
        self._filters_have_columns = some_filter_has_columns(part for _, part in self.dynamic_filters)

    def filter_params(self, part: FilterPart) -> Params | None:
        """Return what a filter gets as params now: None where the profile leaves out its PreFilter."""
        if part.name in self.profile.pre_filter_names:
            return self.pre.params.get(part.name, ())
        return None if isinstance(part.plugin, PreFilterPlugin) else part.plugin.observe(part.spec, self.state)

    def _fuse_filters(self) -> None:
        self.leave_convoy()
        if self.board is not None:
            self._leave_board()
        self._fuse_static_filters()
        self._has_errors = self._has_static_errors
        self.feasible = self._fits_beside(frozenset())
        self.feasible_count = int(np.count_nonzero(self.feasible))
        self._visits, self._all_pass = None, False
        self._answers.choose_filters([part for _, part in self.dynamic_filters])

    def _leave_board(self) -> None:
        """Look at rows alone, until scores are fused anew."""
        board, self.board = self.board, None
        self._row_filters = self.dynamic_filters
        for number in board.filters if board is not None else ():
            part = self._filter_parts[number]
            self._refresh_part(part, self.filter_params(part))
            self._filter_epochs[number] = part.epoch

    def _fits_beside(self, filters: frozenset[int]) -> Bools:
        """Return bool[capacity], the rows that pass all filters but those with these numbers."""
        state = self.state
        count, states = state.nodes.count, self._pass_over_states(self.dynamic_filters)
        feasible = self.static_feasible.copy()
        for number, part in self.dynamic_filters:
            if number in filters:
                continue
            if states is not None and part.follows_from_state:
                states.filter(part)
                continue
            verdicts = part.all_values(state)
            if np.count_nonzero(verdicts):
                self._has_errors |= bool((verdicts >= ERROR_BIT).any())
                feasible[:count] &= verdicts == 0
        if states is not None:
            states.narrow(feasible)
            self._has_errors |= states.failing
        return feasible

    def _fuse_static_filters(self) -> None:
        """Fuse the filters that placements leave alone, where that has changed."""
        parts = [part for part in self._filter_parts if part.static]
        stamp = (self.state.node_log.end, self.pre.node_names, [(part, part.epoch) for part in parts])
        if stamp == self._static_stamp:
            return
        self._static_stamp, self._has_static_errors = stamp, False
        static = self.examined().copy()
        for part in parts:
            if np.count_nonzero(part.values):
                self._has_static_errors |= bool((part.values >= ERROR_BIT).any())
                static &= part.values == 0
        self.static_feasible = self._parts.interned(static)
        self._static_count = int(np.count_nonzero(static))

    def _fuse_filter_rows(self, changes: Changes) -> bool:
        """Fuse just these rows; return whether any became or stopped being feasible."""
        feasible, static, keeping = self.feasible, self.static_feasible, self._keeping
        row_view, board, answers = self._row_view, self.board, self._answers
        by_state = (board is None or not board.filters) and answers.filters and not keeping and answers.follow()
        if not changes.few or not self.state.small:
            return self._fuse_many_filter_rows(changes, by_state=by_state)
        flipped = False
        verdicts: Iterable[int] = answers.verdicts_of_few(changes.rows) if by_state else repeat(-1)
        for row, verdict in zip(changes.rows, verdicts, strict=False):
            now = static.item(row)
            if now and verdict >= 0:
                now = not verdict
                self._has_errors |= verdict >= ERROR_BIT
            elif now:
                row_view.number = row
                for _, part in self._row_filters:
                    if part.loose and not keeping:
                        verdict = int(part.plugin.filter(part.spec, part.params, row_view))
                    else:
                        verdict = part.values.item(row)
                    if verdict:
                        now = False
                        self._has_errors |= verdict >= ERROR_BIT
                        break
            if board is not None:
                now = board.put(row, now)
            if now != feasible.item(row):
                feasible[row] = now
                self.feasible_count += 1 if now else -1
                self._visits, self._all_pass = None, False
                flipped = True
        return flipped

    def _fuse_many_filter_rows(self, changes: Changes, *, by_state: bool) -> bool:
        view, feasible = changes.view(self.state), self.feasible
        index = view.row_numbers()
        fits = self.static_feasible.take(index)
        said = [self._answers.verdicts_of(index)] if by_state else None
        for verdicts in said or (self._verdicts_at(part, view) for _, part in self._row_filters):
            if np.count_nonzero(verdicts):
                self._has_errors |= bool((verdicts >= ERROR_BIT).any())
                fits &= verdicts == 0
        if self.board is not None:
            fits = np.array(
                [self.board.put(*it) for it in zip(changes.rows, fits.tolist(), strict=True)], dtype=np.bool_
            )
        before = feasible.take(index)
        if not np.count_nonzero(fits != before):
            return False
        self.feasible_count += int(np.count_nonzero(fits)) - int(np.count_nonzero(before))
        feasible[index] = fits
        self._visits, self._all_pass = None, False
        return True

    def _verdicts_at(self, part: FilterPart, view: GatheredRows) -> Any:
        return part.evaluate(view) if part.loose and not self._keeping else part.values.take(view.row_numbers())

    def _find_filter_error(self) -> None:
        """Set `failure` where a filter that was reached says Error; upstream ends the cycle with the first it meets."""
        state = self.state
        first, verdicts = self.first_failures()
        rows = np.flatnonzero((verdicts >= ERROR_BIT) & self.examined())
        if len(rows):
            row = min(rows.tolist(), key=lambda number: state.nodes.names[number] or "")
            self.failure = self.filter_error(int(first[row]), int(verdicts[row]))

    def filter_error(self, number: int, verdict: int) -> Status:
        """Return the Error with which a filter's verdict ends the cycle."""
        status = self.explain(number, verdict)
        return error(f'running "{status.plugin}" filter plugin: {status.message}').by(status.plugin)

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter part with this number."""
        part = self._filter_parts[number]
        return Status(verdict_code(verdict), part.plugin.reasons(part.spec, part.params, verdict), part.name)

    def examined(self) -> Bools:
        """Return bool[capacity]: the nodes that PreFilter left for the filters to look at."""
        if self.pre.node_names is None:
            return self.state.nodes.alive
        named = np.zeros_like(self.state.nodes.alive)
        row_of = self.state.nodes.row_of
        named[[row_of[name] for name in self.pre.node_names if name in row_of]] = True
        return named

    def all_pass_static(self, index: Index) -> bool:
        """Return whether rows (intp) were examined and pass every filter that placements leave alone."""
        return bool(self.static_feasible[index].all())

    def first_failures(self) -> tuple[Any, Any]:
        """Return per row the number of the first filter part that failed (intp, -1: none) and its verdict (uint16)."""
        capacity = self.state.nodes.capacity
        first = np.full(capacity, -1, dtype=np.intp)
        verdicts = np.zeros(capacity, dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            rows = part.values.nonzero()[0]
            if len(rows):
                rows = rows[first[rows] < 0]
                first[rows] = number
                verdicts[rows] = part.values[rows]
        return first, verdicts

    def first_failure_at(self, row: int) -> tuple[int, int]:
        """Return the number of the first filter part that fails on a row (-1: none), and its verdict (0: none)."""
        for number, part in enumerate(self.filter_parts):
            verdict = part.values.item(row)
            if verdict:
                return number, verdict
        return -1, 0

    def first_failures_of(self, index: Index) -> tuple[Index, Codes]:
        """Return the same for some rows (intp), as columns: intp and uint16."""
        first = np.full(len(index), -1, dtype=np.intp)
        verdicts = np.zeros(len(index), dtype=np.uint16)
        for number, part in enumerate(self.filter_parts):
            codes = part.values[index]
            fresh = (codes != 0) & (first < 0)
            first[fresh] = number
            verdicts[fresh] = codes[fresh]
        return first, verdicts
