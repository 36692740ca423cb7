"""Keyframes: what the plugins of a plan said about all nodes at one moment, and what changed since: the stuff of full records."""

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

FEW_ROWS = 12
"""Up to so many rows are copied one by one, which is faster than gathering them."""

MOST_COPIES = 256
"""So many copies are held ready to be shared."""


class Said(NamedTuple):
    """What one plugin says now: whose rule it is, what it was asked with, and its values on all rows.

    `still` says that placements can't change the values while the params stay the same. `part` is the part that keeps the
    values, None where none does.
    """

    plugin: Any
    spec: Any
    params: Params | None
    weight: int
    values: Any
    still: bool
    part: RuleResult | None


def what_is_said(plan: Plan, *, scored: bool, table: ScoreTable | None) -> list[Said]:
    """Return what the filters of a plan say now, then its scorers (those of `table`, if it is given)."""
    said = [
        Said(part.plugin, part.spec, part.params, 0, part.values, part.static, part) for part in plan.filtered.results
    ]
    if table is not None:
        return said + [Said(it.plugin, it.spec, None, it.weight, it.raw, False, None) for it in table.scores.values()]
    if scored:
        weighted = zip(plan.totals.results, plan.totals.weights, strict=True)
        said += [
            Said(part.plugin, part.spec, part.params, weight, part.values, part.static, part)
            for part, weight in weighted
        ]
    return said


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
        moving: parts that placements change although no log tells of it, as their params move.
        dynamic: the parts whose changes are kept, by number (filters first, then scorers): those, and what logs tell of.
        rows: rows that changed later, in order. values: for each of them the values of the dynamic parts.
        texts: per filter the reasons of verdicts, where they were noted when they were given: their params are gone.
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

    def take(self, plan: Plan, said: Sequence[Said], copies: Copies, *, scored: bool) -> None:
        """Copy what the plugins of a plan say, filters first. The plan is not kept: its arrays are to go when it goes."""
        count = len(self.names)
        filters, scorers = said[: len(plan.filtered.results)], said[len(plan.filtered.results) :]
        self.examined = None if plan.pre.node_names is None else plan.examined()[:count].copy()
        self.absent = absent_status(plan)
        self.verdicts = [copies.of(it, count, self.state.node_log.end) for it in filters]
        self.filters = [(it.plugin, it.spec, it.params) for it in filters]
        self.scored = scored
        self.floor = 0 if plan.profile.score else 1
        self.raw = [copies.of(it, count, self.state.node_log.end) for it in scorers]
        self.scorers = [(it.plugin, it.spec, it.weight) for it in scorers]
        self.dynamic = [number for number, it in enumerate(said) if not it.still or number in self.moving]

    def take_changes(self, columns: Sequence[Any], rows: Collection[int]) -> None:
        """Note the values that rows have now; `columns` are those of all parts."""
        followed = [columns[number] for number in self.dynamic]
        if len(rows) <= FEW_ROWS:
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
        """Note the values that rows have now: row by row those of the dynamic parts."""
        self.rows.extend(rows)
        self.values.extend(values)

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
    def arrays(self) -> list[Any]:
        """Return the arrays of this keyframe; some may be shared with others."""
        return [*self.verdicts, *self.raw, *(() if self.examined is None else (self.examined,))]

    @property
    def whole_nbytes(self) -> int:
        """Return about how many bytes this keyframe takes by itself, names and changes left out."""
        return 500 + sum(int(values.nbytes) for values in self.arrays)


class Copies:
    """Copies of what many plans share, as pods of several kinds tolerate the same taints: each is made once."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[RuleResult, int, int, Any]] = OrderedDict()

    def of(self, said: Said, count: int, position: int) -> Any:
        """Return a copy of the first `count` values, narrowed; it may be shared. `position` is the end of the log of nodes."""
        part = said.part
        if part is None or not said.still:
            return _narrow(said.values[:count])
        known = self._known.get(id(part))
        # The entry holds the part, so that no other part gets its address. Its values change with its epoch and with nodes only.
        if known is not None and known[1:3] == (part.epoch, position):
            return known[3]
        copy = _narrow(said.values[:count])
        self._known[id(part)] = (part, part.epoch, position, copy)
        if len(self._known) > MOST_COPIES:
            self._known.popitem(last=False)
        return copy


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
