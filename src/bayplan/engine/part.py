"""The last result of one plugin's rule for one spec, kept up to date row by row.

A part knows how far it has followed the logs of changed rows. Bringing it up to date evaluates just the rows that changed:
on plain Python numbers for a few rows, on arrays for many, in full when params changed or too much did.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, Self

import numpy as np

from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, Plugin, Reads, ScorePlugin
from bayplan.state.arrays import Codes, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import GatheredRows, Row, Rows

FEW_ROWS = 12
"""Up to here plain Python numbers beat arrays (measured: benchmarks/bench_engine.py)."""

FULL_SHARE = 8
"""More than one row in so many changed: a full pass is cheaper than gathering them."""


class Changes:
    """The rows that changed between two looks of a plan at the cluster; nodes themselves stayed as they were.

    Attributes:
        rows: each changed row once.
        few: whether they are so few that plain Python numbers are faster than arrays.
        node_end, usage_start, usage_end, ports_start, ports_end: positions in the logs.
    """

    __slots__ = ("_view", "few", "node_end", "ports_end", "ports_start", "rows", "usage_end", "usage_start")

    def __init__(self, state: ClusterState, rows: list[int] | Index, usage_start: int, ports_start: int) -> None:
        self._view: GatheredRows | None = None
        if not isinstance(rows, list) and len(rows) > FEW_ROWS:
            self._view = GatheredRows(state, rows)
        self.rows: list[int] = rows if isinstance(rows, list) else rows.tolist()
        self.few = len(rows) <= FEW_ROWS
        self.node_end = state.node_log.end
        self.usage_start, self.usage_end = usage_start, state.usage_log.end
        self.ports_start, self.ports_end = ports_start, state.ports_log.end

    def view(self, state: ClusterState) -> GatheredRows:
        """Return the rows as arrays; one view for all parts, so that what one gathered need not be gathered again."""
        view = self._view
        if view is None:
            view = self._view = GatheredRows(state, np.array(self.rows, dtype=np.intp))
        return view


class Part:
    """One rule of one plugin for one spec over all rows.

    Attributes:
        values: one element a row of the node table's capacity.
        static: whether placements leave the values alone. incremental: whether the logs tell all that can change them.
        loose: whether plans may do without the values: single rows and all of them can be had at any time, and fast.
        node_position, usage_position, ports_position: how far the logs were followed.
        epoch: moves whenever rows changed that no log tells of; whoever fused these values must then start over.
    """

    __slots__ = (
        "__weakref__",
        "_node_log",
        "_ports_log",
        "_reads_ports",
        "_reads_usage",
        "_usage_log",
        "epoch",
        "incremental",
        "loose",
        "name",
        "node_position",
        "params",
        "plugin",
        "ports_position",
        "scalar",
        "spec",
        "static",
        "usage_position",
        "values",
    )

    dtype: type[np.generic] = np.int64

    def __init__(self, plugin: Plugin[Any], spec: Any, state: ClusterState) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.spec = spec
        self.scalar = plugin.scalar
        self._take_traits()
        self.params: Params | None = None
        self.epoch = 0
        self.values: Any = None
        self._node_log, self._usage_log, self._ports_log = state.node_log, state.usage_log, state.ports_log
        self.node_position = self.usage_position = self.ports_position = -1

    def _take_traits(self) -> None:
        self.incremental, self._reads_usage, self._reads_ports = _traits(self._reads())
        self.static = self.incremental and not self._reads_usage and not self._reads_ports
        self.loose = self.incremental and not self.static and self.scalar and self._is_final()

    def with_spec(self, spec: Any) -> Self:
        """Return a part of the same rule for another spec, of which nothing has been evaluated yet."""
        other = self.__class__.__new__(self.__class__)
        other.plugin, other.name, other.spec, other.scalar = self.plugin, self.name, spec, self.scalar
        other.static, other.loose, other.incremental = self.static, self.loose, self.incremental
        other._reads_usage, other._reads_ports = self._reads_usage, self._reads_ports
        if self._reads_as_the_spec_says():
            other._take_traits()
        other._node_log, other._usage_log, other._ports_log = self._node_log, self._usage_log, self._ports_log
        other.params = other.values = None
        other.epoch = 0
        other.node_position = other.usage_position = other.ports_position = -1
        return other

    def _reads(self) -> Reads:
        return self.plugin.reads

    def _reads_as_the_spec_says(self) -> bool:
        return False

    def _is_final(self) -> bool:
        """Return whether what the rule says of a row is used as it is."""
        return True

    @property
    def follows_from_state(self) -> bool:
        """Return whether the rule says the same of rows that agree in what their nodes offer and in what pods take there."""
        return self.loose and self.params == () and _amounts_only(type(self.plugin).__mro__)

    def evaluate(self, rows: Rows) -> Any:
        """Return what the rule says of rows as they are now, and keep nothing."""
        raise TypeError("a part is a FilterPart or a ScorePart")

    def evaluate_all(self, state: ClusterState) -> None:
        """Evaluate every row."""
        count, capacity = state.nodes.count, state.nodes.capacity
        if self.values is None or len(self.values) != capacity:
            self.values = np.zeros(capacity, dtype=self.dtype)
        self.values[:count] = self.evaluate(Rows(state))
        self._note_positions()
        self.epoch += 1

    def adopt(self, params: Params | None) -> None:
        """Take over the params of this cycle. Where they are others, nothing that is kept holds any longer."""
        if params is None or params != self.params:
            self.params = params
            self.epoch += 1
            self.node_position = -1

    def all_values(self, state: ClusterState) -> Any:
        """Return the values of all rows as they are now: those that are kept if they are up to date, else fresh ones."""
        return self.values[: state.nodes.count] if self.is_up_to_date() else self.evaluate(Rows(state))

    def settle(self, state: ClusterState, row_view: Row) -> None:
        """Bring `values` up to date, params being what they are."""
        if self.values is None or len(self.values) != state.nodes.capacity:
            self.values = np.zeros(state.nodes.capacity, dtype=self.dtype)
            self.node_position = -1
        self._catch_up(state, row_view)

    def is_up_to_date(self) -> bool:
        """Return whether `values` are what a full pass would give now, params being what they are."""
        return (
            self.values is not None
            and self.node_position == self._node_log.end
            and (self.usage_position == self._usage_log.end or not self._reads_usage)
            and (self.ports_position == self._ports_log.end or not self._reads_ports)
        )

    def follow(self, changes: Changes, epoch: int, row_view: Row) -> bool:
        """Evaluate the rows that changed, where that is all there is to do; return False where it isn't.

        The way of nearly every decision. Params are not looked at: the caller knows that they are those of `epoch`.
        """
        if not self.is_behind_by(changes, epoch):
            return False
        if self.usage_position == changes.usage_end and self.ports_position == changes.ports_end:
            # Another plan that has this part came first.
            return True
        state = row_view.state
        values, evaluate = self.values, self.evaluate
        if not (changes.few and self.scalar):
            view = changes.view(state)
            values[view.index] = evaluate(view)
        elif state.small:
            for row in changes.rows:
                row_view.number = row
                values[row] = evaluate(row_view)
        else:
            return False
        self.usage_position, self.ports_position = changes.usage_end, changes.ports_end
        return True

    def is_behind_by(self, changes: Changes, epoch: int) -> bool:
        """Return whether nothing but these changes, or some of them, keeps the values of an epoch from being up to date."""
        return (
            epoch == self.epoch
            and self.incremental
            and self.node_position == changes.node_end
            and self.usage_position >= changes.usage_start
            and self.ports_position >= changes.ports_start
        )

    def bring_up_to_date(self, state: ClusterState, params: Params | None, row_view: Row) -> None:
        """Make `values` what a full pass would give now.

        Args:
            state: the cluster.
            params: of this cycle; others than those of the values mean a full pass.
            row_view: a view to reuse for single rows.
        """
        # Without params (the profile leaves out PreFilter or PreScore) nothing tells what a rule looks up by itself.
        stale = params is None or params != self.params
        stale = stale or self.values is None or len(self.values) != state.nodes.capacity
        if stale or not self.incremental:
            self.params = params
            self.evaluate_all(state)
            return
        self._catch_up(state, row_view)

    def _catch_up(self, state: ClusterState, row_view: Row) -> None:
        rows = self._missed_rows()
        values, evaluate = self.values, self.evaluate
        if rows is None:
            values[: state.nodes.count] = evaluate(Rows(state))
        elif len(rows) <= FEW_ROWS and self.scalar and state.small:
            for row in rows:
                row_view.number = row
                values[row] = evaluate(row_view)
        elif len(rows) <= FEW_ROWS or len(rows) * FULL_SHARE <= state.nodes.count:
            view = Rows(state, np.fromiter(rows, dtype=np.intp, count=len(rows)))
            values[view.index] = evaluate(view)
        else:
            values[: state.nodes.count] = evaluate(Rows(state))

    def _missed_rows(self) -> Collection[int] | None:
        """Return the rows that changed since this part last looked, each once, or None where the logs no longer tell."""
        missed: dict[int, None] = {}
        logs = [(self._node_log, self.node_position)]
        if self._reads_usage:
            logs.append((self._usage_log, self.usage_position))
        if self._reads_ports:
            logs.append((self._ports_log, self.ports_position))
        self._note_positions()
        for log, position in logs:
            rows = log.since(position)
            if rows is None:
                return None
            missed.update(dict.fromkeys(rows))
        return missed

    def _note_positions(self) -> None:
        self.node_position = self._node_log.end
        self.usage_position = self._usage_log.end
        self.ports_position = self._ports_log.end


class FilterPart(Part):
    """Verdicts: uint16, 0 passes."""

    __slots__ = ()

    dtype = np.uint16
    plugin: FilterPlugin[Any]
    values: Codes

    def evaluate(self, rows: Rows) -> Any:
        """Return uint16 verdicts."""
        return self.plugin.filter(self.spec, self.params, rows)


class ScorePart(Part):
    """Raw scores: int64. Rows that are not feasible hold numbers without meaning."""

    __slots__ = ()

    plugin: ScorePlugin[Any]
    values: Ints

    def _reads(self) -> Reads:
        return self.plugin.score_reads(self.spec)

    def _reads_as_the_spec_says(self) -> bool:
        return type(self.plugin).score_reads is not ScorePlugin.score_reads

    def _is_final(self) -> bool:
        return not isinstance(self.plugin, NormalizePlugin)

    def evaluate(self, rows: Rows) -> Any:
        """Return int64 raw scores."""
        return self.plugin.score(self.spec, self.params, rows)


@cache
def _amounts_only(classes: tuple[type, ...]) -> bool:
    """Return whether a plugin promises to look at amounts alone; a class that has code of its own must promise it itself.

    Whatever it is called: a rule may be made of many methods.
    """
    for each in classes:
        own = vars(each)
        if "amounts_only" in own:
            return bool(own["amounts_only"])
        if any(_is_code(name, member) for name, member in own.items()):
            return False
    return False


def _is_code(name: str, member: object) -> bool:
    """Return whether what a class has under a name may decide what a rule says: a method, a property, a function that is called."""
    if name in ("__dict__", "__weakref__") or name.startswith("__annotate"):
        # Python makes these for classes that say nothing.
        return False
    return callable(member) or hasattr(member, "__get__")


@cache
def _traits(reads: Reads) -> tuple[bool, bool, bool]:
    """Return whether a rule that reads so can be refreshed row by row, and whether it reads usage, and ports."""
    return not reads & Reads.OBJECTS, bool(reads & Reads.USAGE), bool(reads & Reads.PORTS)
