"""Keyframes: the results of a plan's plugins on all nodes at one moment, and the later changes.

Used for full records.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayplan.engine.cycle import absent_status
from bayplan.engine.full_pass import ScoreTable
from bayplan.engine.log_reader import LogReader
from bayplan.engine.plan import Plan
from bayplan.engine.rule_result import RuleResult
from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, ScorePlugin
from bayplan.framework.status import Status, verdict_code
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import LIMIT as MAX_LOG_ROWS
from bayplan.state.views import Rows


class PluginOutput(NamedTuple):
    """The current results of one plugin: its spec, its params and its values on all rows.

    `still`: placements can't change the values while the params stay the same.
    """

    plugin: Any
    spec: Any
    params: Params | None
    weight: int
    values: Any
    still: bool


def plugin_outputs(plan: Plan, *, scored: bool, table: ScoreTable | None) -> list[PluginOutput]:
    """Return the current results of a plan's filters, then of its scorers (of `table`, if given)."""
    outputs = [
        PluginOutput(part.plugin, part.spec, part.params, 0, part.values, part.static) for part in plan.filtered.results
    ]
    if table is not None:
        return outputs + [
            PluginOutput(it.plugin, it.spec, None, it.weight, it.raw, False) for it in table.scores.values()
        ]
    if scored:
        weighted = zip(plan.totals.results, plan.totals.weights, strict=True)
        outputs += [
            PluginOutput(part.plugin, part.spec, part.params, weight, part.values, part.static)
            for part, weight in weighted
        ]
    return outputs


class Keyframe:
    """The results of one plan's plugins on all nodes at one moment, and the row-by-row changes since.

    A part is a filter or a scorer; parts are numbered, filters first.

    Attributes:
        names: node names by row; None in freed rows.
        order: the rows in the order in which a search visits them. All keyframes between two changes of the nodes share
            `names` and `order`.
        examined: bool[rows], nodes that PreFilter did not exclude; None for all.
        absent: the status of the nodes that PreFilter excluded, or None.
        verdicts: per filter, the verdicts, stored like `raw`.
        raw: per scorer, the raw scores, in the narrowest integer type; a single element if all are equal.
        filters: per filter, its plugin, its spec, and the params from which it derives its reasons.
        scorers: per scorer, its plugin, spec and weight.
        floor: the total of a feasible node before any plugin scores it: 1 if the profile has no score plugin, else 0.
        moving: the numbers of the parts that placements change through their params, which no change log shows.
        dynamic: the numbers of the parts whose changes are recorded: those in `moving`, and those that placements
            change.
        rows: rows that changed later, in order.
        values: for each change, the values of the dynamic parts.
        texts: per filter, the reasons of its verdicts, recorded before the params from which they derive are replaced.
    """

    __slots__ = (
        "absent",
        "dynamic",
        "examined",
        "filters",
        "floor",
        "moving",
        "names",
        "order",
        "raw",
        "rows",
        "scored",
        "scorers",
        "state",
        "texts",
        "values",
        "verdicts",
    )

    def __init__(
        self,
        state: ClusterState,
        names: tuple[str | None, ...],
        order: Index,
        moving: frozenset[int] = frozenset(),
    ) -> None:
        self.state = state
        self.moving = moving
        self.names = names
        self.order = order
        self.examined: Bools | None = np.zeros(len(names), dtype=np.bool_)
        self.absent: Status | None = None
        self.verdicts: list[Any] = []
        self.filters: list[tuple[FilterPlugin[Any], Any, Params | None]] = []
        self.scored = False
        self.floor = 0
        self.scorers: list[tuple[ScorePlugin[Any], Any, int]] = []
        self.raw: list[Any] = []
        self.dynamic: list[int] = []
        self.texts: list[dict[int, tuple[str, ...]]] = []
        self.rows = array("q")
        self.values = array("q")

    def copy_results(self, plan: Plan, outputs: Sequence[PluginOutput], *, scored: bool) -> None:
        """Copy the results of a plan's plugins, filters first.

        Keeps no reference to the plan, so the plan can be freed.
        """
        count = len(self.names)
        filters, scorers = outputs[: len(plan.filtered.results)], outputs[len(plan.filtered.results) :]
        self.examined = None if plan.pre.node_names is None else plan.examined()[:count].copy()
        self.absent = absent_status(plan)
        self.verdicts = [_narrow(it.values[:count]) for it in filters]
        self.filters = [(it.plugin, it.spec, it.params) for it in filters]
        self.scored = scored
        self.floor = 0 if plan.profile.score else 1
        self.raw = [_narrow(it.values[:count]) for it in scorers]
        self.scorers = [(it.plugin, it.spec, it.weight) for it in scorers]
        self.dynamic = [number for number, it in enumerate(outputs) if not it.still or number in self.moving]

    def take_changes(self, columns: Sequence[Any], rows: list[int]) -> None:
        """Record the current values of changed rows. `columns`: per part, its values on all rows."""
        values = np.empty((len(rows), len(self.dynamic)), dtype=np.int64)
        for place, number in enumerate(self.dynamic):
            values[:, place] = columns[number][rows]
        self.rows.extend(rows)
        self.values.frombytes(values.tobytes())

    def changes_of(self, number: int, changes: int) -> Ints | None:
        """Return a part's new values in the first `changes` changes; None if changes of this part are not recorded."""
        if number not in self.dynamic:
            return None
        width = len(self.dynamic)
        return np.array(self.values[self.dynamic.index(number) : changes * width : width], dtype=np.int64)

    @property
    def filter_names(self) -> tuple[str, ...]:
        """Return the names of the filters, in order."""
        return tuple(plugin.name for plugin, _, _ in self.filters)

    @property
    def scorer_weights(self) -> tuple[tuple[str, int], ...]:
        """Return the names of the scorers with their weights, in order."""
        return tuple((plugin.name, weight) for plugin, _, weight in self.scorers)

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter with this number."""
        plugin, spec, params = self.filters[number]
        reasons = self.texts[number].get(verdict) if self.texts else None
        if reasons is None:
            reasons = plugin.reasons(spec, params, verdict)
        return Status(verdict_code(verdict), reasons, plugin.name)

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the normalised scores of the scorer with this number, for raw scores of any rows."""
        plugin, spec, _ = self.scorers[number]
        if scale is None or not isinstance(plugin, NormalizePlugin):
            return raw
        return plugin.normalize(spec, scale, raw, Rows(self.state, np.arange(len(raw), dtype=np.intp)))

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return uint16[filters, rows] and int64[scorers, rows] after the first `changes` changes."""
        filters, count = len(self.verdicts), len(self.names)
        codes = np.zeros((filters, count), dtype=np.uint16)
        raw = np.zeros((len(self.raw), count), dtype=np.int64)
        for number, verdicts in enumerate(self.verdicts):
            codes[number] = verdicts
        for number, scores in enumerate(self.raw):
            raw[number] = scores
        if changes and self.dynamic:
            width = len(self.dynamic)
            rows = np.array(self.rows[:changes], dtype=np.intp)
            values = np.array(self.values[: changes * width], dtype=np.int64).reshape(-1, width)
            for place, number in enumerate(self.dynamic):
                # The last change of a row counts; NumPy assigns in order.
                if number < filters:
                    codes[number, rows] = values[:, place]
                else:
                    raw[number - filters, rows] = values[:, place]
        return codes, raw

    @property
    def arrays(self) -> list[Any]:
        """Return the arrays of this keyframe; some may be shared with others."""
        return [*self.verdicts, *self.raw, *(() if self.examined is None else (self.examined,))]

    @property
    def whole_nbytes(self) -> int:
        """Return the approximate size of this keyframe, without names and changes."""
        return 500 + sum(int(values.nbytes) for values in self.arrays)


def _narrow(values: Any) -> Any:
    """Return a copy in the narrowest type that holds all values; a single element if all are equal."""
    if not len(values):
        return values.copy()
    low, high = int(values.min()), int(values.max())
    if low == high:
        return values[:1].copy()
    for dtype in (np.int8, np.int16, np.int32):
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return values.astype(dtype)
    return values.copy()


MIN_SAVING_FACTOR = 2
"""Differences are recorded if they take at most 1/`MIN_SAVING_FACTOR` of the memory of a new keyframe."""

MAX_MISSES = 3
"""After this many consecutive keyframes that differences could not replace, only some cycles look for differences."""

MISS_PERIOD = 32
"""After this many misses, one cycle in this many looks for differences."""


class FrameHistory:
    """The last keyframe of one kind, and the data with which later results are compared.

    Args:
        plan: the plan, just recorded as a keyframe.
        keyframe: the last keyframe.
        outputs: the results from which the keyframe was made.
        misses: the number of consecutive keyframes of the plan that were written because too much had changed.

    Attributes:
        moving: the parts whose changes the next keyframe must record, see `Keyframe.moving`.
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
        """Add all changes since the last record to the keyframe; return False, with nothing added, to demand a new one.

        A new keyframe is needed if data changed that a keyframe can't record, and preferable if it is smaller.
        """
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
        results: list[RuleResult] = [*plan.filtered.results, *plan.totals.results]
        self.keyframe.take_changes([it.values for it in results], rows)
        if self._values is None:
            return
        index = np.array(rows, dtype=np.intp)
        for number in range(len(self.keyframe.filters)):
            self._learn(number, results[number], index)
        for number, before in self._values.items():
            before[index] = results[number].values[index]

    def _add(self, outputs: list[PluginOutput], rows: Index, values: dict[int, Any]) -> None:
        for number, before in values.items():
            before[rows] = outputs[number].values[rows]
        self.keyframe.take_changes([it.values for it in outputs], rows.tolist())

    def _begin(self) -> dict[int, Any]:
        """Rebuild the last recorded values, to compare later results with them.

        Also record the reasons of their verdicts.
        """
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
        """Return whether the plugins are those of the keyframe, and only data that it records has changed."""
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

    def _learn(self, number: int, output: PluginOutput | RuleResult, rows: Index) -> bool:
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
    """The recording state of one plan.

    Attributes:
        own: the last keyframe of the plan's own results; changes are added to it.
        tables: the same for cycles whose scores cover other feasible nodes than the plan's (`ScheduleResult.table`).
    """

    __slots__ = ("_changes", "_epochs", "_node_position", "own", "tables")

    def __init__(self, state: ClusterState) -> None:
        self.own: FrameHistory | None = None
        self.tables: FrameHistory | None = None
        self._changes = LogReader([state.usage_log])
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
