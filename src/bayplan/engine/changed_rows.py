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
        self._nominations, self._usage_log, self._ports_log = nominations, state.usage_log, state.ports_log
        self._nominations_position = self._usage_position = self._ports_position = -1
        self._stamp: Hashable = None
        self._own_row = -1

    def take(self, crowd: Crowd, stamp: Hashable = None) -> list[int] | None:
        """Return the rows that may have changed since the last call (with repetitions), or None if all may have.

        Args:
            crowd: the nominated pods that count now.
            stamp: what else the answers follow from.
        """
        plan = self._plan
        now = (stamp, crowd.floor, plan.state.node_log.end, plan.columns.capacity, plan.filter_stamp())
        whole = now != self._stamp
        for part in plan.filter_parts:
            # What such a rule says of a row moves with pods on other rows, and no log names the rows.
            if part.rule.reads_others or not part.incremental:
                whole = True
        nominations, usage_log, ports_log = self._nominations, self._usage_log, self._ports_log
        nominations_start, usage_start, ports_start = (
            self._nominations_position,
            self._usage_position,
            self._ports_position,
        )
        if nominations_start < nominations.start or usage_start < usage_log.start or ports_start < ports_log.start:
            whole = True
        own_row = self._own_row
        self._stamp, self._own_row = now, crowd.own_row
        self._nominations_position, self._usage_position = nominations.end, usage_log.end
        self._ports_position = ports_log.end
        if whole:
            return None
        rows = [nominations.at(position) for position in range(nominations_start, nominations.end)]
        rows += [usage_log.at(position) for position in range(usage_start, usage_log.end)]
        rows += [ports_log.at(position) for position in range(ports_start, ports_log.end)]
        # The pod itself does not count where it is nominated; on the row of the one before it, that one does again.
        if own_row >= 0:
            rows.append(own_row)
        if crowd.own_row >= 0:
            rows.append(crowd.own_row)
        return rows
