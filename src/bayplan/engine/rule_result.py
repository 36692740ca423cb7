"""The last result of one rule on every row, updated for the rows that changed.

Plans whose specs for a plugin have the same key share a result (`RuleResults`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from bayplan.base.errors import PluginError
from bayplan.framework.plugin import Params, Plugin, Reads
from bayplan.framework.rule import FilterRule, Rule, ScoreRule
from bayplan.framework.status import ERROR_BIT
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LogReader

_PLACEMENTS = (Reads.USAGE | Reads.PORTS).value
_OBJECTS = (Reads.OBJECTS | Reads.COUNTERS | Reads.CATALOG).value

R = TypeVar("R", "FilterResult", "ScoreResult")

_UNKNOWN = -2
"""Value of `ScoreResult._uniform_row` until someone asks for it."""

_NO_REFRESH: Any = vars(Rule)["refresh"]
"""`Rule.refresh`, which does nothing. It is not called, because calls of rules in plain Python take long."""


class RuleResult:
    """The base of `FilterResult` and `ScoreResult`.

    Attributes:
        plugin, spec, rule: the plugin that compiled the rule, the spec that it compiled, and the rule to run.
        params: the params of the last run.
        values: the results, one element per row.
        epoch: number of runs on all rows; when it changes, code that combines the values must start over.
        evaluated_rows: the number of changed rows on which the rule ran one by one; for measurements.
        incremental: whether the change logs name every row on which the rule must run again.
        static: whether placements don't change the values.
        shared: whether several plans may use this result.
    """

    def __init__(self, plugin: Plugin[Any], spec: Any, state: ClusterState) -> None:
        self.plugin: Any = plugin
        self.name = plugin.name
        self.columns = state.columns
        self.params: Params | None = None
        self.values: Any = None
        self.epoch = 0
        self.evaluated_rows = 0
        self.incremental = self.static = self.shared = False
        self._state = state
        self._reads = self._version = self._capacity = -1
        self._interrupted = self._refreshes = True
        # Reads of all changed rows before the rules run are collected in it: their cache misses then overlap.
        self._loaded = 0
        self.adapt(spec)

    def _use(self, spec: Any, rule: Rule, reads: Reads) -> None:
        """Use a new rule for another spec of the plugin; `reads`: the data that the rule reads."""
        self.spec = spec
        self.rule = rule
        # `_value_` skips the property `value`, which takes ten times as long.
        read = reads._value_
        if read != self._reads:
            self._reads = read
            self.incremental = not read & _OBJECTS
            self.static = self.incremental and not read & _PLACEMENTS
            state = self._state
            self._changes = LogReader(state.node_log if self.static else state.change_log)
        # The rule must be bound, and run on every row.
        self._version = -1
        self._interrupted = True
        self._refreshes = type(rule).refresh is not _NO_REFRESH

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
        if params is None or (params is not self.params and params != self.params):
            all_rows = True
        self.params = rule.params = params
        if self.bind():
            all_rows = True
        if self._refreshes and rule.refresh():
            all_rows = True
        count = -1 if all_rows else self._changes.take(self.columns.count)
        if count < 0:
            self._run_all()
            self.epoch += 1
            self._changes.skip()
        elif count:
            self.evaluated_rows += count
            self.run_changed(self._changes.rows, count)
        self._interrupted = False

    def bind(self) -> bool:
        """Rebind the rule to columns that grew or moved; return whether `values` was allocated again."""
        columns, grown = self.columns, False
        if self._version != columns.version:
            self._version = columns.version
            if self._capacity != columns.capacity:
                self._capacity = columns.capacity
                self._allocate()
                grown = True
            self.rule.bind()
        return grown

    # Hooks: filter results and score results implement them.

    def adapt(self, spec: Any) -> None:
        """Change to another spec of the plugin; the next `refresh` runs its rule on every row.

        Only for a result that is not shared. The params stay until that `refresh`.
        """

    def _allocate(self) -> None:
        """Allocate `values` with an element for each row; the rule then runs on every row."""

    def _run_all(self) -> None:
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

    def adapt(self, spec: Any) -> None:
        """See `RuleResult.adapt`."""
        self.filter_rule: FilterRule = self.plugin.filter_rule(spec, self._state)
        self._use(spec, self.filter_rule, self.plugin.reads)

    def _allocate(self) -> None:
        self.values = np.zeros(self.columns.capacity, dtype=np.uint16)
        self.codes: Any = self.values

    def _run_all(self) -> None:
        self.filter_rule.filter_all(self.codes)
        self._count()

    def _count(self) -> None:
        codes, failing, found = self.codes, 0, 0
        for row in range(self.columns.count):
            failing += codes[row] != 0
            found |= codes[row]
        self.failing, self.has_errors = int(failing), bool(found & ERROR_BIT)

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

    def adapt(self, spec: Any) -> None:
        """See `RuleResult.adapt`."""
        self.score_rule: ScoreRule = self.plugin.score_rule(spec, self._state)
        self._use(spec, self.score_rule, self.plugin.score_reads(spec))

    def _allocate(self) -> None:
        self.values = np.zeros(self.columns.capacity, dtype=np.int64)
        self.raw: Any = self.values

    def refresh(self, params: Params | None, feasible: Any) -> None:
        """Update `values`; see `RuleResult.refresh`. A rule that depends on the feasible nodes runs on every row."""
        rule = self.score_rule
        if not rule.reads_feasible:
            RuleResult.refresh(self, params, feasible)
            return
        self.bind()
        rule.prepare(feasible)
        self._run_all()
        self.epoch += 1

    def _run_all(self) -> None:
        self.score_rule.score_all(self.raw)
        self._uniform_row = _UNKNOWN

    def run_changed(self, rows: Any, count: int) -> None:
        """Run the rule on changed rows; see `RuleResult.run_changed`."""
        raw, rule, loaded = self.raw, self.score_rule, 0
        self._uniform_row = _UNKNOWN
        if rule.evaluates_arrays:
            rule.score_rows(_distinct(rows, count), raw)
            return
        for place in range(count):
            loaded ^= raw[rows[place]]
        self._loaded = loaded
        for place in range(count):
            row = rows[place]
            raw[row] = rule.score(row)

    def normalized(self, scale: Any) -> Ints:
        """Return int64[capacity], the normalised scores; `scale` is None if the rule does not normalise scores."""
        if not self.score_rule.normalizes:
            values: Ints = self.values
            return values
        found = np.zeros(self.columns.capacity, dtype=np.int64)
        self.score_rule.normalize_all(scale, self.raw, found)
        return found

    def uniform_row(self) -> int:
        """Return a row if all nodes have its raw score, whatever is placed, else -1. All subsets then have the same scale."""
        if self._uniform_row == _UNKNOWN:
            self._uniform_row = self._find_uniform_row() if self.static else -1
        return self._uniform_row

    def _find_uniform_row(self) -> int:
        raw, alive, found = self.raw, self.columns.alive, -1
        for row in range(self.columns.count):
            if alive[row]:
                if found < 0:
                    found = row
                elif raw[row] != raw[found]:
                    return -1
        return found


class RuleSet:
    """Results of filters or of scorers, in the order of the profile.

    Args:
        point: the name of the extension point in metrics.
        shared: the shared results; its timer measures the rules.

    Attributes:
        results: the results.
        params: the params of each rule, by number.
    """

    def __init__(self, point: str, shared: RuleResults) -> None:
        self.results: list[Any] = []
        self.params: list[Params | None] = []
        self._shared = shared
        self._point = point
        # The sum of the results' epochs, which only grow; -1 if the results have changed.
        self._epochs = -1
        self._moved = True

    def choose(self, results: list[Any]) -> bool:
        """Set the results that take part, some with new specs; return whether they are different from before."""
        if results == self.results:
            return False
        self.results, self._epochs, self._moved = results, -1, True
        return True

    def refresh(self, feasible: Any) -> bool:
        """Update all results; return whether a rule ran on all rows, or the results that take part changed.

        `feasible`: uint8[capacity], for scorers: the feasible rows.
        """
        # If a plugin raises, everything is combined again the next time.
        moved, self._moved = self._moved, True
        timer = self._shared.timer
        epochs = 0
        try:
            for number in range(len(self.results)):
                result: RuleResult = self.results[number]
                if timer is None:
                    result.refresh(self.params[number], feasible)
                else:
                    timer((result.name, self._point), result.refresh, self.params[number], feasible)
                epochs += result.epoch
        except (TypeError, ValueError, OverflowError):
            _check_values(result)
            raise
        moved = moved or epochs != self._epochs
        self._moved, self._epochs = False, epochs
        return moved


def _check_values(result: RuleResult) -> None:
    """Raise PluginError if the rule returns a value of a wrong type for a row."""
    method = "filter" if isinstance(result, FilterResult) else "score"
    for row in range(result.columns.count):
        value = getattr(result.rule, method)(row)
        if not isinstance(value, int | np.integer):
            raise PluginError(f"{result.name}.{method}_rule: {method}()", got=f"{value!r:.80}", wanted="an integer")


class RuleResults:
    """The results that plans share; they live as long as any plan refers to them.

    Attributes:
        adapted: number of results that were adapted to another spec; for measurements.
        timer: None, or a function that is called with (plugin, extension point), a function and its arguments; it calls
            that function and adds the time to that plugin and point.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.adapted = 0
        self.timer: Callable[..., object] | None = None
        self._known: WeakValueDictionary[tuple[type[RuleResult], int, Hashable], RuleResult] = WeakValueDictionary()

    def get(self, kind: type[R], plugin: Any, spec: Any) -> R | None:
        """Return the shared result of a plugin for a spec, if there is one; `kind`: `FilterResult` or `ScoreResult`."""
        known: Any = self._known.get((kind, id(plugin), spec.key))
        return known

    def result(self, kind: type[R], plugin: Any, spec: Any) -> R:
        """Return the shared result of a plugin for a spec."""
        found = self.get(kind, plugin, spec)
        if found is None:
            found = kind(plugin, spec, self._state)
            self.share(found)
        return found

    def share(self, result: RuleResult) -> None:
        """Share a result with other plans; a shared result is never adapted."""
        if not result.shared:
            result.shared = True
            self._known[type(result), id(result.plugin), result.spec.key] = result
