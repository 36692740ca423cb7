"""Parts by plugin and spec: plans whose pods a plugin can't tell apart share its results."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary

from bayplan.engine.part import FilterPart, ScorePart
from bayplan.framework.plugin import FilterPlugin, ScorePlugin
from bayplan.state.cluster_state import ClusterState


class PartStore:
    """Parts live as long as some plan holds them."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._filters: WeakValueDictionary[tuple[int, Hashable], FilterPart] = WeakValueDictionary()
        self._scores: WeakValueDictionary[tuple[int, Hashable], ScorePart] = WeakValueDictionary()

    def filter_part(self, plugin: FilterPlugin[Any], spec: Any) -> FilterPart:
        """Return the part of a filter for a spec."""
        key = (id(plugin), spec.key)
        part = self._filters.get(key)
        if part is None:
            part = self._filters[key] = FilterPart(plugin, spec, self._state)
        return part

    def score_part(self, plugin: ScorePlugin[Any], spec: Any) -> ScorePart:
        """Return the part of a score for a spec."""
        key = (id(plugin), spec.key)
        part = self._scores.get(key)
        if part is None:
            part = self._scores[key] = ScorePart(plugin, spec, self._state)
        return part
