"""Rule results by plugin and spec: plans whose pods a plugin does not distinguish share them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

from bayplan.engine.rule_result import FilterResult, ScoreResult
from bayplan.framework.array_rule import ArrayFilterRule, ArrayScoreRule
from bayplan.framework.plugin import FilterPlugin, ScorePlugin
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.state.cluster_state import ClusterState


class RuleResults:
    """The results that plans share; they live as long as some plan refers to them.

    Attributes:
        timer: calls its second argument with the rest, and adds the time to its first argument, (plugin, extension point); or None.
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
            found = self._filters[key] = FilterResult(plugin, spec, filter_rule(plugin, spec, self._state), self._state)
        return found

    def score_result(self, plugin: ScorePlugin[Any], spec: Any) -> ScoreResult:
        """Return the result of a scorer for a spec."""
        key = (id(plugin), spec.key)
        found = self._scores.get(key)
        if found is None:
            found = self._scores[key] = ScoreResult(plugin, spec, score_rule(plugin, spec, self._state), self._state)
        return found


def filter_rule(plugin: FilterPlugin[Any], spec: Any, state: ClusterState) -> FilterRule:
    """Return the rule of a filter for a spec: the plugin's own, or one that calls its array-based `filter`."""
    rule = plugin.filter_rule(spec, state)
    return rule if rule is not None else ArrayFilterRule(plugin, spec, state)


def score_rule(plugin: ScorePlugin[Any], spec: Any, state: ClusterState) -> ScoreRule:
    """Return the rule of a scorer for a spec: the plugin's own, or one that calls its array-based `score`."""
    rule = plugin.score_rule(spec, state)
    return rule if rule is not None else ArrayScoreRule(plugin, spec, state)
