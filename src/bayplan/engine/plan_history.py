"""What records remember of a plan between its cycles: keyframes, and what was said last where no log tells what changed.

Plugins whose params changed, or that don't say what they read, are evaluated in full, and so is everything where the nodes that
are scored are not those that the plan keeps. A record of that would be a keyframe of its own. Mostly little has changed, though:
a pod that keeps away from its own kind changes the verdict on one node. So what was said last is kept, and compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.engine.cycle import absent_status
from bayplan.engine.keyframe import Keyframe, Said, what_is_said
from bayplan.engine.log_reader import LogReader
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Bools, Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LIMIT as MANY_ROWS

WORTH = 2
"""Differences are kept where they take no more than the keyframe by this number."""

MOST_VAIN = 3
"""After so many keyframes in a row that differences could not replace, they are no longer looked for in every cycle."""

VAIN_PERIOD = 32
"""One cycle in so many is then looked at again."""


class FrameHistory:
    """The keyframe that records of one kind go on from.

    Args:
        plan: the plan, just recorded as a keyframe.
        keyframe: that keyframe.
        said: what it was made from.
        vain: how many keyframes of the plan in a row were written because too much had changed.

    Attributes:
        moving: the parts that the next keyframe is to follow, see `Keyframe.moving`.
    """

    __slots__ = ("_node_position", "_params", "_still", "_values", "keyframe", "moving", "vain")

    def __init__(self, plan: Plan, keyframe: Keyframe, said: list[Said], vain: int) -> None:
        self.keyframe = keyframe
        self.vain = vain
        self.moving = keyframe.moving
        self._node_position = plan.state.node_log.end
        followed = frozenset(keyframe.dynamic)
        self._still = {number: it.params for number, it in enumerate(said) if number not in followed}
        self._params: list[Params | None] = [it.params for it in said[: len(keyframe.filters)]]
        self._values: dict[int, Any] | None = None

    def record_differences(self, plan: Plan, said: list[Said]) -> bool:
        """Add what changed to the keyframe; return False, with nothing added, where a new keyframe is needed or better."""
        if not self._fits(plan, said):
            return False
        if self.vain >= MOST_VAIN and self.vain % VAIN_PERIOD:
            self.vain += 1
            return False
        keyframe = self.keyframe
        values = self._values if self._values is not None else self._begin()
        changed: Bools = np.zeros(len(keyframe.names), dtype=np.bool_)
        for number, before in values.items():
            changed |= said[number].values[: len(changed)] != before
        rows = np.flatnonzero(changed)
        if 8 * (len(values) + 1) * len(rows) * WORTH > keyframe.whole_nbytes:
            self.vain += 1
            return False
        self.vain = 0
        if not all(self._learn(number, said[number], rows) for number in range(len(keyframe.filters))):
            return False
        self._add(said, rows, values)
        return True

    def record_rows(self, plan: Plan, rows: list[int]) -> None:
        """Add rows of which a log told to the keyframe."""
        keyframe = self.keyframe
        if self._values is None:
            keyframe.add_changes(rows, values_at(plan, rows, keyframe.dynamic))
            return
        said = what_is_said(plan, scored=keyframe.scored, table=None)
        keyframe.take_changes([it.values for it in said], rows)
        index = np.array(rows, dtype=np.intp)
        for number in range(len(keyframe.filters)):
            self._learn(number, said[number], index)
        for number, before in self._values.items():
            before[index] = said[number].values[index]

    def _add(self, said: list[Said], rows: Index, values: dict[int, Any]) -> None:
        for number, before in values.items():
            before[rows] = said[number].values[rows]
        self.keyframe.take_changes([it.values for it in said], rows.tolist())

    def _begin(self) -> dict[int, Any]:
        """Begin to compare: with what was recorded last."""
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

    def _fits(self, plan: Plan, said: list[Said]) -> bool:
        """Return whether the same plugins speak as in the keyframe, and what is not followed is as it was."""
        keyframe = self.keyframe
        if self._node_position != plan.state.node_log.end or absent_status(plan) != keyframe.absent:
            return False
        known = [(plugin, spec, 0) for plugin, spec, _ in keyframe.filters] + keyframe.scorers
        if len(known) != len(said):
            return False
        for it, (plugin, spec, weight) in zip(said, known, strict=True):
            if it.plugin is not plugin or it.spec is not spec or it.weight != weight:
                return False
        moved = [number for number, params in self._still.items() if said[number].params != params]
        if moved:
            self.moving |= frozenset(moved)
            return False
        examined = keyframe.examined
        if examined is None or plan.pre.node_names is None:
            return examined is None and plan.pre.node_names is None
        return np.array_equal(examined, plan.examined()[: len(examined)])

    def _learn(self, number: int, said: Said, rows: Index) -> bool:
        """Note the reasons of a filter's verdicts; return False where one that was given before now means something else."""
        texts, plugin = self.keyframe.texts[number], self.keyframe.filters[number][0]
        if said.params != self._params[number]:
            for verdict, text in texts.items():
                if plugin.reasons(said.spec, said.params, verdict) != text:
                    return False
            self._params[number] = said.params
        if len(rows):
            for verdict in np.unique(said.values[rows]).tolist():
                if verdict and verdict not in texts:
                    texts[verdict] = plugin.reasons(said.spec, said.params, verdict)
        return True


class PlanHistory:
    """What records remember of one plan.

    Attributes:
        own: where records of what the plan keeps go on from. tables: likewise for scores that are not the plan's own.
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
        count = self._changes.take(MANY_ROWS)
        same = epochs == self._epochs and state.node_log.end == self._node_position
        self._epochs, self._node_position = epochs, state.node_log.end
        if count < 0 or not same:
            return None
        return list(dict.fromkeys([int(row) for row in self._changes.rows[:count]]))

    def keep_changes(self) -> None:
        """Let the next `take_changes` return None."""
        self._node_position = -1


def values_at(plan: Plan, rows: list[int], numbers: Sequence[int]) -> array[int]:
    """Return what results say of rows, row by row, as numbers of 64 bits; results by number, filters first, then scorers."""
    results = [*plan.filtered.results, *plan.totals.results]
    values = np.empty((len(rows), len(numbers)), dtype=np.int64)
    for place, number in enumerate(numbers):
        values[:, place] = results[number].values[rows]
    return array("q", values.tobytes())
