"""The last result of one plugin's rule for one spec, kept up to date row by row.

A part knows how far it has followed the logs of changed rows. Bringing it up to date evaluates just the rows that changed:
on plain Python numbers for a few rows, on arrays for many, in full when params changed or too much did.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

from bayplan.framework.plugin import FilterPlugin, Params, Plugin, Reads, ScorePlugin
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Row, Rows

FEW_ROWS = 12
"""Up to here plain Python numbers beat arrays (measured: benchmarks/bench_engine.py)."""

FULL_SHARE = 8
"""More than one row in so many changed: a full pass is cheaper than gathering them."""


class Part:
    """One rule of one plugin for one spec over all rows.

    Attributes:
        values: one element a row of the node table's capacity.
        static: whether placements leave the values alone. incremental: whether the logs tell all that can change them.
        epoch: moves whenever rows changed that no log tells of; whoever fused these values must then start over.
    """

    __slots__ = (
        "__weakref__",
        "_node_log",
        "_node_position",
        "_other_log",
        "_other_position",
        "_third_log",
        "_third_position",
        "epoch",
        "incremental",
        "name",
        "params",
        "plugin",
        "scalar",
        "spec",
        "static",
        "values",
    )

    dtype: type[np.generic] = np.int64

    def __init__(self, plugin: Plugin[Any], spec: Any, state: ClusterState) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.spec = spec
        self.scalar = plugin.scalar
        self.incremental, reads_usage, reads_ports = _traits(plugin.reads)
        self.params: Params | None = None
        self.epoch = 0
        self.values: Any = None
        # Every rule follows the log of nodes. Most that follow another follow that of usage; ports come third.
        self._node_log = state.node_log
        self._other_log = state.usage_log if reads_usage else state.ports_log if reads_ports else None
        self._third_log = state.ports_log if reads_usage and reads_ports else None
        self._node_position = self._other_position = self._third_position = -1
        self.static = self.incremental and self._other_log is None

    def _evaluate(self, rows: Rows) -> Any:
        raise TypeError("a part is a FilterPart or a ScorePart")

    def evaluate_all(self, state: ClusterState) -> None:
        """Evaluate every row."""
        count, capacity = state.nodes.count, state.nodes.capacity
        if self.values is None or len(self.values) != capacity:
            self.values = np.zeros(capacity, dtype=self.dtype)
        self.values[:count] = self._evaluate(Rows(state))
        self._note_positions()
        self.epoch += 1

    def bring_up_to_date(self, state: ClusterState, params: Params | None, row_view: Row) -> None:
        """Make `values` what a full pass would give now."""
        stale = self.values is None or params != self.params or len(self.values) != state.nodes.capacity
        if stale or not self.incremental:
            self.params = params
            self.evaluate_all(state)
            return
        changed = self._changed_rows()
        if changed is None:
            self.evaluate_all(state)
        elif len(changed) <= FEW_ROWS and self.scalar and state.small:
            values, evaluate = self.values, self._evaluate
            for row in changed:
                row_view.number = row
                values[row] = evaluate(row_view)
        elif len(changed) <= FEW_ROWS or len(changed) * FULL_SHARE <= state.nodes.count:
            index = np.fromiter(changed, dtype=np.intp, count=len(changed))
            self.values[index] = self._evaluate(Rows(state, index))
        else:
            count = state.nodes.count
            self.values[:count] = self._evaluate(Rows(state))

    def _changed_rows(self) -> Collection[int] | None:
        """Return the rows that changed since the last call, each once, or None where the logs no longer tell."""
        other = self._other_log
        node_log = self._node_log
        if self._third_log is None and self._node_position == node_log.start + len(node_log.rows):
            # The path of nearly every decision: nodes stayed as they are, one log tells the rest.
            if other is None:
                return ()
            position, self._other_position = self._other_position, other.start + len(other.rows)
            if position == self._other_position - 1 and position >= other.start:
                return (other.rows[-1],)
            rows = other.since(position)
            return None if rows is None else dict.fromkeys(rows)
        changed: dict[int, None] = {}
        for log, position in (
            (node_log, self._node_position),
            (other, self._other_position),
            (self._third_log, self._third_position),
        ):
            if log is not None:
                rows = log.since(position)
                if rows is None:
                    return None
                changed.update(dict.fromkeys(rows))
        self._note_positions()
        return changed

    def _note_positions(self) -> None:
        self._node_position = self._node_log.end
        if self._other_log is not None:
            self._other_position = self._other_log.end
        if self._third_log is not None:
            self._third_position = self._third_log.end


class FilterPart(Part):
    """Verdicts: uint16, 0 passes."""

    __slots__ = ()

    dtype = np.uint16
    plugin: FilterPlugin[Any]
    values: Codes

    def _evaluate(self, rows: Rows) -> Any:
        return self.plugin.filter(self.spec, self.params, rows)


class ScorePart(Part):
    """Raw scores: int64. Rows that are not feasible hold numbers without meaning."""

    __slots__ = ()

    plugin: ScorePlugin[Any]
    values: Ints

    def _evaluate(self, rows: Rows) -> Any:
        return self.plugin.score(self.spec, self.params, rows)


@cache
def _traits(reads: Reads) -> tuple[bool, bool, bool]:
    """Return whether a rule that reads so can be refreshed row by row, and whether it reads usage, and ports."""
    return not reads & Reads.OBJECTS, bool(reads & Reads.USAGE), bool(reads & Reads.PORTS)
