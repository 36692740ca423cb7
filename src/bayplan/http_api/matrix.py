"""One decision as a matrix of nodes by plugins: nodes that fit by total score, then the others by nearness.

The numbers come from the decision record. Runs on a worker thread; 5,000 nodes by 20 plugins take some tens of
milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from msgspec import UNSET, UnsetType

from bayplan.analysis.nearness import Nearness
from bayplan.analysis.run_source import RunSource
from bayplan.engine.decision import Decision
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.http_api.contract.matrix import (
    MatrixColumns,
    MatrixCounts,
    MatrixRow,
    MatrixScorer,
    MatrixStatus,
    NoMatrix,
)
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools, Index, Ints

MAX_ROWS = 10_000
NEAREST = 20
"""Number of failed nodes to return for ``only=nearest``."""

ONLY = ("all", "fit", "failed", "nearest")
SORTS = ("rank", "node", "total", "gap")

NOT_RUN = -1

LEFT_OUT = "PreFilter left it out"
"""The reason for a node that a PreFilter plugin excluded, if the plugin excluded all nodes and no filter ran."""


@dataclass(frozen=True, kw_only=True)
class MatrixQuery:
    """A query for a matrix.

    Attributes:
        only: one of `ONLY`.
        text: text that the names of the nodes must contain.
        sort: (key, descending); the key is one of `SORTS` or a plugin.
        offset, limit: the offset and limit of the page.
        columns: whether to return one list per column instead of one object per row.
        exhaustive: whether to show the results of filters after the first one that rejected the node.
    """

    only: str = "all"
    text: str = ""
    sort: tuple[str, bool] = ("rank", False)
    offset: int = 0
    limit: int = MAX_ROWS
    columns: bool = False
    exhaustive: bool = False


class MatrixPage(NamedTuple):
    """A page of a matrix.

    Attributes:
        pre_filters: the names of the PreFilter plugins that did not return Skip.
        total: the number of matching rows.
        rows: the rows of the page.
    """

    pre_filters: list[str]
    total: int
    rows: MatrixColumns | list[MatrixRow]


class MatrixLayout:
    """A decision as a matrix.

    Args:
        source: the run.
        number: the number of the decision in the run.
        decision: the full record of the decision.
        pod: the pod that was tried.
    """

    def __init__(self, source: RunSource, number: int, decision: Decision, pod: PodTimeline) -> None:
        self.decision = decision
        self._number = number
        self._nearness = Nearness(source, number, decision, pod)
        self._statuses: list[Status | None] = [None]
        self._places: dict[Status, int] = {}
        self._index = self._verdicts()
        self._fails = ~decision.feasible & ~self._nearness.unseen

    # --- contents -----------------------------------------------------------------------------------------------------

    def _verdicts(self) -> Ints:
        """Return int64[filters, rows]: indexes into the list of statuses; 0 for a pass, `NOT_RUN` if the filter did not run."""
        decision = self.decision
        index = np.zeros(decision.codes.shape, dtype=np.int64)
        if decision.pre_filter is not None:
            return np.full_like(index, NOT_RUN)
        for (number, verdict), status in decision.statuses.items():
            place = self._place(status if status.plugin else status.by(decision.filters[number]))
            rows = decision.codes[number] == verdict
            index[number, rows] = place
            for row, (filter_number, override) in decision.overrides.items():
                if (filter_number, override) == (number, verdict):
                    index[number, row] = place
        index[:, ~(decision.allowed & decision.examined)] = NOT_RUN
        for number, extender in enumerate(decision.extenders, start=len(decision.filters) - len(decision.extenders)):
            asked = np.zeros(len(decision.names), dtype=np.bool_)
            asked[list(extender.asked)] = True
            index[number, ~asked] = NOT_RUN
        return index

    def _place(self, status: Status) -> int:
        """Return the index of a status in the list of statuses. Append the status if it is new."""
        place = self._places.get(status)
        if place is None:
            place = self._places[status] = len(self._statuses)
            self._statuses.append(status)
        return place

    def _pre_filters(self) -> tuple[list[str], Ints]:
        """Return the PreFilter plugins that did not return Skip, and int64[plugins, rows]: indexes into the list of statuses."""
        decision = self.decision
        ran = [each for each in decision.pre_filters if each.code is not Code.SKIP]
        index = np.zeros((len(ran), len(decision.names)), dtype=np.int64)
        for number, each in enumerate(ran):
            if each.code is not Code.SUCCESS:
                index[number] = self._place(Status(each.code, (each.message,) if each.message else (), each.plugin))
            elif each.node_names is not None:
                place = self._place((decision.absent or unresolvable(LEFT_OUT)).by(each.plugin))
                index[number, [name not in each.node_names for name in decision.names]] = place
        return [each.plugin for each in ran], index

    # --- order --------------------------------------------------------------------------------------------------------

    def _rows(self, query: MatrixQuery) -> Index:
        rows = self._nearness.order()
        if query.only == "fit":
            rows = rows[self.decision.feasible[rows]]
        elif query.only in ("failed", "nearest"):
            rows = rows[self._fails[rows]]
        if query.only == "nearest":
            rows = rows[:NEAREST]
        if query.text:
            names, text = self.decision.names, query.text.lower()
            rows = rows[[text in names[row].lower() for row in rows.tolist()]]
        name, descending = query.sort
        if name == "rank":
            return rows[::-1] if descending else rows
        values = self._sort_values(name)[rows]
        found: Index = rows[np.argsort(-values if descending else values, kind="stable")]
        return found

    def _sort_values(self, name: str) -> Ints:
        decision = self.decision
        if name == "node":
            ranks = np.empty(len(decision.names), dtype=np.int64)
            ranks[np.argsort(np.array(decision.names, dtype=object), kind="stable")] = np.arange(len(ranks))
            return ranks
        if name in decision.scorers:
            weighted: Ints = decision.weighted[decision.scorers.index(name)]
            shown: Ints = np.where(decision.feasible, weighted, np.iinfo(np.int64).min + 1)
            return shown
        if name in decision.filters:
            verdicts: Ints = self._index[decision.filters.index(name)]
            return verdicts
        return self._nearness.short if name == "gap" else decision.total

    # --- output -------------------------------------------------------------------------------------------------------

    def page(self, query: MatrixQuery) -> MatrixPage:
        """Return the page of the matrix that a query selects."""
        decision = self.decision
        rows = self._rows(query)
        page = rows[query.offset : query.offset + query.limit]
        index = self._index
        if not query.exhaustive and not decision.check_all:
            # Upstream runs no further filters on a node that one has rejected.
            behind = (index > 0).cumsum(axis=0) - (index > 0) > 0
            index = np.where(behind, NOT_RUN, index)
        pre_filters, pre_index = self._pre_filters()
        columns = self._columns(page, index, pre_index)
        return MatrixPage(pre_filters, len(rows), columns if query.columns else rows_of(columns))

    def counts(self) -> MatrixCounts:
        """Return the number of nodes that fit, failed, or were not evaluated."""
        return MatrixCounts(
            fit=int(self.decision.feasible.sum()),
            failed=int(self._fails.sum()),
            not_evaluated=int(self._nearness.unseen.sum()),
        )

    def statuses(self) -> list[MatrixStatus]:
        """Return the statuses that the indexes in rows refer to. Call after `page`."""
        return [_status(number, each) for number, each in enumerate(self._statuses)]

    def scorers(self) -> list[MatrixScorer]:
        """Return the score plugins of the decision, with the range of their raw scores."""
        decision = self.decision
        fitting = decision.total >= 0
        found: list[MatrixScorer] = []
        for number, (name, weight) in enumerate(zip(decision.scorers, decision.weights, strict=True)):
            raw = decision.raw[number, fitting]
            scale = [int(raw.min()), int(raw.max())] if len(raw) else None
            found.append(MatrixScorer(name=name, weight=weight, scale=scale))
        return found

    def _columns(self, page: Index, index: Ints, pre_index: Ints) -> MatrixColumns:
        decision = self.decision
        ties = frozenset(decision.ties)
        verdicts = index[:, page].T
        scored = decision.total[page] >= 0
        return MatrixColumns(
            node=[decision.names[row] for row in page.tolist()],
            total=_nullable(decision.total[page], ~scored),
            tie=[decision.names[row] in ties for row in page.tolist()],
            plugin=[self.decision.rejecting_plugin(row) if self._fails[row] else "" for row in page.tolist()],
            gap=[self._gap(row) for row in page.tolist()],
            pre_filters=pre_index[:, page].T.tolist(),
            filters=_nullable_rows(verdicts, verdicts == NOT_RUN),
            raw=_nullable_rows(decision.raw[:, page].T, ~scored),
            normalized=_nullable_rows(decision.normalized[:, page].T, ~scored),
            weighted=_nullable_rows(decision.weighted[:, page].T, ~scored),
        )

    def _gap(self, row: int) -> str:
        return "" if self.decision.feasible[row] else self._nearness.gap(row)


def rows_of(columns: MatrixColumns) -> list[MatrixRow]:
    """Convert columns to one object per row."""
    names = MatrixRow.__struct_fields__
    values = (getattr(columns, name) for name in names)
    return [MatrixRow(**dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]


def _nullable(values: Ints, hidden: Bools) -> list[int | None]:
    """Convert an array of numbers to a list, with None for hidden numbers."""
    return cast("list[int | None]", _with_none(values, hidden))


def _nullable_rows(values: Ints, hidden: Bools) -> list[list[int | None]]:
    """Convert a two-dimensional array to lists, with None for hidden numbers. A one-dimensional `hidden` hides whole rows."""
    return cast("list[list[int | None]]", _with_none(values, hidden))


def _with_none(values: Ints, hidden: Bools) -> list[object]:
    if not hidden.any():
        return cast("list[object]", values.tolist())
    objects = values.astype(object)
    objects[hidden] = None
    return cast("list[object]", objects.tolist())


def _status(number: int, status: Status | None) -> MatrixStatus:
    if status is None:
        return MatrixStatus(index=number, code="Success", plugin="", reasons=[])
    return MatrixStatus(index=number, code=status.code.text, plugin=status.plugin, reasons=list(status.reasons))


def no_matrix(number: int, level: str, why: str, attempt: int | UnsetType = UNSET) -> NoMatrix:
    """Return the response about a decision without a full record."""
    return NoMatrix(number=number, why=why, record_level=level, rows=[], total=0, attempt=attempt)


def skipped_plugins(decision: Decision, enabled: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the plugins of a profile that did not run in a decision.

    Args:
        decision: the full record of the decision.
        enabled: the names of the profile's plugins at the points ``filter`` and ``score``.
    """
    silent = [name for name in enabled.get("filter", ()) if name not in decision.filters]
    if decision.scorers:
        silent += [name for name in enabled.get("score", ()) if name not in decision.scorers and name not in silent]
    return silent
