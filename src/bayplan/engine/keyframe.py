"""Keyframes of full records: the results of a plan's plugins on all nodes at one moment, and the later changes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bayplan.engine.cycle import absent_status
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import Params
from bayplan.framework.rule import ScoreRule, ready
from bayplan.framework.status import Status, verdict_code
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState

MIN_SAVING_FACTOR = 2
"""Changes are recorded if they take at most 1/`MIN_SAVING_FACTOR` of the memory of a new keyframe."""

MAX_CHANGED_ROWS = 16_384
"""Maximum number of changed rows of a keyframe. The next record then starts a new one, so old ones can be dropped."""


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


def plugin_outputs(plan: Plan, scored_by: Plan | None) -> list[PluginOutput]:
    """Return the current results of a plan's filters, then those of the scorers of the plan that scored nodes, if any."""
    outputs = [
        PluginOutput(part.plugin, part.spec, part.params, 0, part.values, part.static) for part in plan.filtered.results
    ]
    if scored_by is not None:
        # The scores of a temporary plan depend on which nodes are feasible.
        own, weighted = scored_by is plan, zip(scored_by.totals.results, scored_by.totals.weights, strict=True)
        outputs += [
            PluginOutput(part.plugin, part.spec, part.params, weight, part.values, part.static and own)
            for part, weight in weighted
        ]
    return outputs


@dataclass(eq=False)
class Keyframe:
    """The results of one plan's plugins on all nodes at one moment, and the row-by-row changes since.

    A part is a filter or a scorer; parts are numbered, filters first. Keyframes don't reference their plan, so the plan
    can be freed.

    Attributes:
        names: node names by row; None in freed rows.
        order: the rows in the order in which a search visits them. All keyframes between two changes of the nodes share
            `names` and `order`.
        examined: bool[rows], nodes that PreFilter did not exclude; None for all.
        absent: the status of the nodes that PreFilter excluded, or None.
        floor: the total of a feasible node before any plugin scores it: 1 if the profile has no score plugin, else 0.
        filters, scorers: the output of each plugin, in order. `values` has the narrowest integer type, and one element
            if all are equal. Only filters have params, from which they derive their reasons.
        dynamic: the numbers of the parts whose changes are recorded.
        rows: rows that changed later, in order.
        values: for each change, the values of the dynamic parts.
    """

    state: ClusterState
    names: tuple[str | None, ...]
    order: Index
    examined: Bools | None
    absent: Status | None = None
    floor: int = 0
    filters: list[PluginOutput] = field(default_factory=list)
    scorers: list[PluginOutput] = field(default_factory=list)
    dynamic: list[int] = field(default_factory=list)
    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("q"))

    def changes_of(self, number: int, changes: int) -> Ints | None:
        """Return a part's new values in the first `changes` changes; None if changes of this part are not recorded."""
        if number not in self.dynamic:
            return None
        width = len(self.dynamic)
        return np.array(self.values[self.dynamic.index(number) : changes * width : width], dtype=np.int64)

    @property
    def filter_names(self) -> tuple[str, ...]:
        """Return the names of the filters, in order."""
        return tuple(it.plugin.name for it in self.filters)

    @property
    def scorer_weights(self) -> tuple[tuple[str, int], ...]:
        """Return the names of the scorers with their weights, in order."""
        return tuple((it.plugin.name, it.weight) for it in self.scorers)

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter with this number."""
        it = self.filters[number]
        return Status(verdict_code(verdict), it.plugin.reasons(it.spec, it.params, verdict), it.plugin.name)

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the normalised scores of the scorer with this number, for raw scores of any rows."""
        it = self.scorers[number]
        if scale is None:
            return raw
        rule: ScoreRule = it.plugin.score_rule(it.spec, self.state)
        if not rule.normalizes:
            return raw
        ready(rule, (), self.state.columns)
        if len(raw) != self.state.columns.count:
            # Nodes were added since then: the scale may hold data about each of the older rows.
            return np.array([rule.normalize(scale, score, row) for row, score in enumerate(raw.tolist())], np.int64)
        scores, normalized = np.zeros((2, self.state.columns.capacity), dtype=np.int64)
        scores[: len(raw)] = raw
        rule.normalize_all(scale, scores, normalized)
        return normalized[: len(raw)]

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return uint16[filters, rows] and int64[scorers, rows] after the first `changes` changes."""
        codes = np.zeros((len(self.filters), len(self.names)), dtype=np.uint16)
        raw = np.zeros((len(self.scorers), len(self.names)), dtype=np.int64)
        columns = [*codes, *raw]
        for column, it in zip(columns, [*self.filters, *self.scorers], strict=True):
            column[:] = it.values
        rows = np.array(self.rows[:changes], dtype=np.intp)
        for number in self.dynamic:
            # The last change of a row counts; NumPy assigns in order.
            columns[number][rows] = self.changes_of(number, changes)
        return codes, raw

    @property
    def arrays(self) -> list[Any]:
        """Return the arrays of this keyframe."""
        parts = [it.values for it in (*self.filters, *self.scorers)]
        return parts if self.examined is None else [*parts, self.examined]

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
    # `-1 - high` needs as many bits as `high` and its sign.
    return values.astype(np.min_scalar_type(min(low, -1 - high)))


class FrameHistory:
    """The last keyframe of one kind of a plan's results, and the values with which later results are compared.

    Args:
        plan: the plan.
        keyframe: a new keyframe, to which the results are copied; also an attribute.
        outputs: the results.
        moving: the numbers of parts that placements change only through their params. Also an attribute, for the next
            keyframe; `record_changes` adds to it.
    """

    def __init__(self, plan: Plan, keyframe: Keyframe, outputs: list[PluginOutput], moving: frozenset[int]) -> None:
        self.keyframe = keyframe
        self.moving = moving
        self._node_position = plan.state.node_log.end
        self._params = [it.params for it in outputs]
        count, filters = len(keyframe.names), len(plan.filtered.results)
        keyframe.examined = None if plan.pre.node_names is None else plan.filtered.examined()[:count].copy()
        keyframe.absent = absent_status(plan)
        keyframe.floor = 0 if plan.profile.score else 1
        keyframe.filters = [it._replace(values=_narrow(it.values[:count])) for it in outputs[:filters]]
        keyframe.scorers = [it._replace(params=None, values=_narrow(it.values[:count])) for it in outputs[filters:]]
        keyframe.dynamic = [number for number, it in enumerate(outputs) if not it.still or number in moving]
        self._whole_nbytes = keyframe.whole_nbytes
        self._verdicts = [set(np.unique(it.values).tolist()) - {0} for it in keyframe.filters]
        # The last values of the dynamic parts, by number. Plans that are recorded once don't need them.
        self._values: dict[int, Any] | None = None

    def record_changes(self, plan: Plan, outputs: list[PluginOutput]) -> bool:
        """Add all changes since the last record to the keyframe; return False, with nothing added, to demand a new one.

        A new keyframe is needed if data changed that a keyframe can't record, and preferable if it is smaller.
        """
        keyframe = self.keyframe
        if len(keyframe.rows) >= MAX_CHANGED_ROWS or not self._fits(plan, outputs):
            return False
        if self._values is None:
            whole = [each for part in keyframe.values_until(0) for each in part]
            self._values = {number: whole[number] for number in keyframe.dynamic}
        changed: Bools = np.zeros(len(keyframe.names), dtype=np.bool_)
        for number, before in self._values.items():
            changed |= outputs[number].values[: len(changed)] != before
        rows = np.flatnonzero(changed)
        if 8 * (len(self._values) + 1) * len(rows) * MIN_SAVING_FACTOR > self._whole_nbytes:
            return False
        if not all(self._learn(number, outputs[number], rows) for number in range(len(keyframe.filters))):
            return False
        values = np.empty((len(rows), len(keyframe.dynamic)), dtype=np.int64)
        for place, (number, before) in enumerate(self._values.items()):
            before[rows] = values[:, place] = outputs[number].values[rows]
        keyframe.rows.extend(rows.tolist())
        keyframe.values.frombytes(values.tobytes())
        return True

    def _fits(self, plan: Plan, outputs: list[PluginOutput]) -> bool:
        """Return whether the plugins are those of the keyframe, and no data has changed except what the keyframe records."""
        keyframe = self.keyframe
        if self._node_position != plan.state.node_log.end or absent_status(plan) != keyframe.absent:
            return False
        known = [*keyframe.filters, *keyframe.scorers]
        if len(known) != len(outputs):
            return False
        for it, old in zip(outputs, known, strict=True):
            if it.plugin is not old.plugin or it.spec is not old.spec or it.weight != old.weight:
                return False
        moved = {
            number
            for number, it in enumerate(outputs)
            if number not in keyframe.dynamic and it.params != self._params[number]
        }
        if moved:
            self.moving |= moved
            return False
        examined = keyframe.examined
        if examined is None or plan.pre.node_names is None:
            return examined is None and plan.pre.node_names is None
        return np.array_equal(examined, plan.filtered.examined()[: len(examined)])

    def _learn(self, number: int, output: PluginOutput, rows: Index) -> bool:
        """Note a filter's params and verdicts; return False if an earlier verdict now has another meaning."""
        verdicts, before = self._verdicts[number], self._params[number]
        plugin, spec = output.plugin, output.spec
        if output.params != before:
            for verdict in sorted(verdicts):
                if plugin.reasons(spec, output.params, verdict) != plugin.reasons(spec, before, verdict):
                    return False
            self._params[number] = output.params
            self.keyframe.filters[number] = self.keyframe.filters[number]._replace(params=output.params)
        if number in self.keyframe.dynamic:
            verdicts.update(output.values[rows].tolist())
            verdicts.discard(0)
        return True
