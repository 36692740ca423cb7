"""What one rule last said about every row, brought up to date by the rows that changed.

Pods that a plugin can't tell apart share a result (`bayplan.engine.rule_results`). This is all that is cached between cycles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework.plugin import Params, Plugin, Reads
from bayplan.framework.rule import FilterRule, Rule, ScoreRule
from bayplan.framework.status import ERROR_BIT
from bayplan.state.cluster_state import ClusterState


class RuleResult:
    """The base of `FilterResult` and `ScoreResult`.

    Args:
        plugin, spec: whose rule it is.
        rule: what is asked.
        state: the cluster.
        reads: what the rule reads (`Reads`).

    Attributes:
        name: of the plugin.
        params: what the rule was last asked with.
        values: what it said, one element a row.
        epoch: moves when all rows were asked again; whoever combined the values must then start over.
        incremental: whether the logs of changed rows name every row that must be asked again.
        static: whether placements leave the values alone.
    """

    def __init__(self, plugin: Plugin[Any], spec: Any, rule: Rule, state: ClusterState, reads: Reads) -> None:
        self.plugin: Any = plugin
        self.name = plugin.name
        self.spec = spec
        self.rule = rule
        self.columns = state.columns
        self.params: Params | None = None
        self.values: Any = None
        self.epoch = 0
        self.incremental = not reads & Reads.OBJECTS
        self.static = self.incremental and not reads & (Reads.USAGE | Reads.PORTS)
        self._reads_usage, self._reads_ports = bool(reads & Reads.USAGE), bool(reads & Reads.PORTS)
        self._node_log, self._usage_log, self._ports_log = state.node_log, state.usage_log, state.ports_log
        self._node_position = self._usage_position = self._ports_position = -1
        self._version = -1
        self._capacity = -1
        self._interrupted = False

    def bring_up_to_date(self, params: Params | None) -> None:
        """Make `values` what asking about every row would give now.

        Args:
            params: of this cycle; if they differ from those of the last one, every row is asked again. None: nothing tells what
                the rule looks up by itself, so every row is asked.
        """
        columns, rule = self.columns, self.rule
        # A rule that raised leaves some rows as they were.
        whole = not self.incremental or self._interrupted
        self._interrupted = True
        if params is not self.params:
            whole = whole or params is None or params != self.params
            self.params = rule.params = params
        elif params is None:
            whole = True
            rule.params = None
        if self._version != columns.version:
            self._version = columns.version
            if self._capacity != columns.capacity:
                self._capacity = columns.capacity
                self.allocate()
                whole = True
            rule.bind()
        if rule.refresh():
            whole = True
        if whole:
            self._ask_all()
        elif self._node_position != self._node_log.end:
            self._ask_missed()
        elif self._reads_usage and self._usage_position != self._usage_log.end:
            self._ask_missed()
        elif self._reads_ports and self._ports_position != self._ports_log.end:
            self._ask_missed()
        self._interrupted = False

    def _ask_all(self) -> None:
        self.ask_all()
        self.epoch += 1
        self._note_positions()

    def _note_positions(self) -> None:
        self._node_position = self._node_log.end
        self._usage_position = self._usage_log.end
        self._ports_position = self._ports_log.end

    def _ask_missed(self) -> None:
        """Ask about the rows that changed since the last time."""
        node_log, usage_log, ports_log = self._node_log, self._usage_log, self._ports_log
        node_start, usage_start, ports_start = self._node_position, self._usage_position, self._ports_position
        if not self._reads_usage:
            usage_start = usage_log.end
        if not self._reads_ports:
            ports_start = ports_log.end
        missed = (node_log.end - node_start) + (usage_log.end - usage_start) + (ports_log.end - ports_start)
        reached = node_start >= node_log.start and usage_start >= usage_log.start and ports_start >= ports_log.start
        if not reached or missed >= self.columns.count:
            self._ask_all()
            return
        self._note_positions()
        if self.rule.asks_arrays:
            rows = [node_log.at(position) for position in range(node_start, node_log.end)]
            rows += [usage_log.at(position) for position in range(usage_start, usage_log.end)]
            rows += [ports_log.at(position) for position in range(ports_start, ports_log.end)]
            self.ask_rows(list(dict.fromkeys(rows)))
            return
        for position in range(node_start, node_log.end):
            self.ask_row(node_log.at(position))
        for position in range(usage_start, usage_log.end):
            self.ask_row(usage_log.at(position))
        for position in range(ports_start, ports_log.end):
            self.ask_row(ports_log.at(position))

    # What the two kinds do in their own ways.

    def allocate(self) -> None:
        """Make `values` of the capacity."""

    def ask_all(self) -> None:
        """Ask about every row."""

    def ask_row(self, row: int) -> None:
        """Ask about one row."""

    def ask_rows(self, rows: list[int]) -> None:
        """Ask about some rows."""


class FilterResult(RuleResult):
    """Verdicts: uint16, 0 passes.

    Attributes:
        failing: how many rows fail, freed ones among them.
        has_errors: whether some row's verdict may be an Error.
    """

    def __init__(self, plugin: Plugin[Any], spec: Any, rule: FilterRule, state: ClusterState) -> None:
        super().__init__(plugin, spec, rule, state, plugin.reads)
        self.filter_rule = rule
        self.codes: Any = None
        self.failing = 0
        self.has_errors = False

    def allocate(self) -> None:
        """Make `values` of the capacity."""
        self.values = np.zeros(self.columns.capacity, dtype=np.uint16)
        self.codes = self.values

    def ask_all(self) -> None:
        """Ask about every row."""
        self.filter_rule.filter_all(self.codes)
        self._count()

    def _count(self) -> None:
        codes, failing, has_errors = self.codes, 0, False
        for row in range(self.columns.count):
            code = codes[row]
            if code:
                failing += 1
                if code >= ERROR_BIT:
                    has_errors = True
        self.failing, self.has_errors = failing, has_errors

    def ask_row(self, row: int) -> None:
        """Ask about one row."""
        codes = self.codes
        code = self.filter_rule.filter(row)
        before = codes[row]
        if code != before:
            codes[row] = code
            if not before:
                self.failing += 1
            elif not code:
                self.failing -= 1
            if code >= ERROR_BIT:
                self.has_errors = True

    def ask_rows(self, rows: list[int]) -> None:
        """Ask about some rows."""
        self.filter_rule.filter_rows(rows, self.codes)
        self._count()


class ScoreResult(RuleResult):
    """Raw scores: int64. Rows that are not feasible hold numbers without meaning."""

    def __init__(self, plugin: Any, spec: Any, rule: ScoreRule, state: ClusterState) -> None:
        super().__init__(plugin, spec, rule, state, plugin.score_reads(spec))
        self.score_rule = rule
        self.raw: Any = None
        self._uniform_known = self._uniform = False

    def allocate(self) -> None:
        """Make `values` of the capacity."""
        self.values = np.zeros(self.columns.capacity, dtype=np.int64)
        self.raw = self.values

    def ask_for(self, feasible: Any) -> None:
        """Score all rows for a set of feasible rows (uint8[capacity]), if raw scores depend on which these are."""
        columns, rule = self.columns, self.score_rule
        if self._version != columns.version:
            self._version = columns.version
            if self._capacity != columns.capacity:
                self._capacity = columns.capacity
                self.allocate()
            rule.bind()
        rule.prepare(feasible)
        rule.score_all(self.raw)
        self._uniform_known = False
        self.epoch += 1

    def ask_all(self) -> None:
        """Ask about every row."""
        self.score_rule.score_all(self.raw)
        self._uniform_known = False

    def ask_row(self, row: int) -> None:
        """Ask about one row."""
        self.raw[row] = self.score_rule.score(row)
        self._uniform_known = False

    def ask_rows(self, rows: list[int]) -> None:
        """Ask about some rows."""
        self.score_rule.score_rows(rows, self.raw)
        self._uniform_known = False

    def is_uniform(self) -> bool:
        """Return whether all nodes have the same raw score and placements leave it alone: then any of them scale alike."""
        if not self.static:
            return False
        if not self._uniform_known:
            self._uniform_known, self._uniform = True, self._has_one_value()
        return self._uniform

    def _has_one_value(self) -> bool:
        raw, alive, seen, level = self.raw, self.columns.alive, False, 0
        for row in range(self.columns.count):
            if alive[row]:
                if not seen:
                    seen, level = True, raw[row]
                elif raw[row] != level:
                    return False
        return True


def bring_up_to_date(result: RuleResult, params: Params | None) -> None:
    """Do `RuleResult.bring_up_to_date`, as a function that Python can hand on."""
    result.bring_up_to_date(params)
