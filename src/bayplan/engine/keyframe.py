"""Keyframes: what the plugins of a plan said about all nodes at one moment, and what changed since: the stuff of full records."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import Any

import numpy as np

from bayplan.engine.cycle import absent_status
from bayplan.engine.full_pass import ScoreTable
from bayplan.engine.part import FEW_ROWS, Part
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, ScorePlugin
from bayplan.framework.status import Status, verdict_code
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


class Keyframe:
    """All that the plugins of one plan said about all nodes at one moment, and what changed row by row since then.

    Attributes:
        names: node names by row; None in freed rows. order: rows in the order in which a search visits them. Both are shared
            by the keyframes between two changes of the nodes.
        examined: bool[rows], nodes that PreFilter left to the filters; None for all there are.
        absent: the status of the other nodes, or None.
        verdicts: per filter part its verdicts. raw: per score part its raw scores. In the narrowest type that holds them; one
            element stands for as many equal ones.
        filters: per filter part its plugin, its spec and the params that its reasons need.
        scorers: per score part its plugin, its spec and its weight.
        floor: what a feasible node scores before any plugin is asked: 1 where the profile has no score plugin.
        dynamic: the parts that placements can change, by number: filters first, then scorers.
        rows: rows that changed later, in order. values: for each of them the values of the dynamic parts.
    """

    __slots__ = (
        "absent",
        "dynamic",
        "examined",
        "filters",
        "floor",
        "names",
        "order",
        "raw",
        "rows",
        "scored",
        "scorers",
        "state",
        "values",
        "verdicts",
    )

    def __init__(self, state: ClusterState, names: tuple[str | None, ...], order: Index) -> None:
        self.state = state
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
        self.rows = array("q")
        self.values = array("q")

    def take_filters(self, plan: Plan) -> None:
        """Copy the verdicts of a plan. The plan itself is not kept: its arrays are to go when scheduling needs them no more."""
        count = len(self.names)
        self.examined = None if plan.pre.node_names is None else plan.examined()[:count].copy()
        self.absent = absent_status(plan)
        self.verdicts = [_narrow(part.values[:count]) for part in plan.filter_parts]
        self.filters = [(part.plugin, part.spec, part.params) for part in plan.filter_parts]
        self.dynamic = [number for number, part in enumerate(plan.filter_parts) if not part.static]

    def take_scores(self, plan: Plan) -> None:
        """Copy the raw scores of a plan."""
        self.scored = True
        self.floor = 0 if plan.profile.score else 1
        weighted = zip(plan.score_parts, plan.weights, strict=True)
        self.scorers = [(part.plugin, part.spec, weight) for part, weight in weighted]
        self.raw = [_narrow(part.values[: len(self.names)]) for part in plan.score_parts]
        first = len(self.filters)
        self.dynamic += [first + number for number, part in enumerate(plan.score_parts) if not part.static]

    def take_table(self, plan: Plan, table: ScoreTable) -> None:
        """Copy raw scores that are not the plan's own."""
        self.scored = True
        self.floor = 0 if plan.profile.score else 1
        self.scorers = [(scores.plugin, scores.spec, scores.weight) for scores in table.scores.values()]
        self.raw = [_narrow(scores.raw) for scores in table.scores.values()]

    def take_changes(self, plan: Plan, rows: Collection[int]) -> None:
        """Note the values that rows of the plan have now."""
        parts: list[Part] = [*plan.filter_parts, *plan.score_parts] if self.scored else [*plan.filter_parts]
        columns = [parts[number].values for number in self.dynamic]
        if len(rows) <= FEW_ROWS:
            for row in rows:
                self.rows.append(row)
                self.values.extend([column.item(row) for column in columns])
            return
        index = np.fromiter(rows, dtype=np.int64, count=len(rows))
        self.rows.frombytes(index.tobytes())
        values = np.empty((len(index), len(columns)), dtype=np.int64)
        for place, column in enumerate(columns):
            values[:, place] = column[index]
        self.values.frombytes(values.tobytes())

    def changes_of(self, number: int, changes: int) -> Ints | None:
        """Return the values that a part's rows changed to, one for each of the first changes; None where none is kept."""
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
        return Status(verdict_code(verdict), plugin.reasons(spec, params, verdict), plugin.name)

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the normalised scores of the scorer with this number, for raw scores of any rows."""
        plugin, spec, _ = self.scorers[number]
        if scale is None or not isinstance(plugin, NormalizePlugin):
            return raw
        return plugin.normalize(spec, scale, raw, Rows(self.state, np.arange(len(raw), dtype=np.intp)))

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return uint16[filters, rows] and int64[scorers, rows] as they were after so many changes."""
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
    def nbytes(self) -> int:
        """Return about how many bytes this keyframe and its changes take, names left out."""
        examined = 0 if self.examined is None else self.examined.nbytes
        whole = sum(int(values.nbytes) for values in (*self.verdicts, *self.raw))
        return 500 + examined + whole + self.rows.itemsize * len(self.rows) + self.values.itemsize * len(self.values)


def _narrow(values: Any) -> Any:
    """Return a copy in the narrowest type that holds all values; one element where all are equal."""
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
