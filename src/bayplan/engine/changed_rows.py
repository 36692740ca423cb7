"""Rows whose filter results may have changed, for results that are cached row by row and depend on hypothetical pods."""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.state.row_log import RowLog


class ChangedRows:
    """A reader of the change logs, for one plan.

    Args:
        plan: the plan whose filters are run.
        nominations: the log of rows whose nominations changed.
    """

    def __init__(self, plan: Plan, nominations: RowLog) -> None:
        self._plan = plan
        state = plan.state
        # Ports change with usage, never alone.
        self._nominations, self._usage_log = nominations, state.usage_log
        self._nominations_position = self._usage_position = -1
        self._stamp: Hashable = None
        self._own_row = -1

    def forget(self) -> None:
        """Make the next `take` return None: all rows may have changed."""
        self._stamp = None

    def take(self, crowd: Crowd, stamp: Hashable = None) -> list[int] | None:
        """Return the rows that may have changed since the last call (with repetitions), or None if all may have.

        Args:
            crowd: the nominated pods that count now.
            stamp: anything else that the results depend on.
        """
        plan = self._plan
        now = (stamp, plan.state.node_log.end, plan.state.columns.capacity, plan.filtered.rules.stamp())
        whole = now != self._stamp
        for part in plan.filtered.results:
            # Pods on other rows can change such a rule's result for this row, and no log names the rows.
            if part.rule.reads_others or not part.incremental:
                whole = True
        nominations, usage_log = self._nominations, self._usage_log
        nominations_start, usage_start = self._nominations_position, self._usage_position
        if nominations_start < nominations.start or usage_start < usage_log.start:
            whole = True
        own_row = self._own_row
        self._stamp, self._own_row = now, crowd.own_row
        self._nominations_position, self._usage_position = nominations.end, usage_log.end
        if whole:
            return None
        rows = [nominations.at(position) for position in range(nominations_start, nominations.end)]
        rows += [usage_log.at(position) for position in range(usage_start, usage_log.end)]
        # A pod does not count on the row it is nominated to itself, but does when the next pod is evaluated.
        if own_row >= 0:
            rows.append(own_row)
        if crowd.own_row >= 0:
            rows.append(crowd.own_row)
        return rows
