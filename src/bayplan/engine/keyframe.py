"""Keyframes: the results of a plan's plugins on all nodes at one moment, and the changes since. They make up full records."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayplan.engine.cycle import absent_status
from bayplan.engine.full_pass import ScoreTable
from bayplan.engine.plan import Plan
from bayplan.engine.rule_result import RuleResult
from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, ScorePlugin
from bayplan.framework.status import Status, verdict_code
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

MAX_SINGLE_ROWS = 12
"""Up to this many rows are copied one by one, which is faster than gathering them."""

MAX_COPIES = 256
"""Maximum number of cached copies to share; then all are dropped."""


class PluginOutput(NamedTuple):
    """The current results of one plugin: its spec, its params and its values on all rows.

    `still`: placements can't change the values while the params stay the same. `part`: the cached rule result that holds the
    values, or None.
    """

    plugin: Any
    spec: Any
    params: Params | None
    weight: int
    values: Any
    still: bool
    part: RuleResult | None


def plugin_outputs(plan: Plan, *, scored: bool, table: ScoreTable | None) -> list[PluginOutput]:
    """Return the current results of a plan's filters, then of its scorers (of `table`, if given)."""
    outputs = [
        PluginOutput(part.plugin, part.spec, part.params, 0, part.values, part.static, part)
        for part in plan.filtered.results
    ]
    if table is not None:
        return outputs + [
            PluginOutput(it.plugin, it.spec, None, it.weight, it.raw, False, None) for it in table.scores.values()
        ]
    if scored:
        weighted = zip(plan.totals.results, plan.totals.weights, strict=True)
        outputs += [
            PluginOutput(part.plugin, part.spec, part.params, weight, part.values, part.static, part)
            for part, weight in weighted
        ]
    return outputs


class Keyframe:
    """The results of one plan's plugins on all nodes at one moment, and the row-by-row changes since.

    Attributes:
        names: node names by row; None in freed rows.
        order: rows in the order in which a search visits them. Both are shared by the keyframes between two changes of the nodes.
        examined: bool[rows], nodes that PreFilter left to the filters; None for all.
        absent: the status of the other nodes, or None.
        verdicts: the verdicts of each filter part.
        raw: the raw scores of each score part. In the narrowest type that holds them; a single element stands for equal values.
        filters: plugin, spec and the params for its reasons, per filter part.
        scorers: plugin, spec and weight, per score part.
        floor: the score of a feasible node before any plugin runs: 1 if the profile has no score plugin.
        moving: parts that placements change through their params, without a log entry.
        dynamic: numbers of the parts whose changes are recorded (filters first, then scorers): the moving and the logged ones.
        rows: rows that changed later, in order.
        values: the dynamic parts' values for each of them.
        texts: reasons of verdicts by filter, recorded with the verdicts if their params are gone.
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

    def take(self, plan: Plan, outputs: Sequence[PluginOutput], copies: Copies, *, scored: bool) -> None:
        """Copy the results of a plan's plugins, filters first. Keeps no reference to the plan, so that its arrays can be freed."""
        count = len(self.names)
        filters, scorers = outputs[: len(plan.filtered.results)], outputs[len(plan.filtered.results) :]
        self.examined = None if plan.pre.node_names is None else plan.examined()[:count].copy()
        self.absent = absent_status(plan)
        self.verdicts = [copies.of(it, count, self.state.node_log.end) for it in filters]
        self.filters = [(it.plugin, it.spec, it.params) for it in filters]
        self.scored = scored
        self.floor = 0 if plan.profile.score else 1
        self.raw = [copies.of(it, count, self.state.node_log.end) for it in scorers]
        self.scorers = [(it.plugin, it.spec, it.weight) for it in scorers]
        self.dynamic = [number for number, it in enumerate(outputs) if not it.still or number in self.moving]

    def take_changes(self, columns: Sequence[Any], rows: Collection[int]) -> None:
        """Record the current values of rows; `columns` holds those of all parts."""
        followed = [columns[number] for number in self.dynamic]
        if len(rows) <= MAX_SINGLE_ROWS:
            for row in rows:
                self.rows.append(row)
                self.values.extend([column.item(row) for column in followed])
            return
        index = np.fromiter(rows, dtype=np.int64, count=len(rows))
        self.rows.frombytes(index.tobytes())
        values = np.empty((len(index), len(followed)), dtype=np.int64)
        for place, column in enumerate(followed):
            values[:, place] = column[index]
        self.values.frombytes(values.tobytes())

    def add_changes(self, rows: Sequence[int], values: array[int]) -> None:
        """Record the current values of rows: the dynamic parts' values, row by row."""
        self.rows.extend(rows)
        self.values.extend(values)

    def changes_of(self, number: int, changes: int) -> Ints | None:
        """Return the values that a part's rows changed to, for each of the first changes; None if they are not recorded."""
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
        """Return the approximate size of this keyframe on its own, without names and changes."""
        return 500 + sum(int(values.nbytes) for values in self.arrays)


class Copies:
    """Shared copies of equal results: many plans share some, such as those for pods that tolerate the same taints."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[RuleResult, int, int, Any]] = OrderedDict()

    def of(self, output: PluginOutput, count: int, position: int) -> Any:
        """Return a copy of the first `count` values, narrowed; it may be shared. `position` is the end of the node log."""
        part = output.part
        if part is None or not output.still:
            return _narrow(output.values[:count])
        known = self._known.get(id(part))
        # The entry holds the part, so that its address is not reused. Its values change only with its epoch and with nodes.
        if known is not None and known[1:3] == (part.epoch, position):
            return known[3]
        copy = _narrow(output.values[:count])
        self._known[id(part)] = (part, part.epoch, position, copy)
        if len(self._known) > MAX_COPIES:
            self._known.popitem(last=False)
        return copy


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
