"""Rules for plugins in plain Python: adapters that call the array-based `filter` and `score` of a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayplan.framework.rule import FilterRule, Params, Scale, ScoreRule
from bayplan.state.arrays import Codes, Flags, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

if TYPE_CHECKING:
    from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, ScorePlugin


class ArrayFilterRule(FilterRule):
    """Runs `FilterPlugin.filter` for one spec."""

    def __init__(self, plugin: FilterPlugin[Any], spec: Any, state: ClusterState, *, reads_others: bool) -> None:
        super().__init__(state.columns)
        self.evaluates_arrays = True
        # A plugin in plain Python may read anything.
        self.reads_pods = True
        self.reads_others = reads_others
        self._plugin, self._spec, self._state = plugin, spec, state

    def filter(self, row: int) -> int:
        """Return the verdict for one row."""
        return int(self._plugin.filter(self._spec, self.params, Rows(self._state, _index([row])))[0])

    def filter_all(self, codes: Codes) -> None:
        """Filter all rows."""
        found = self._plugin.filter(self._spec, self.params, Rows(self._state))
        np.asarray(codes)[: self.columns.count] = found

    def filter_rows(self, rows: list[int], codes: Codes) -> None:
        """Filter these rows with one call of the plugin."""
        index = _index(rows)
        np.asarray(codes)[index] = self._plugin.filter(self._spec, self.params, Rows(self._state, index))

    def after_changes(self, params: Params | None) -> None:
        """Recompute the params with the plugin's `params_after_changes`."""
        self.params = self._plugin.params_after_changes(self._spec, params, self._state)

    def after_undo(self, params: Params | None) -> None:
        """Restore the params that PreFilter returned."""
        self.params = params


class ArrayScoreRule(ScoreRule):
    """Runs `ScorePlugin.score` for one spec."""

    def __init__(self, plugin: ScorePlugin[Any], spec: Any, state: ClusterState) -> None:
        super().__init__(state.columns)
        self.evaluates_arrays = True
        self._plugin: Any = plugin
        self._spec, self._state = spec, state

    def score(self, row: int) -> int:
        """Score one row."""
        return int(self._plugin.score(self._spec, self.params, Rows(self._state, _index([row])))[0])

    def score_all(self, raw: Ints) -> None:
        """Score all rows."""
        np.asarray(raw)[: self.columns.count] = self._plugin.score(self._spec, self.params, Rows(self._state))

    def score_rows(self, rows: list[int], raw: Ints) -> None:
        """Score these rows with one call of the plugin."""
        index = _index(rows)
        np.asarray(raw)[index] = self._plugin.score(self._spec, self.params, Rows(self._state, index))


class NormalizedArrayRule(ArrayScoreRule):
    """Also runs `NormalizePlugin.scale_over` and `normalize`."""

    def __init__(self, plugin: NormalizePlugin[Any], spec: Any, state: ClusterState) -> None:
        super().__init__(plugin, spec, state)
        self.normalizes = True

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the plugin's scale over the feasible rows."""
        count = self.columns.count
        chosen = np.asarray(feasible)[:count].view(np.bool_)
        found: Params = self._plugin.scale_over(
            self._spec, self.params, np.asarray(raw)[:count], chosen, Rows(self._state)
        )
        return found

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Normalise one score."""
        rows = Rows(self._state, _index([row]))
        return int(self._plugin.normalize(self._spec, scale, np.array([raw], dtype=np.int64), rows)[0])

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Normalise all scores."""
        count = self.columns.count
        scores = self._plugin.normalize(self._spec, scale, np.asarray(raw)[:count], Rows(self._state))
        np.asarray(normalized)[:count] = scores


def _index(rows: list[int]) -> Index:
    return np.array(rows, dtype=np.intp)
