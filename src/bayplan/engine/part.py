"""The last result of one plugin's rule for one spec, kept up to date row by row.

A part knows how far it has followed the logs of changed rows. Bringing it up to date evaluates just the rows that changed:
on plain Python numbers for a few rows, on arrays for many, in full when params changed or too much did.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework.plugin import FilterPlugin, Params, Plugin, Reads, ScorePlugin
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import RowLog
from bayplan.state.views import Row, Rows

FEW_ROWS = 12
"""Up to here plain Python numbers beat arrays (measured: benchmarks/bench_engine.py)."""

FULL_SHARE = 8
"""More than one row in so many changed: a full pass is cheaper than gathering them."""


class Part:
    """One rule of one plugin for one spec over all rows.

    Attributes:
        values: one element a row of the node table's capacity.
        epoch: moves whenever rows changed that no log tells of; whoever fused these values must then start over.
    """

    __slots__ = (
        "__weakref__",
        "_follows",
        "_positions",
        "epoch",
        "incremental",
        "name",
        "params",
        "plugin",
        "reads",
        "scalar",
        "spec",
        "values",
    )

    dtype: type[np.generic] = np.int64

    def __init__(self, plugin: Plugin[Any], spec: Any, state: ClusterState) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.spec = spec
        self.reads = plugin.reads
        self.scalar = plugin.scalar
        self.incremental = not plugin.reads & Reads.OBJECTS
        self.params: Params | None = None
        self.epoch = 0
        self.values: Any = None
        logs: list[RowLog] = [state.node_log]
        if plugin.reads & Reads.USAGE:
            logs.append(state.usage_log)
        if plugin.reads & Reads.PORTS:
            logs.append(state.ports_log)
        self._follows = logs
        self._positions = [-1] * len(logs)

    @property
    def static(self) -> bool:
        """Return whether placements leave the values alone."""
        return self.incremental and len(self._follows) == 1

    def _evaluate(self, rows: Rows) -> Any:
        raise TypeError("a part is a FilterPart or a ScorePart")

    def evaluate_all(self, state: ClusterState) -> None:
        """Evaluate every row."""
        count, capacity = state.nodes.count, state.nodes.capacity
        if self.values is None or len(self.values) != capacity:
            self.values = np.zeros(capacity, dtype=self.dtype)
        self.values[:count] = self._evaluate(Rows(state))
        self._positions = [log.end for log in self._follows]
        self.epoch += 1

    def bring_up_to_date(self, state: ClusterState, params: Params | None, row_view: Row) -> None:
        """Make `values` what a full pass would give now."""
        stale = self.values is None or params != self.params or len(self.values) != state.nodes.capacity
        if stale or not self.incremental:
            self.params = params
            self.evaluate_all(state)
            return
        changed: dict[int, None] = {}
        for number, log in enumerate(self._follows):
            position, end = self._positions[number], log.start + len(log.rows)
            if position == end:
                continue
            rows = log.since(position)
            if rows is None:
                self.evaluate_all(state)
                return
            changed.update(dict.fromkeys(rows))
            self._positions[number] = end
        if not changed:
            return
        if len(changed) <= FEW_ROWS and self.scalar and state.small:
            values, evaluate = self.values, self._evaluate
            for row in changed:
                row_view.number = row
                values[row] = evaluate(row_view)
        elif len(changed) * FULL_SHARE <= state.nodes.count or len(changed) <= FEW_ROWS:
            index = np.fromiter(changed, dtype=np.intp, count=len(changed))
            self.values[index] = self._evaluate(Rows(state, index))
        else:
            count = state.nodes.count
            self.values[:count] = self._evaluate(Rows(state))


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
