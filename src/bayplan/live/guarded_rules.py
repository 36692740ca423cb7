"""Rules of custom plugins, called through a runner: once for all rows of a pass, not once for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from bayplan.framework.rule import FilterRule, Params, Rule, Scale, ScoreRule
from bayplan.live.plugin_runner import PluginRunner
from bayplan.state.arrays import Codes, Flags, Ints

T = TypeVar("T")


class GuardedFilterRule(FilterRule):
    """A filter rule whose code runs on the runner's threads.

    Args:
        rule: the plugin's own rule.
        runner: the runner of the rule.
        plugin: the plugin's name.
    """

    def __init__(self, rule: FilterRule, runner: PluginRunner, plugin: str) -> None:
        super().__init__(rule.columns)
        self.evaluates_arrays = True
        # Plugins in plain Python may read anything.
        self.reads_pods = True
        self._rule, self._runner, self._plugin = rule, runner, plugin

    def bind(self) -> None:
        """Let the rule look up its references to the arrays again."""
        self._call(_bind, self._rule, self.columns, self.params)

    def refresh(self) -> bool:
        """Let the rule read its cluster-wide data; return whether every row must be evaluated again."""
        return self._call(_refresh, self._rule, self.params)

    def after_changes(self, params: Params | None) -> None:
        """Let the rule read its cluster-wide data again, after a trial has moved pods."""
        self._call(self._rule.after_changes, params)

    def after_undo(self, params: Params | None) -> None:
        """Let the rule read its cluster-wide data again, after the trial has moved the pods back."""
        self._call(self._rule.after_undo, params)

    def filter(self, row: int) -> int:
        """Return the verdict for one row."""
        return int(self._call(self._rule.filter, row))

    def filter_all(self, codes: Codes) -> None:
        """Write the verdicts for all rows to `codes`."""
        found: Codes = np.zeros(len(codes), dtype=np.uint16)
        self._call(self._rule.filter_all, found)
        np.asarray(codes)[:] = found

    def filter_rows(self, rows: list[int], codes: Codes) -> None:
        """Write the verdicts for these rows to `codes`."""
        # Use a separate array: an abandoned call may continue writing.
        found = np.array(codes, dtype=np.uint16)
        self._call(self._rule.filter_rows, rows, found)
        np.asarray(codes)[:] = found

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        return self._runner.call(self._plugin, "Filter", function, *arguments)


class GuardedScoreRule(ScoreRule):
    """A score rule whose code runs on the runner's threads; arguments as for `GuardedFilterRule`."""

    def __init__(self, rule: ScoreRule, runner: PluginRunner, plugin: str) -> None:
        super().__init__(rule.columns)
        self.evaluates_arrays = True
        self.normalizes, self.reads_feasible = rule.normalizes, rule.reads_feasible
        self._rule, self._runner, self._plugin = rule, runner, plugin

    def bind(self) -> None:
        """Let the rule look up its references to the arrays again."""
        self._call(_bind, self._rule, self.columns, self.params)

    def refresh(self) -> bool:
        """Let the rule read its cluster-wide data; return whether every row must be evaluated again."""
        return self._call(_refresh, self._rule, self.params)

    def prepare(self, feasible: Flags) -> None:
        """Let the rule read its data about the feasible rows."""
        self._call(self._rule.prepare, np.array(feasible))

    def score(self, row: int) -> int:
        """Return the raw score of one row."""
        return int(self._call(self._rule.score, row))

    def score_all(self, raw: Ints) -> None:
        """Write the raw scores of all rows to `raw`."""
        found: Ints = np.zeros(len(raw), dtype=np.int64)
        self._call(self._rule.score_all, found)
        np.asarray(raw)[:] = found

    def score_rows(self, rows: list[int], raw: Ints) -> None:
        """Write the raw scores of these rows to `raw`."""
        found = np.array(raw, dtype=np.int64)
        self._call(self._rule.score_rows, rows, found)
        np.asarray(raw)[:] = found

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the scale for `normalize`, computed from the raw scores of the feasible rows."""
        return self._normalizing(self._rule.scale, np.array(raw), np.array(feasible))

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the normalized score of one row."""
        return int(self._normalizing(self._rule.normalize, scale, raw, row))

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalized scores of all rows to `normalized`."""
        found: Ints = np.zeros(len(normalized), dtype=np.int64)
        self._normalizing(self._rule.normalize_all, scale, np.array(raw), found)
        np.asarray(normalized)[:] = found

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        return self._runner.call(self._plugin, "Score", function, *arguments)

    def _normalizing(self, function: Callable[..., T], *arguments: Any) -> T:
        return self._runner.call(self._plugin, "NormalizeScore", function, *arguments)


def _bind(rule: Rule, columns: Any, params: Params | None) -> None:
    rule.columns, rule.params = columns, params
    rule.bind()


def _refresh(rule: Rule, params: Params | None) -> bool:
    rule.params = params
    return rule.refresh()
