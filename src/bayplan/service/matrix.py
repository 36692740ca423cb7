"""One decision as a matrix of nodes by plugins: the nodes that fit by their totals, then the others by how near they are.

The numbers are those of the decision record. Runs on a worker thread; 5,000 nodes by 20 plugins take some tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from bayplan.analysis.free_amounts import free_amounts
from bayplan.analysis.remedies import FIT, INSUFFICIENT, TOO_MANY_PODS
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.units import format_amount
from bayplan.engine.decision import Decision
from bayplan.framework.status import Status
from bayplan.objects.requests import Amounts
from bayplan.service.decision_summaries import margin_of
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.resource_table import PODS

MOST_ROWS = 10_000
NEAREST = 20
"""So many failed nodes are shown as the nearest ones."""

ONLY = ("all", "fit", "failed", "nearest")
SORTS = ("rank", "node", "total", "gap")

NOT_RUN = -1

Plain = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class MatrixQuery:
    """What is wanted of a matrix.

    Attributes:
        only: one of `ONLY`. text: what node names must hold. sort: one of `SORTS` or a plugin, and whether the largest come first.
        offset, limit: of the page. columns: one list a column, not one object a row.
        exhaustive: what each filter says by itself, also behind the first that failed.
    """

    only: str = "all"
    text: str = ""
    sort: tuple[str, bool] = ("rank", False)
    offset: int = 0
    limit: int = MOST_ROWS
    columns: bool = False
    exhaustive: bool = False


class Matrix:
    """A decision, laid out.

    Args:
        source: the run. number: of the decision in it. decision: its full record. pod: the pod that it was about.
    """

    def __init__(self, source: RunSource, number: int, decision: Decision, pod: PodTimeline) -> None:
        self.decision = decision
        self._source, self._number, self._pod = source, number, pod
        self._statuses: list[Status | None] = [None]
        self._index = self._verdicts()
        self._fails, self._first = self._failures()
        self._gap, self._free = self._gaps()

    # --- what there is ------------------------------------------------------------------------------------------------

    def _verdicts(self) -> Ints:
        """Return int64[filters, rows]: places in the list of statuses, 0 for a pass, `NOT_RUN` where a filter was not asked."""
        decision = self.decision
        index = np.zeros(decision.codes.shape, dtype=np.int64)
        if decision.pre_filter is not None:
            return np.full_like(index, NOT_RUN)
        places: dict[Status, int] = {}
        for (number, verdict), status in decision.statuses.items():
            status = status if status.plugin else status.by(decision.filters[number])
            place = places.get(status)
            if place is None:
                place = places[status] = len(self._statuses)
                self._statuses.append(status)
            rows = decision.codes[number] == verdict
            index[number, rows] = place
            for row, (filter_number, override) in decision.overrides.items():
                if (filter_number, override) == (number, verdict):
                    index[number, row] = place
        index[:, ~(decision.allowed & decision.examined)] = NOT_RUN
        for extender, said in enumerate(decision.extenders, start=len(decision.filters) - len(decision.extenders)):
            asked = np.zeros(len(decision.names), dtype=np.bool_)
            asked[list(said.asked)] = True
            index[extender, ~asked] = NOT_RUN
        return index

    def _failures(self) -> tuple[Bools, Ints]:
        """Return which nodes don't fit, and the number of the filter that failed first (-1: none that was asked)."""
        failing = self._index > 0
        any_failed = failing.any(axis=0) if len(failing) else np.zeros(len(self.decision.names), dtype=np.bool_)
        first = np.where(any_failed, failing.argmax(axis=0) if len(failing) else 0, -1).astype(np.int64)
        return ~self.decision.feasible, first

    def _gaps(self) -> tuple[Ints, Mapping[str, Amounts]]:
        """Return how far each failed node is from fitting (per mille of the request, summed up), and what was free there."""
        decision = self.decision
        short = np.zeros(len(decision.names), dtype=np.int64)
        if FIT not in decision.filters or self._pod.pod is None:
            return short, {}
        rows = np.flatnonzero(self._index[decision.filters.index(FIT)] > 0).tolist()
        free = free_amounts(self._source, self._number, [decision.names[row] for row in rows])
        requests = self._source.requests_of(self._pod) | {PODS: 1}
        for row in rows:
            left = free.get(decision.names[row])
            if left is None:
                continue
            for resource, wanted in requests.items():
                missing = wanted - left.get(resource, 0)
                if missing > 0 and wanted > 0:
                    short[row] += min(missing * 1000 // wanted, 1_000_000)
        return short, free

    # --- order --------------------------------------------------------------------------------------------------------

    def _ranked(self) -> Index:
        """Return all rows: fitting ones by total, chosen first among equals, then failed ones by how near they are."""
        decision = self.decision
        names = np.array(decision.names, dtype=object)
        by_name = np.argsort(names, kind="stable") if len(names) else np.zeros(0, dtype=np.intp)
        failing = (self._index > 0).sum(axis=0)
        chosen = np.array([name != decision.record.node for name in decision.names], dtype=np.int64)
        # Nodes that no filter looked at come last: nothing is known of how near they are.
        unknown = (self._fails & (failing == 0)).astype(np.int64)
        keys = (self._gap, failing, chosen, -decision.total, unknown, self._fails.astype(np.int64))
        order = np.lexsort([key[by_name] for key in keys])
        found: Index = by_name[order]
        return found

    def _rows(self, query: MatrixQuery) -> Index:
        rows = self._ranked()
        if query.only == "fit":
            rows = rows[~self._fails[rows]]
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
            shown: Ints = np.where(self._fails, np.iinfo(np.int64).min + 1, weighted)
            return shown
        if name in decision.filters:
            verdicts: Ints = self._index[decision.filters.index(name)]
            return verdicts
        return self._gap if name == "gap" else decision.total

    # --- what is told -------------------------------------------------------------------------------------------------

    def document(self, query: MatrixQuery) -> Plain:
        """Return the matrix, or a page of it, as plain data."""
        decision = self.decision
        rows = self._rows(query)
        page = rows[query.offset : query.offset + query.limit]
        margin = margin_of(decision)
        fit = int((~self._fails).sum())
        index = self._index
        if not query.exhaustive and not decision.check_all:
            # Upstream asks no further filter about a node that one has rejected.
            behind = (index > 0).cumsum(axis=0) - (index > 0) > 0
            index = np.where(behind, NOT_RUN, index)
        return {
            "number": self._number,
            "kept": True,
            "record_level": "full",
            "nodes": len(decision.names),
            "counts": {"fit": fit, "failed": len(decision.names) - fit},
            "winner": decision.record.node,
            "runner_up": margin.runner_up,
            "margin": margin.points,
            "tie_set": sorted(decision.ties),
            "filters": list(decision.filters),
            "scorers": self._scorers(),
            "statuses": [_status(number, each) for number, each in enumerate(self._statuses)],
            "total": len(rows),
            "total_is_exact": True,
            "offset": query.offset,
            "limit": query.limit,
            "rows": self._columns(page, index) if query.columns else self._items(page, index),
        }

    def _scorers(self) -> list[Plain]:
        decision = self.decision
        fitting = decision.total >= 0
        found: list[Plain] = []
        for number, (name, weight) in enumerate(zip(decision.scorers, decision.weights, strict=True)):
            raw = decision.raw[number, fitting]
            scale = [int(raw.min()), int(raw.max())] if len(raw) else None
            found.append({"name": name, "weight": weight, "scale": scale})
        return found

    def _columns(self, page: Index, index: Ints) -> Plain:
        decision = self.decision
        fails = self._fails[page].tolist()
        ties = frozenset(decision.ties)
        verdicts = index[:, page].T
        scored = decision.total[page] >= 0
        found: Plain = {
            "node": [decision.names[row] for row in page.tolist()],
            "total": _nullable(decision.total[page], ~scored),
            "tie": [decision.names[row] in ties for row in page.tolist()],
            "plugin": [self._plugin(row) if fail else "" for row, fail in zip(page.tolist(), fails, strict=True)],
            "gap": [self._gap_text(row) if fail else "" for row, fail in zip(page.tolist(), fails, strict=True)],
            "filters": _nullable(verdicts, verdicts == NOT_RUN),
        }
        values = {"raw": decision.raw, "normalized": decision.normalized, "weighted": decision.weighted}
        for name, scores in values.items():
            found[name] = _nullable(scores[:, page].T, ~scored)
        return found

    def _items(self, page: Index, index: Ints) -> list[Plain]:
        columns = self._columns(page, index)
        names = list(columns)
        values = [column for column in columns.values() if isinstance(column, list)]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    def _plugin(self, row: int) -> str:
        status = self.decision.first_failure(row)
        return status.plugin if status is not None else ""

    def _gap_text(self, row: int) -> str:
        """Return what is missing on a node, or why it was rejected."""
        decision = self.decision
        status = decision.first_failure(row)
        if status is None:
            examined = bool(decision.examined[row]) or not decision.allowed[row]
            return "" if examined else "not looked at: enough other nodes fit"
        free = self._free.get(decision.names[row]) if status.plugin == FIT else None
        if free is None:
            return status.message or status.code.text
        requests = self._source.requests_of(self._pod) | {PODS: 1}
        told = [_short(reason, requests, free) for reason in status.reasons]
        return ", ".join(told) or status.message


def _nullable(values: Ints, hidden: Bools) -> list[object]:
    """Return numbers as lists, with None for those that are hidden (a whole row of two dimensions, or single ones)."""
    if not hidden.any():
        return cast("list[object]", values.tolist())
    told = values.astype(object)
    told[hidden] = None
    return cast("list[object]", told.tolist())


def _short(reason: str, requests: Amounts, free: Amounts) -> str:
    """Return a reason of NodeResourcesFit with its amounts, where they say the same as the record."""
    resource = PODS if reason == TOO_MANY_PODS else reason.removeprefix(INSUFFICIENT)
    wanted, left = requests.get(resource, 0), free.get(resource, 0)
    if wanted <= left:
        return reason
    if resource == PODS:
        return reason
    amounts = (format_amount(resource, amount) for amount in (wanted - left, wanted, left))
    return "short of {} {resource} (asks {}, {} free)".format(*amounts, resource=resource)


def _status(number: int, status: Status | None) -> Plain:
    if status is None:
        return {"index": number, "code": "Success", "plugin": "", "reasons": []}
    return {"index": number, "code": status.code.text, "plugin": status.plugin, "reasons": list(status.reasons)}


def nothing_kept(number: int, level: str, why: str) -> Plain:
    """Return what is told of a decision whose full record is not there."""
    return {"number": number, "kept": False, "why": why, "record_level": level, "rows": [], "total": 0}


def skipped_plugins(decision: Decision, enabled: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the plugins of a profile that had nothing to say in a decision.

    Args:
        decision: the full record.
        enabled: names of the profile's plugins at ``filter`` and ``score``.
    """
    silent = [name for name in enabled.get("filter", ()) if name not in decision.filters]
    if decision.scorers:
        silent += [name for name in enabled.get("score", ()) if name not in decision.scorers and name not in silent]
    return silent
