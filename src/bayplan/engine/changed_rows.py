"""Rows on which a plan's filters may answer differently with other pods than there are: for answers that are cached row by row."""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.state.row_log import RowLog


class ChangedRows:
    """A reader of the logs of changed rows, for one plan.

    Args:
        plan: whose filters are asked.
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
        """Let the next call say that all rows may have changed."""
        self._stamp = None

    def take(self, crowd: Crowd, stamp: Hashable = None) -> list[int] | None:
        """Return the rows that may have changed since the last call (with repetitions), or None if all may have.

        Args:
            crowd: the nominated pods that count now.
            stamp: what else the answers follow from.
        """
        plan = self._plan
        now = (stamp, plan.state.node_log.end, plan.state.columns.capacity, plan.filtered.rules.stamp())
        whole = now != self._stamp
        for part in plan.filtered.results:
            # What such a rule says of a row moves with pods on other rows, and no log names the rows.
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
        # The pod itself does not count where it is nominated; on the row of the one before it, that one does again.
        if own_row >= 0:
            rows.append(own_row)
        if crowd.own_row >= 0:
            rows.append(crowd.own_row)
        return rows
