"""Parts by plugin and spec: plans whose pods a plugin can't tell apart share its results."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from bayplan.engine.convoy import Convoys
from bayplan.engine.node_sampling import Visits
from bayplan.engine.part import FilterPart, ScorePart
from bayplan.engine.row_states import RowStates
from bayplan.framework.plugin import FilterPlugin, ScorePlugin
from bayplan.state.arrays import Bools, Index
from bayplan.state.cluster_state import ClusterState

SHARED_ARRAYS = 16
"""So many arrays are held ready to be shared."""

SHARED_VISITS = 64
"""So many orders of feasible rows."""


class PartStore:
    """What plans share. Parts live as long as some plan holds them.

    Attributes:
        convoys: the plans that are brought up to date together.
        row_states: rows that look the same to rules about amounts.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.convoys = Convoys(state)
        self.row_states = RowStates(state)
        self._arrays: deque[Any] = deque(maxlen=SHARED_ARRAYS)
        self._visits: dict[tuple[int, bytes], Visits] = {}
        self._filters: WeakValueDictionary[tuple[int, Hashable], FilterPart] = WeakValueDictionary()
        self._scores: WeakValueDictionary[tuple[int, Hashable], ScorePart] = WeakValueDictionary()

    def interned(self, array: Any) -> Any:
        """Return an equal array that another plan has already, or this one. Nobody may write to either afterwards."""
        for known in self._arrays:
            if known.dtype == array.dtype and np.array_equal(known, array):
                return known
        self._arrays.appendleft(array)
        return array

    def visits(self, order: Index, feasible: Bools) -> Visits:
        """Return the rows of an order (intp) that are feasible (bool[capacity]); plans that agree in both share them."""
        key = (id(order), feasible.tobytes())
        known = self._visits.get(key)
        if known is None or known.order is not order:
            if len(self._visits) >= SHARED_VISITS:
                self._visits.clear()
            known = self._visits[key] = Visits(order, feasible)
        return known

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
