"""One decision: as a summary (`Record`), a reference to its full record (`Frame`), and arrays (`Decision`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from bayplan.base.html_table import table
from bayplan.engine.extenders import ExtenderResult
from bayplan.engine.preparation import PreFilterRecord
from bayplan.engine.select_host import mask_of, visited_rows
from bayplan.framework.plugin import Params
from bayplan.framework.preemption.account import PreemptionAccount
from bayplan.framework.status import UNRESOLVABLE_BIT, Code, Status
from bayplan.state.arrays import Bools, Codes, Index, Ints


class Outcome(IntEnum):
    """The outcome of a cycle."""

    SCHEDULED = 0
    UNSCHEDULABLE = 1
    ERROR = 2
    SKIPPED = 3


class Record(Struct, frozen=True, gc=False):
    """The summary of one cycle.

    Attributes:
        pod: ``namespace/name``.
        attempt: the 1-based attempt number of this pod.
        node: the chosen node, or "".
        feasible_nodes, evaluated_nodes: number of nodes that fit the pod, and number of nodes evaluated.
        ties: size of the tie set.
        total: its total score; 0 if no scoring was needed.
        message: why the pod has no node; "" if it has one.
        nominated_node: the node on which preemption made room, or "".
        victims: keys of the preempted pods.
        frame: the number of the full record in `Records`; -1 without a full record.
    """

    time_ns: int
    pod: str
    attempt: int
    outcome: Outcome
    node: str
    feasible_nodes: int = 0
    evaluated_nodes: int = 0
    ties: int = 0
    total: int = 0
    message: str = ""
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    frame: int = -1


class KeyframeValues(Protocol):
    """The part of `Keyframe` that `rebuild` uses; keyframes read from a result directory provide it, too."""

    names: tuple[str | None, ...]
    order: Index
    examined: Bools | None
    absent: Status | None
    floor: int

    @property
    def filter_names(self) -> tuple[str, ...]:
        """Return the names of the filters, in order."""

    @property
    def scorer_weights(self) -> tuple[tuple[str, int], ...]:
        """Return the name and weight of each scorer, in order."""

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of filter `number`."""

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the normalised scores of scorer `number`, given their scale and the raw scores."""

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return uint16[filters, rows] and int64[scorers, rows]: verdicts and raw scores after `changes` changes."""


class Frame(NamedTuple):
    """A reference to a full record, and the data specific to the cycle.

    Attributes:
        keyframe, changes: the keyframe, and how many of its changes happened up to this cycle.
        scored: whether nodes were scored.
        scales: the scale by which each scorer's scores were normalised.
        overrides: (row, filter, verdict) of rows that are infeasible because of the pods nominated to them.
        ties: rows of the tie set; None if it follows from the totals.
        only: the only row evaluated, because the pod was nominated to it; -1 if other rows were evaluated.
        sample: the start of the search in visiting order, and the number of nodes that it visited, if it ended early;
            else None.
        extenders: the extenders' results; None if there are no extenders or the cycle did not reach them.
        pre_filter, preemption, check_all, pre_filters, pre_scores: as in `Decision`.
    """

    keyframe: KeyframeValues
    changes: int
    scored: bool
    scales: tuple[Params | None, ...]
    overrides: tuple[tuple[int, int, int], ...]
    ties: tuple[int, ...] | None
    pre_filter: Status | None
    only: int = -1
    sample: tuple[int, int] | None = None
    extenders: tuple[ExtenderResult, ...] | None = None
    preemption: PreemptionAccount | None = None
    check_all: bool = False
    pre_filters: tuple[PreFilterRecord, ...] = ()
    pre_scores: tuple[tuple[str, Code], ...] = ()


@dataclass(frozen=True)
class Decision:
    """One cycle as arrays; row i is the node `names[i]`.

    Attributes:
        filters: names of the filter plugins, then of extenders (see `extenders`).
        scorers, weights: names of the score plugins, then of extenders, and their weights.
        codes: uint16[filters, rows], packed verdicts; 0 if the node passes.
        allowed: bool[rows], nodes that PreFilter did not exclude.
        examined: bool[rows], nodes on which filters ran; a search skips the rest once it has found enough feasible
            nodes.
        raw, normalized: int64[scorers, rows], scores before and after NormalizeScore; undefined if not `feasible`.
        feasible: bool[rows], nodes that fit the pod.
        total: int64[rows], -1 if not feasible.
        ties: names of the tie set, in row order.
        pre_filter: the rejection by PreFilter, or None.
        absent: the status of nodes that PreFilter excluded, or None.
        statuses: by (filter, verdict).
        overrides: rows that are infeasible because of the pods nominated to them, each with its (filter, verdict).
        extenders: the result of each extender. Extenders are the last of `filters`, and those that scored the last of
            `scorers`. The codes are 0 for nodes that were not sent to the extender; rows are those of `names`.
        preemption: the result of preemption, if it ran.
        check_all: whether all filters ran on a node even if one rejected it (alwaysCheckAllPredicates in a Policy).
        pre_filters, pre_scores: the result of each PreFilter plugin that ran, and SKIP or SUCCESS for each PreScore
            plugin; empty if unknown.
    """

    record: Record
    names: tuple[str, ...]
    filters: tuple[str, ...]
    scorers: tuple[str, ...]
    weights: tuple[int, ...]
    allowed: Bools
    examined: Bools
    codes: Codes
    raw: Ints
    normalized: Ints
    feasible: Bools
    total: Ints
    ties: tuple[str, ...]
    pre_filter: Status | None
    absent: Status | None
    statuses: dict[tuple[int, int], Status]
    overrides: dict[int, tuple[int, int]]
    extenders: tuple[ExtenderResult, ...] = ()
    preemption: PreemptionAccount | None = None
    check_all: bool = False
    pre_filters: tuple[PreFilterRecord, ...] = ()
    pre_scores: tuple[tuple[str, Code], ...] = ()

    def _repr_html_(self) -> str:
        """Return a table with a row per node: its rejection, or its weighted score per plugin."""
        record = self.record
        outcome = f"{record.pod} → {record.node}" if record.node else f"{record.pod} is pending: {record.message}"
        weighted, rows = self.weighted, []
        # Nodes with the highest totals come first, rejected ones last.
        order = sorted(range(len(self.names)), key=lambda row: (-int(self.total[row]), row))
        for row in order:
            status = self.first_failure(row)
            name = self.names[row]
            if self.feasible[row]:
                scores = [f"{int(weighted[number, row]):,}" for number in range(len(self.scorers))]
                mark = "chosen" if name == record.node else "tied" if name in self.ties else ""
                rows.append((name, mark, f"{int(self.total[row]):,}", *scores))
            else:
                reason = f"{status.plugin}: {status.message}" if status is not None else "not examined"
                rows.append((name, reason.removeprefix(": "), "", *("" for _ in self.scorers)))
        return table(("node", "", "total", *self.scorers), rows, caption=outcome)

    def ran_on(self, number: int, row: int) -> bool:
        """Return whether filter `number` ran on a node: plugins run on all nodes, extenders on those that remain."""
        first = len(self.filters) - len(self.extenders)
        return number < first or row in self.extenders[number - first].asked

    @property
    def weighted(self) -> Ints:
        """Return int64[scorers, rows]: normalised scores times weights."""
        return self.normalized * np.array(self.weights, dtype=np.int64).reshape(-1, 1)

    def first_failure(self, row: int) -> Status | None:
        """Return the status that rejected a node: of PreFilter, or of its first failing filter; None if feasible."""
        if self.pre_filter is not None:
            return self.pre_filter
        if not self.examined[row] and self.allowed[row]:
            return None
        if row in self.overrides:
            return self.statuses[self.overrides[row]]
        if not self.allowed[row]:
            return self.absent
        failing = self.codes[:, row].nonzero()[0]
        return self.statuses[int(failing[0]), int(self.codes[failing[0], row])] if len(failing) else None

    def rejecting_plugin(self, row: int) -> str:
        """Return the first plugin that rejected a node; "" if none did."""
        status = self.first_failure(row)
        if status is None or status.plugin:
            return "" if status is None else status.plugin
        # If several plugins narrowed the nodes together, the status names none: find the first that excluded this node.
        name = self.names[row]
        narrowed = ((each.plugin, each.node_names) for each in self.pre_filters if each.node_names is not None)
        return next((plugin for plugin, names in narrowed if name not in names), "")

    def failures(self, row: int) -> tuple[Status, ...]:
        """Return the statuses that rejected a node: of the first failing filter or, with `check_all` and if known, of each."""
        first = self.first_failure(row)
        if first is None:
            return ()
        if not self.check_all or self.pre_filter is not None or row in self.overrides or not self.allowed[row]:
            return (first,)
        failing: list[int] = self.codes[:, row].nonzero()[0].tolist()
        return tuple(self.statuses[number, int(self.codes[number, row])] for number in failing)


def rebuild(record: Record, frame: Frame) -> Decision:
    """Rebuild a decision from its keyframe and the changes up to it."""
    keyframe, extenders = frame.keyframe, frame.extenders or ()
    codes, raw = keyframe.values_until(frame.changes)
    overrides = {row: (number, verdict) for row, number, verdict in frame.overrides}
    names, rows_with_nodes, place = _rows_with_nodes(keyframe.names)
    allowed = keyframe.examined
    if allowed is None:
        allowed = np.zeros(len(keyframe.names), dtype=np.bool_)
        allowed[rows_with_nodes] = True
    examined = allowed
    if frame.only >= 0:
        examined = np.arange(len(allowed)) == frame.only
    elif frame.sample is not None:
        order = keyframe.order[allowed[keyframe.order]]
        examined = mask_of(visited_rows(order, *frame.sample), len(allowed))
    statuses = _statuses(keyframe, codes, overrides)
    codes = _with_extender_codes(codes, extenders, statuses)
    feasible = examined & ~codes.any(axis=0)
    feasible[list(overrides)] = False
    scorers = keyframe.scorer_weights if frame.scored else ()
    raw = raw[: len(scorers)]
    normalized = raw.copy()
    for number, scale in enumerate(frame.scales):
        normalized[number] = keyframe.normalize(number, scale, raw[number])
    for result in extenders:
        if result.scores is not None:
            scorers = (*scorers, (result.name, result.weight))
            scores = np.zeros(len(keyframe.names), dtype=np.int64)
            for row, score in result.scores:
                scores[row] = score
            raw, normalized = np.vstack((raw, scores)), np.vstack((normalized, scores * result.scale))
    weights = tuple(weight for _, weight in scorers)
    total = np.full(len(keyframe.names), -1, dtype=np.int64)
    if frame.scored:
        # If extenders ran, nodes have no points without scores.
        floor = keyframe.floor if frame.extenders is None else 0
        weighted = normalized * np.array(weights, dtype=np.int64).reshape(-1, 1)
        total[feasible] = floor + weighted.sum(axis=0)[feasible]
    ties: Sequence[int] = (
        frame.ties if frame.ties is not None else np.flatnonzero(total == total.max(initial=0)).tolist()
    )
    return Decision(
        record=record,
        names=names,
        filters=(*keyframe.filter_names, *(result.name for result in extenders)),
        scorers=tuple(name for name, _ in scorers),
        weights=weights,
        allowed=allowed[rows_with_nodes],
        examined=examined[rows_with_nodes],
        codes=codes[:, rows_with_nodes],
        raw=raw[:, rows_with_nodes],
        normalized=normalized[:, rows_with_nodes],
        feasible=feasible[rows_with_nodes],
        total=total[rows_with_nodes],
        ties=tuple(keyframe.names[row] or "" for row in ties),
        pre_filter=frame.pre_filter,
        absent=keyframe.absent,
        statuses=statuses,
        overrides={place[row]: verdict for row, verdict in overrides.items() if row in place},
        extenders=tuple(result.moved(place) for result in extenders),
        preemption=frame.preemption,
        check_all=frame.check_all,
        pre_filters=frame.pre_filters,
        pre_scores=frame.pre_scores,
    )


@lru_cache(maxsize=16)
def _rows_with_nodes(names: tuple[str | None, ...]) -> tuple[tuple[str, ...], Index | slice, Mapping[int, int]]:
    """Return the names of existing nodes, their rows, and the position of each row among them, by row."""
    rows_with_nodes = [row for row, name in enumerate(names) if name is not None]
    place = {row: number for number, row in enumerate(rows_with_nodes)}
    rows = slice(None) if len(rows_with_nodes) == len(names) else np.array(rows_with_nodes, dtype=np.intp)
    return tuple(names[row] or "" for row in rows_with_nodes), rows, place


def _with_extender_codes(
    codes: Codes, extenders: Sequence[ExtenderResult], statuses: dict[tuple[int, int], Status]
) -> Codes:
    """Return the codes with a row per extender, like another filter, and add the statuses of their verdicts."""
    for number, result in enumerate(extenders, start=len(codes)):
        verdicts = np.zeros(codes.shape[1], dtype=np.uint16)
        known: dict[Status, int] = {}
        for row, status in result.refused:
            verdict = known.setdefault(status, len(known) + 1)
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                verdict |= UNRESOLVABLE_BIT
            verdicts[row] = verdict
            statuses[number, verdict] = status
        codes = np.vstack((codes, verdicts))
    return codes


def _statuses(
    keyframe: KeyframeValues, codes: Codes, overrides: dict[int, tuple[int, int]]
) -> dict[tuple[int, int], Status]:
    found = {verdict: keyframe.explain(*verdict) for verdict in overrides.values()}
    for number in range(len(codes)):
        for verdict in np.unique(codes[number]).tolist():
            if verdict:
                found[number, verdict] = keyframe.explain(number, verdict)
    return found
