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
from bayplan.state.views import GatheredRows, Row, Rows

FEW_ROWS = 12
"""Up to here plain Python numbers beat arrays (measured: benchmarks/bench_engine.py)."""

FULL_SHARE = 8
"""More than one row in so many changed: a full pass is cheaper than gathering them."""


class Changes:
    """The rows that changed between two looks of a plan at the cluster; nodes themselves stayed as they were.

    Attributes:
        rows: each changed row once.
        few: whether they are so few that plain Python numbers are faster than arrays.
        node_end, usage_start, usage_end, ports_start, ports_end: positions in the logs.
    """

    __slots__ = ("_view", "few", "node_end", "ports_end", "ports_start", "rows", "usage_end", "usage_start")

    def __init__(self, state: ClusterState, rows: list[int], usage_start: int, ports_start: int) -> None:
        self.rows = rows
        self.few = len(rows) <= FEW_ROWS
        self.node_end = state.node_log.end
        self.usage_start, self.usage_end = usage_start, state.usage_log.end
        self.ports_start, self.ports_end = ports_start, state.ports_log.end
        self._view: GatheredRows | None = None

    def view(self, state: ClusterState) -> GatheredRows:
        """Return the rows as arrays; one view for all parts, so that what one gathered need not be gathered again."""
        view = self._view
        if view is None:
            view = self._view = GatheredRows(state, np.array(self.rows, dtype=np.intp))
        return view


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
        "_ports_log",
        "_ports_position",
        "_reads_ports",
        "_reads_usage",
        "_usage_log",
        "_usage_position",
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
        self.incremental, self._reads_usage, self._reads_ports = _traits(self._reads())
        self.params: Params | None = None
        self.epoch = 0
        self.values: Any = None
        self._node_log, self._usage_log, self._ports_log = state.node_log, state.usage_log, state.ports_log
        self._node_position = self._usage_position = self._ports_position = -1
        self.static = self.incremental and not self._reads_usage and not self._reads_ports

    def _reads(self) -> Reads:
        return self.plugin.reads

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

    def follow(self, changes: Changes, epoch: int, row_view: Row) -> bool:
        """Evaluate the rows that changed, where that is all there is to do; return False where it isn't.

        The way of nearly every decision. Params are not looked at: the caller knows that they are those of `epoch`.
        """
        if epoch != self.epoch or not self.incremental or self._node_position != changes.node_end:
            return False
        if self._usage_position == changes.usage_end and self._ports_position == changes.ports_end:
            # Another plan that has this part came first.
            return True
        if self._usage_position < changes.usage_start or self._ports_position < changes.ports_start:
            return False
        state = row_view.state
        values, evaluate = self.values, self._evaluate
        if not (changes.few and self.scalar):
            view = changes.view(state)
            values[view.index] = evaluate(view)
        elif state.small:
            for row in changes.rows:
                row_view.number = row
                values[row] = evaluate(row_view)
        else:
            return False
        self._usage_position, self._ports_position = changes.usage_end, changes.ports_end
        return True

    def bring_up_to_date(self, state: ClusterState, params: Params | None, row_view: Row) -> None:
        """Make `values` what a full pass would give now.

        Args:
            state: the cluster.
            params: of this cycle; others than those of the values mean a full pass.
            row_view: a view to reuse for single rows.
        """
        # Without params (the profile leaves out PreFilter or PreScore) nothing tells what a rule looks up by itself.
        stale = params is None or params != self.params
        stale = stale or self.values is None or len(self.values) != state.nodes.capacity
        if stale or not self.incremental:
            self.params = params
            self.evaluate_all(state)
            return
        rows = self._missed_rows()
        if rows is None:
            self.evaluate_all(state)
        elif len(rows) <= FEW_ROWS and self.scalar and state.small:
            values, evaluate = self.values, self._evaluate
            for row in rows:
                row_view.number = row
                values[row] = evaluate(row_view)
        elif len(rows) <= FEW_ROWS or len(rows) * FULL_SHARE <= state.nodes.count:
            view = Rows(state, np.fromiter(rows, dtype=np.intp, count=len(rows)))
            self.values[view.index] = self._evaluate(view)
        else:
            count = state.nodes.count
            self.values[:count] = self._evaluate(Rows(state))

    def _missed_rows(self) -> Collection[int] | None:
        """Return the rows that changed since this part last looked, each once, or None where the logs no longer tell."""
        missed: dict[int, None] = {}
        logs = [(self._node_log, self._node_position)]
        if self._reads_usage:
            logs.append((self._usage_log, self._usage_position))
        if self._reads_ports:
            logs.append((self._ports_log, self._ports_position))
        self._note_positions()
        for log, position in logs:
            rows = log.since(position)
            if rows is None:
                return None
            missed.update(dict.fromkeys(rows))
        return missed

    def _note_positions(self) -> None:
        self._node_position = self._node_log.end
        self._usage_position = self._usage_log.end
        self._ports_position = self._ports_log.end


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

    def _reads(self) -> Reads:
        return self.plugin.score_reads(self.spec)

    def _evaluate(self, rows: Rows) -> Any:
        return self.plugin.score(self.spec, self.params, rows)


@cache
def _traits(reads: Reads) -> tuple[bool, bool, bool]:
    """Return whether a rule that reads so can be refreshed row by row, and whether it reads usage, and ports."""
    return not reads & Reads.OBJECTS, bool(reads & Reads.USAGE), bool(reads & Reads.PORTS)
