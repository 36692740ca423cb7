"""Which filter rejects the pods of a plan on which row, nominated pods counted in: kept from cycle to cycle, by rows that changed.

While preemptors wait for their nodes, every cycle filters thousands of rows once more with the pods that are nominated to them,
and every cycle that finds no node counts reasons over all rows. Between two such cycles a few rows have changed. What is kept
follows from the plan's own verdicts, its params, and who is nominated where: compared by value, or told by logs.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.overrides import Overrides
from bayplan.engine.plan import Plan
from bayplan.engine.supposing import filter_row_supposing, filter_with_nominated_pods, supposed_parts
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.status import ERROR_BIT, Status
from bayplan.state.arrays import Bools, Codes, Index
from bayplan.state.row_log import RowLog

BOARDS = 8
"""Boards are kept for so many plans, those used last."""

FULL_SHARE = 8
"""Where more than one row in so many changed, all are looked at anew."""


FEW_LOOKED_UP = 8
"""Up to here rows are looked up one by one."""

NO_PLACES: Index = np.zeros(0, dtype=np.intp)


class FailureBoard:
    """The first failing filter of every row for one plan, as the last `follow` found it.

    Args:
        plan: the plan.
        nominations: rows whose nominations changed.

    Attributes:
        first: intp[capacity], the number of the first filter that fails, nominated pods counted in; -1 where none does.
        verdicts: uint16[capacity], its verdict.
        counts: how many rows say what, by filter number << 16 | verdict.
        shut: bool[capacity], rows that only nominated pods keep the plan's pods from; `shut_count` is how many there are.
    """

    __slots__ = (
        "_differs",
        "_logs",
        "_own_row",
        "_plan",
        "_positions",
        "_stamp",
        "_told",
        "counts",
        "first",
        "shut",
        "shut_count",
        "verdicts",
    )

    def __init__(self, plan: Plan, nominations: RowLog) -> None:
        self._plan = plan
        state = plan.state
        self._logs = (state.usage_log, state.ports_log, nominations)
        self._positions = [-1, -1, -1]
        self._stamp: Hashable = None
        self._own_row = -1
        self._clear()

    def _clear(self) -> None:
        capacity = self._plan.state.nodes.capacity
        self.first: Index = np.full(capacity, -1, dtype=np.intp)
        self.verdicts: Codes = np.zeros(capacity, dtype=np.uint16)
        self.shut: Bools = np.zeros(capacity, dtype=np.bool_)
        self._differs: Bools = np.zeros(capacity, dtype=np.bool_)
        self.counts: dict[int, int] = {}
        self.shut_count = 0
        self._told: dict[int, Status] = {}

    def follow(self, crowd: Crowd, own_row: int) -> bool:
        """Bring the board up to date; the plan's filters must be. Return False where this plan can't be followed by rows.

        Args:
            crowd: the nominated pods that count.
            own_row: where the pod itself is nominated (-1: nowhere); others look at that row with other eyes.
        """
        plan, state = self._plan, self._plan.state
        parts = plan.filter_parts
        if plan.pre.node_names is not None or plan.failure is not None or not all(part.incremental for part in parts):
            return False
        if len(crowd):
            supposed = supposed_parts(plan)
            # Where verdicts depend on pods of other rows, no log tells which of them move.
            if supposed is None or supposed.counts_pods:
                return False
        # Filters have just been brought up to date, with the params of this cycle. PreFilter may have left out others than before.
        params = tuple([(part.name, part.params) for part in parts])
        stamp = (params, state.node_log.end, state.usage.shape)
        rows = self._missed() if stamp == self._stamp else None
        self._positions = [log.end for log in self._logs]
        if rows is None:
            self._stamp = stamp
            self._clear()
            rows = state.nodes.alive.nonzero()[0].tolist()
        else:
            rows += [row for row in (self._own_row, own_row) if row >= 0]
        self._own_row = own_row
        if rows:
            rows = list(dict.fromkeys(rows))
            if len(rows) <= FEW_LOOKED_UP:
                self._look_at_few(rows, crowd)
            else:
                self._look_at(np.array(rows, dtype=np.intp), crowd)
        # An Error ends the cycle in ways that depend on the order of rows: not for here.
        return not any(key & ERROR_BIT for key in self.counts)

    def _missed(self) -> list[int] | None:
        """Return the rows that changed since the last time, None: all may have."""
        missed: list[int] = []
        for log, position in zip(self._logs, self._positions, strict=True):
            rows = log.since(position) if position >= 0 else None
            if rows is None:
                return None
            missed += rows
        return missed if len(missed) * FULL_SHARE <= self._plan.state.nodes.count + 64 else None

    def _look_at_few(self, rows: list[int], crowd: Crowd) -> None:
        plan = self._plan
        for row in rows:
            told = filter_row_supposing(plan, row, crowd) if len(crowd) else (-1, 0)
            self._put(row, plan.first_failure_at(row), told)

    def _look_at(self, index: Index, crowd: Crowd) -> None:
        plan = self._plan
        first, verdicts = plan.first_failures_of(index)
        places = crowd.places_in(index) if len(crowd) else NO_PLACES
        with_them = filter_with_nominated_pods(plan, crowd, index[places]) if len(places) else None
        shut = np.zeros(len(index), dtype=np.bool_)
        differs = np.zeros(len(index), dtype=np.bool_)
        if with_them is not None:
            numbers, their_verdicts = with_them
            fails = numbers >= 0
            own_first, own_verdicts = first[places], verdicts[places]
            differs[places] = fails & ((own_first != numbers) | (own_verdicts != their_verdicts))
            shut[places] = fails & (own_first < 0)
            first[places] = np.where(fails, numbers, own_first)
            verdicts[places] = np.where(fails, their_verdicts, own_verdicts)
        self._count(index, -1)
        self.shut_count += int(np.count_nonzero(shut)) - int(np.count_nonzero(self.shut[index]))
        self.first[index], self.verdicts[index] = first, verdicts
        self.shut[index], self._differs[index] = shut, differs
        self._count(index, 1)

    def _put(self, row: int, own: tuple[int, int], told: tuple[int, int]) -> None:
        """Note what one row says by itself, and with nominated pods: the number of a filter (-1: none fails) and its verdict."""
        found = told if told[0] >= 0 else own
        shut = found[0] >= 0 > own[0]
        if self.first.item(row) >= 0:
            self._add(self.first.item(row) << 16 | self.verdicts.item(row), -1)
        if found[0] >= 0:
            self._add(found[0] << 16 | found[1], 1)
        self.shut_count += shut - self.shut.item(row)
        self.first[row], self.verdicts[row] = found
        self.shut[row], self._differs[row] = shut, found != own

    def _add(self, key: int, count: int) -> None:
        left = self.counts.get(key, 0) + count
        if left:
            self.counts[key] = left
        else:
            del self.counts[key]

    def _count(self, index: Index, sign: int) -> None:
        """Count what some rows say in (1) or out (-1)."""
        first = self.first[index]
        packed = ((first << 16) | self.verdicts[index])[first >= 0]
        if len(packed) <= FULL_SHARE:
            found = [(key, 1) for key in packed.tolist()]
        else:
            keys, counts = np.unique(packed, return_counts=True)
            found = list(zip(keys.tolist(), counts.tolist(), strict=True))
        for key, count in found:
            self._add(key, sign * count)

    def overrides(self) -> Overrides:
        """Return the rows where nominated pods make the plan's own verdict another one."""

        def find() -> tuple[Index, Index, Codes]:
            rows = self._differs.nonzero()[0]
            return rows, self.first[rows], self.verdicts[rows]

        return Overrides(find)

    def feasible(self) -> Bools:
        """Return bool[capacity], the rows that pass with nominated pods counted in; the plan's own where these change nothing."""
        return self._plan.feasible & ~self.shut if self.shut_count else self._plan.feasible

    def totals_serve(self, feasible: Bools) -> bool:
        """Bring the plan's totals up to date; return whether they hold where only these (bool[capacity]) are feasible."""
        self._plan.refresh_scores()
        return self._plan.failure is None and self._plan.totals_hold_for(feasible)

    def _explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict; rows say the same again and again."""
        key = number << 16 | verdict
        status = self._told.get(key)
        if status is None:
            status = self._told[key] = self._plan.explain(number, verdict)
        return status

    def diagnosis(self) -> Diagnosis:
        """Return why the plan's pods fit nowhere; it holds until this board is brought up to date again."""
        plan = self._plan
        names = tuple(part.name for part in plan.filter_parts)
        rejecting = sorted({key >> 16 for key in self.counts})
        return Diagnosis(
            num_all_nodes=len(plan.state.nodes),
            pre_filter_status=None,
            examined=plan.state.nodes.alive.copy(),
            first=self.first,
            verdicts=self.verdicts,
            filters=names,
            explain=self._explain,
            counts=dict(self.counts),
            unschedulable_plugins=tuple(names[number] for number in rejecting),
        )


class FailureBoards:
    """The boards of a scheduler by plan.

    Args:
        nominations: rows whose nominations changed.
    """

    def __init__(self, nominations: RowLog) -> None:
        self._nominations = nominations
        self._boards: dict[Plan, FailureBoard] = {}

    def of(self, plan: Plan) -> FailureBoard:
        """Return the board of a plan."""
        board = self._boards.pop(plan, None)
        if board is None:
            board = FailureBoard(plan, self._nominations)
            if len(self._boards) >= BOARDS:
                del self._boards[next(iter(self._boards))]
        self._boards[plan] = board
        return board
