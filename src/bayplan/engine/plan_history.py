"""The state that records keep per plan: keyframes, and the last results of parts whose changes are in no log.

Plugins whose params changed, or that don't declare what they read, are evaluated in full, and so are all if the scored nodes are
not the plan's own. A record of that would need a keyframe of its own, but usually little has changed: a pod that avoids its own
kind changes the verdict on one node. So the last results are cached and compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.engine.cycle import absent_status
from bayplan.engine.keyframe import Keyframe, PluginOutput, plugin_outputs
from bayplan.engine.log_reader import LogReader
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Bools, Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LIMIT as MAX_LOG_ROWS

MIN_SAVING_FACTOR = 2
"""Differences are recorded if they take at most 1/`MIN_SAVING_FACTOR` of the memory of the keyframe."""

MAX_MISSES = 3
"""After this many consecutive keyframes that differences could not replace, not every cycle compares any more."""

MISS_PERIOD = 32
"""Then one cycle in this many compares again."""


class FrameHistory:
    """The keyframe that later records of one kind extend.

    Args:
        plan: the plan, just recorded as a keyframe.
        keyframe: the keyframe.
        outputs: the results it was made from.
        misses: how many consecutive keyframes of the plan were written because too much had changed.

    Attributes:
        moving: the parts whose changes the next keyframe records, see `Keyframe.moving`.
    """

    __slots__ = ("_node_position", "_params", "_still", "_values", "keyframe", "misses", "moving")

    def __init__(self, plan: Plan, keyframe: Keyframe, outputs: list[PluginOutput], misses: int) -> None:
        self.keyframe = keyframe
        self.misses = misses
        self.moving = keyframe.moving
        self._node_position = plan.state.node_log.end
        followed = frozenset(keyframe.dynamic)
        self._still = {number: it.params for number, it in enumerate(outputs) if number not in followed}
        self._params: list[Params | None] = [it.params for it in outputs[: len(keyframe.filters)]]
        self._values: dict[int, Any] | None = None

    def record_differences(self, plan: Plan, outputs: list[PluginOutput]) -> bool:
        """Add the changes to the keyframe; return False, with nothing added, if a new keyframe is needed or smaller."""
        if not self._fits(plan, outputs):
            return False
        if self.misses >= MAX_MISSES and self.misses % MISS_PERIOD:
            self.misses += 1
            return False
        keyframe = self.keyframe
        values = self._values if self._values is not None else self._begin()
        changed: Bools = np.zeros(len(keyframe.names), dtype=np.bool_)
        for number, before in values.items():
            changed |= outputs[number].values[: len(changed)] != before
        rows = np.flatnonzero(changed)
        if 8 * (len(values) + 1) * len(rows) * MIN_SAVING_FACTOR > keyframe.whole_nbytes:
            self.misses += 1
            return False
        self.misses = 0
        if not all(self._learn(number, outputs[number], rows) for number in range(len(keyframe.filters))):
            return False
        self._add(outputs, rows, values)
        return True

    def record_rows(self, plan: Plan, rows: list[int]) -> None:
        """Add rows found in a change log to the keyframe."""
        keyframe = self.keyframe
        if self._values is None:
            keyframe.add_changes(rows, values_at(plan, rows, keyframe.dynamic))
            return
        outputs = plugin_outputs(plan, scored=keyframe.scored, table=None)
        keyframe.take_changes([it.values for it in outputs], rows)
        index = np.array(rows, dtype=np.intp)
        for number in range(len(keyframe.filters)):
            self._learn(number, outputs[number], index)
        for number, before in self._values.items():
            before[index] = outputs[number].values[index]

    def _add(self, outputs: list[PluginOutput], rows: Index, values: dict[int, Any]) -> None:
        for number, before in values.items():
            before[rows] = outputs[number].values[rows]
        self.keyframe.take_changes([it.values for it in outputs], rows.tolist())

    def _begin(self) -> dict[int, Any]:
        """Start comparing with the results recorded last."""
        keyframe = self.keyframe
        codes, raw = keyframe.values_until(len(keyframe.rows))
        everything = [*codes, *raw]
        keyframe.texts = [{} for _ in codes]
        for number, verdicts in enumerate(keyframe.verdicts):
            given = [verdicts, keyframe.changes_of(number, len(keyframe.rows))]
            for verdict in np.unique(np.concatenate([each for each in given if each is not None])).tolist():
                if verdict:
                    keyframe.texts[number][verdict] = keyframe.explain(number, verdict).reasons
        self._values = {number: everything[number] for number in keyframe.dynamic}
        return self._values

    def _fits(self, plan: Plan, outputs: list[PluginOutput]) -> bool:
        """Return whether the plugins are those of the keyframe, and nothing changed that it does not record."""
        keyframe = self.keyframe
        if self._node_position != plan.state.node_log.end or absent_status(plan) != keyframe.absent:
            return False
        known = [(plugin, spec, 0) for plugin, spec, _ in keyframe.filters] + keyframe.scorers
        if len(known) != len(outputs):
            return False
        for it, (plugin, spec, weight) in zip(outputs, known, strict=True):
            if it.plugin is not plugin or it.spec is not spec or it.weight != weight:
                return False
        moved = [number for number, params in self._still.items() if outputs[number].params != params]
        if moved:
            self.moving |= frozenset(moved)
            return False
        examined = keyframe.examined
        if examined is None or plan.pre.node_names is None:
            return examined is None and plan.pre.node_names is None
        return np.array_equal(examined, plan.examined()[: len(examined)])

    def _learn(self, number: int, output: PluginOutput, rows: Index) -> bool:
        """Record the reasons of a filter's verdicts; return False if an earlier verdict now has another meaning."""
        texts, plugin = self.keyframe.texts[number], self.keyframe.filters[number][0]
        if output.params != self._params[number]:
            for verdict, text in texts.items():
                if plugin.reasons(output.spec, output.params, verdict) != text:
                    return False
            self._params[number] = output.params
        if len(rows):
            for verdict in np.unique(output.values[rows]).tolist():
                if verdict and verdict not in texts:
                    texts[verdict] = plugin.reasons(output.spec, output.params, verdict)
        return True


class PlanHistory:
    """The state that records keep for one plan.

    Attributes:
        own: the keyframe to extend for the plan's own results.
        tables: the keyframe to extend for scores over other nodes.
    """

    __slots__ = ("_changes", "_epochs", "_node_position", "own", "tables")

    def __init__(self, state: ClusterState) -> None:
        self.own: FrameHistory | None = None
        self.tables: FrameHistory | None = None
        self._changes = LogReader([state.usage_log, state.ports_log])
        self._epochs: list[int] = []
        self._node_position = -1

    def take_changes(self, plan: Plan) -> list[int] | None:
        """Return the rows whose verdicts or scores may have changed since the last call, or None for all."""
        state = plan.state
        epochs = [result.epoch for result in (*plan.filtered.results, *plan.totals.results)]
        count = self._changes.take(MAX_LOG_ROWS)
        same = epochs == self._epochs and state.node_log.end == self._node_position
        self._epochs, self._node_position = epochs, state.node_log.end
        if count < 0 or not same:
            return None
        return list(dict.fromkeys([int(row) for row in self._changes.rows[:count]]))

    def keep_changes(self) -> None:
        """Make the next `take_changes` return None."""
        self._node_position = -1


def values_at(plan: Plan, rows: list[int], numbers: Sequence[int]) -> array[int]:
    """Return the results on rows, row by row, as 64-bit integers; results by number, filters first, then scorers."""
    results = [*plan.filtered.results, *plan.totals.results]
    values = np.empty((len(rows), len(numbers)), dtype=np.int64)
    for place, number in enumerate(numbers):
        values[:, place] = results[number].values[rows]
    return array("q", values.tobytes())
