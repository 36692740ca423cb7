"""The last result of one rule on every row, updated for the rows that changed.

Plans whose specs for a plugin have the same key share a result (`RuleResults`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from bayplan.framework.plugin import FilterPlugin, Params, Plugin, Reads, ScorePlugin
from bayplan.framework.rule import FilterRule, Rule, ScoreRule
from bayplan.framework.status import ERROR_BIT
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LogReader

_PLACEMENTS = (Reads.USAGE | Reads.PORTS).value
_OBJECTS = (Reads.OBJECTS | Reads.COUNTERS | Reads.CATALOG).value

_NO_REFRESH: Any = vars(Rule)["refresh"]
"""`Rule.refresh`, which does nothing. It is not called, because calls of rules in plain Python take long."""


class RuleResult:
    """The base of `FilterResult` and `ScoreResult`.

    Args:
        plugin, spec: the plugin that compiled the rule, and the spec.
        rule: the rule to run.
        state: the cluster.
        reads: the data that the rule reads.

    Attributes:
        params: the params of the last run.
        values: the results, one element per row.
        epoch: number of runs on all rows; when it changes, code that combines the values must start over.
        evaluated_rows: the number of changed rows on which the rule ran one by one; for measurements.
        incremental: whether the change logs name every row on which the rule must run again.
        static: whether placements don't change the values.
    """

    def __init__(self, plugin: Plugin[Any], spec: Any, rule: Rule, state: ClusterState, reads: Reads) -> None:
        # `_value_` skips the property `value`, which takes ten times as long.
        read = reads._value_
        self.plugin: Any = plugin
        self.name = plugin.name
        self.spec = spec
        self.rule = rule
        self.columns = state.columns
        self.params: Params | None = None
        self.values: Any = None
        self.epoch = 0
        self.evaluated_rows = 0
        self.incremental = not read & _OBJECTS
        self.static = self.incremental and not read & _PLACEMENTS
        logs = [state.node_log]
        if not self.static:
            logs.append(state.usage_log)
        self._changes = LogReader(logs)
        self._version = -1
        self._capacity = -1
        self._interrupted = False
        self._refreshes = type(rule).refresh is not _NO_REFRESH
        # Reads of all changed rows before the rules run are collected in it: their cache misses then overlap.
        self._loaded = 0

    def refresh(self, params: Params | None, feasible: Any) -> None:
        """Update `values` to the rule's current results for all rows.

        Args:
            params: the params of this cycle; if they differ from the last ones, the rule runs on every row. With None,
                the rule looks up its data itself and may depend on any change, so it also runs on every row.
            feasible: uint8[capacity], for scorers: the feasible rows.
        """
        rule = self.rule
        # A rule that raised has left some rows out of date.
        all_rows = not self.incremental or self._interrupted
        self._interrupted = True
        if params is not self.params:
            all_rows = all_rows or params is None or params != self.params
            self.params = rule.params = params
        elif params is None:
            all_rows = True
            rule.params = None
        if self.bind():
            all_rows = True
        if self._refreshes and rule.refresh():
            all_rows = True
        if all_rows:
            self.run_all()
            self.epoch += 1
            self._changes.skip()
        elif not self._changes.is_current():
            self._run_missed()
        self._interrupted = False

    def bind(self) -> bool:
        """Rebind the rule to columns that grew or moved; return whether `values` was allocated again."""
        columns, grown = self.columns, False
        if self._version != columns.version:
            self._version = columns.version
            if self._capacity != columns.capacity:
                self._capacity = columns.capacity
                self.allocate()
                grown = True
            self.rule.bind()
        return grown

    def _run_missed(self) -> None:
        """Run the rule on the rows that changed since the last time."""
        count = self._changes.take(self.columns.count)
        if count < 0:
            self.run_all()
            self.epoch += 1
            return
        self.evaluated_rows += count
        self.run_changed(self._changes.rows, count)

    # Hooks: filter results and score results implement them.

    def allocate(self) -> None:
        """Allocate `values` with an element for each row; the rule then runs on every row."""

    def run_all(self) -> None:
        """Run the rule on every row."""

    def run_changed(self, rows: Any, count: int) -> None:
        """Run the rule on the first `count` elements of `rows` (intp): one by one, unless it evaluates arrays."""


def _distinct(rows: Any, count: int) -> list[int]:
    """Return the first `count` elements of `rows` (intp) without repetitions."""
    return list(dict.fromkeys([int(row) for row in rows[:count]]))


class FilterResult(RuleResult):
    """The verdicts of a filter: uint16[capacity], 0 if the node passes.

    Attributes:
        failing: number of failing rows, including freed ones.
        has_errors: whether some row's verdict may be an Error.
    """

    def __init__(self, plugin: Plugin[Any], spec: Any, rule: FilterRule, state: ClusterState) -> None:
        super().__init__(plugin, spec, rule, state, plugin.reads)
        self.filter_rule = rule
        self.codes: Any = None
        self.failing = 0
        self.has_errors = False

    def allocate(self) -> None:
        """Allocate `values` with an element for each row."""
        self.values = np.zeros(self.columns.capacity, dtype=np.uint16)
        self.codes = self.values

    def run_all(self) -> None:
        """Run the rule on every row."""
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

    def run_changed(self, rows: Any, count: int) -> None:
        """Run the rule on changed rows; see `RuleResult.run_changed`."""
        codes, rule, loaded = self.codes, self.filter_rule, 0
        if rule.evaluates_arrays:
            rule.filter_rows(_distinct(rows, count), codes)
            self._count()
            return
        for place in range(count):
            loaded ^= codes[rows[place]]
        self._loaded = loaded
        for place in range(count):
            row = rows[place]
            code, before = rule.filter(row), codes[row]
            if code != before:
                codes[row] = code
                if not before:
                    self.failing += 1
                elif not code:
                    self.failing -= 1
                if code >= ERROR_BIT:
                    self.has_errors = True


class ScoreResult(RuleResult):
    """The raw scores of a scorer: int64[capacity], undefined for rows that are not feasible."""

    def __init__(self, plugin: Any, spec: Any, rule: ScoreRule, state: ClusterState) -> None:
        super().__init__(plugin, spec, rule, state, plugin.score_reads(spec))
        self.score_rule = rule
        self.raw: Any = None
        self._uniform_known = self._uniform = False

    def allocate(self) -> None:
        """Allocate `values` with an element for each row."""
        self.values = np.empty(self.columns.capacity, dtype=np.int64)
        self.raw = self.values

    def refresh(self, params: Params | None, feasible: Any) -> None:
        """Update `values`; see `RuleResult.refresh`. A rule that depends on the feasible nodes runs on every row."""
        rule = self.score_rule
        if not rule.reads_feasible:
            RuleResult.refresh(self, params, feasible)
            return
        self.bind()
        rule.prepare(feasible)
        self.run_all()
        self.epoch += 1

    def run_all(self) -> None:
        """Run the rule on every row."""
        self.score_rule.score_all(self.raw)
        self._uniform_known = False

    def run_changed(self, rows: Any, count: int) -> None:
        """Run the rule on changed rows; see `RuleResult.run_changed`."""
        raw, rule, loaded = self.raw, self.score_rule, 0
        self._uniform_known = False
        if rule.evaluates_arrays:
            rule.score_rows(_distinct(rows, count), raw)
            return
        for place in range(count):
            loaded ^= raw[rows[place]]
        self._loaded = loaded
        for place in range(count):
            row = rows[place]
            raw[row] = rule.score(row)

    def is_uniform(self) -> bool:
        """Return whether all nodes have the same raw score, whatever is placed. All subsets then have the same scale."""
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


class RuleSet:
    """Results of filters or of scorers, in the order of the profile.

    Args:
        point: the name of the extension point in metrics.
        shared: the shared results; its timer measures the rules.

    Attributes:
        results: the results.
        params: the params of each rule, by number.
        reads_feasible: whether the raw scores of some scorer depend on which nodes are feasible.
    """

    def __init__(self, point: str, shared: RuleResults) -> None:
        self.results: list[Any] = []
        self.params: list[Params | None] = []
        self.reads_feasible = False
        self._shared = shared
        self._point = point
        # Plugins without PreFilter or PreScore, by number: they observe the cluster instead, in every cycle.
        self._observing: list[int] = []
        self._epochs: list[int] = []
        self._moved = True

    def choose(self, results: list[Any], observing: Sequence[bool]) -> bool:
        """Set the results that take part; return whether they changed.

        `observing`: for each result, whether its plugin observes the cluster by itself.
        """
        changed = results != self.results
        if changed:
            self.results, self._epochs, self._moved = results, [-1] * len(results), True
        self.reads_feasible = _some_reads_feasible(results)
        self._observing = [
            number
            for number, result in enumerate(results)
            if observing[number] and type(result.plugin).observe is not Plugin.observe
        ]
        return changed

    def replace(self, results: list[Any]) -> None:
        """Replace the results of some plugins by those for new specs; the plugins stay the same."""
        for number in range(len(results)):
            if results[number] is not self.results[number]:
                self._epochs[number] = -1
        self.results = results
        self.reads_feasible = _some_reads_feasible(results)

    def refresh(self, state: Any, feasible: Any) -> bool:
        """Update all results; return whether a rule ran on all rows, or the results that take part changed.

        `feasible`: uint8[capacity], for scorers: the feasible rows.
        """
        # If a plugin raises, everything is combined again the next time.
        moved, self._moved = self._moved, True
        timer = self._shared.timer
        for number in self._observing:
            result: RuleResult = self.results[number]
            self.params[number] = result.plugin.observe(result.spec, state)
        for number in range(len(self.results)):
            result = self.results[number]
            if timer is None:
                result.refresh(self.params[number], feasible)
            else:
                timer((result.name, self._point), result.refresh, self.params[number], feasible)
            if result.epoch != self._epochs[number]:
                self._epochs[number] = result.epoch
                moved = True
        self._moved = False
        return moved


def _some_reads_feasible(results: list[Any]) -> bool:
    return any(getattr(result.rule, "reads_feasible", False) for result in results)


class RuleResults:
    """The results that plans share; they live as long as any plan refers to them.

    Attributes:
        timer: None, or a function that is called with (plugin, extension point), a function and its arguments; it calls
            that function and adds the time to that plugin and point.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.timer: Callable[..., object] | None = None
        self._filters: WeakValueDictionary[tuple[int, Hashable], FilterResult] = WeakValueDictionary()
        self._scores: WeakValueDictionary[tuple[int, Hashable], ScoreResult] = WeakValueDictionary()

    def filter_result(self, plugin: FilterPlugin[Any], spec: Any) -> FilterResult:
        """Return the result of a filter for a spec."""
        key = (id(plugin), spec.key)
        found = self._filters.get(key)
        if found is None:
            found = self._filters[key] = FilterResult(plugin, spec, plugin.filter_rule(spec, self._state), self._state)
        return found

    def score_result(self, plugin: ScorePlugin[Any], spec: Any) -> ScoreResult:
        """Return the result of a scorer for a spec."""
        key = (id(plugin), spec.key)
        found = self._scores.get(key)
        if found is None:
            found = self._scores[key] = ScoreResult(plugin, spec, plugin.score_rule(spec, self._state), self._state)
        return found
