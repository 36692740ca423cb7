"""What a plan's filters say of rows with nominated pods counted in, brought up to date by the rows that changed.

Preemptors that wait for their nodes leave thousands of nominations, and every cycle counts them in; between two cycles a few rows
change. (5,000 nodes, 1,500 nominations: 240 preemptors/s without, see docs/performance.md.)
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.engine.what_if import PASSES, Trial
from bayplan.state.arrays import Ints
from bayplan.state.row_log import RowLog

_PASSES = PASSES


class NominatedResult:
    """The first filter that fails on each row if the nominated pods ran there.

    Args:
        plan: whose filters are asked.
        nominations: the log of rows whose nominations changed.

    Attributes:
        values: int64[capacity], as `Trial.first_failure`; `PASSES` on rows without nominated pods.
        asked_rows: how many rows were asked in all, for measurements. full_passes: how often all rows were.
    """

    def __init__(self, plan: Plan, nominations: RowLog) -> None:
        self._plan = plan
        state = plan.state
        self._nominations, self._usage_log, self._ports_log = nominations, state.usage_log, state.ports_log
        self._nominations_position = self._usage_position = self._ports_position = -1
        self._stamp: Hashable = None
        self._own_row = -1
        self.values: Ints = np.full(0, PASSES, dtype=np.int64)
        self._values: Any = self.values
        self.asked_rows = 0
        self.full_passes = 0

    def refresh(self, crowd: Crowd) -> None:
        """Bring `values` up to date; the plan's filters must be."""
        plan = self._plan
        stamp = (crowd.floor, plan.state.node_log.end, plan.columns.capacity, plan.filter_stamp())
        whole = stamp != self._stamp
        for part in plan.filter_parts:
            # What such a rule says of a row moves with pods on other rows, and no log names the rows.
            if part.rule.reads_others or not part.incremental:
                whole = True
        nominations, usage_log, ports_log = self._nominations, self._usage_log, self._ports_log
        starts = (self._nominations_position, self._usage_position, self._ports_position)
        if starts[0] < nominations.start or starts[1] < usage_log.start or starts[2] < ports_log.start:
            whole = True
        self._stamp = stamp
        self._nominations_position, self._usage_position = nominations.end, usage_log.end
        self._ports_position = ports_log.end
        if whole:
            self.full_passes += 1
            self.values = np.full(plan.columns.capacity, PASSES, dtype=np.int64)
            self._values = self.values
            rows = crowd.rows.tolist()
        else:
            rows = [nominations.at(position) for position in range(starts[0], nominations.end)]
            rows += [usage_log.at(position) for position in range(starts[1], usage_log.end)]
            rows += [ports_log.at(position) for position in range(starts[2], ports_log.end)]
            # The pod itself does not count where it is nominated; on the row of the one before it, that one does again.
            rows += [row for row in (self._own_row, crowd.own_row) if row >= 0]
        self._own_row = crowd.own_row
        if rows:
            self._ask(rows, crowd)

    def _ask(self, rows: list[int], crowd: Crowd) -> None:
        trial = Trial(self._plan)
        values, examined = self._values, self._plan.examined()
        try:
            for row in rows:
                pods = crowd.pods_at(row)
                self.asked_rows += 1
                values[row] = trial.first_failure_with(row, pods) if pods and examined[row] else _PASSES
        finally:
            trial.close()
