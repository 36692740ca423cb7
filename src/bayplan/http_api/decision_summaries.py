"""Summaries of decisions for lists, with the margin over the runner-up, which has to be computed from the full record."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

import numpy as np

from bayplan.analysis.verdict import decision_text
from bayplan.base.go_text.times import format_instant
from bayplan.engine.decision import Decision, Outcome, Record
from bayplan.http_api.contract.decisions import DecisionSummary
from bayplan.http_api.query import Deadline
from bayplan.http_api.server_context import Decisions

MAX_MARGINS = 20_000
"""Maximum number of cached margins. To compute one, the full record is rebuilt from its changes."""


class Margin(NamedTuple):
    """The margin of the chosen node over the runner-up.

    Attributes:
        points: the total of the chosen node minus that of the best node outside the tie set; None if there is no such
            node.
        runner_up: the name of that node, or "".
    """

    points: int | None = None
    runner_up: str = ""


UNKNOWN = Margin()


def margin_of(decision: Decision) -> Margin:
    """Return the margin of a decision; `UNKNOWN` if there is no runner-up."""
    total = decision.total
    if not len(total) or not decision.record.node or not decision.ties:
        return UNKNOWN
    best = int(total.max())
    tied = frozenset(decision.ties)
    outside = np.flatnonzero((total >= 0) & (total < best))
    if not len(outside) or best < 0:
        return UNKNOWN
    if decision.record.node not in tied:
        # Another scheduler decided, with weights that its annotations don't show.
        return UNKNOWN
    second = int(total[outside].max())
    names = [decision.names[row] for row in np.flatnonzero(total == second).tolist()]
    others = sorted(name for name in names if name not in tied)
    return Margin(best - second, others[0]) if others else UNKNOWN


class DecisionSummaries:
    """Creates summaries of decisions. For any thread.

    Args:
        decisions: the records.
    """

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._margins: OrderedDict[int, Margin] = OrderedDict()
        self._lock = Lock()

    def margin(self, number: int, record: Record, deadline: Deadline | None = None) -> Margin:
        """Return the margin of a decision; `UNKNOWN` without a full record, or if time ran out."""
        if record.outcome is not Outcome.SCHEDULED or record.frame < 0 or record.feasible_nodes < 2:
            return UNKNOWN
        with self._lock:
            known = self._margins.get(number)
        if known is not None:
            return known
        if deadline is not None and deadline.is_over:
            return UNKNOWN
        try:
            found = margin_of(self._decisions.decision(number))
        except LookupError:
            found = UNKNOWN
        with self._lock:
            self._margins[number] = found
            while len(self._margins) > MAX_MARGINS:
                self._margins.popitem(last=False)
        return found

    def summary(self, number: int, record: Record, deadline: Deadline | None = None) -> DecisionSummary:
        """Return the summary of a decision."""
        margin = self.margin(number, record, deadline)
        origin = self._decisions.origin(number)
        namespace, _, name = record.pod.partition("/")
        return DecisionSummary(
            number=number,
            at=format_instant(record.time_ns),
            namespace=namespace,
            name=name,
            attempt=record.attempt,
            outcome=record.outcome.name.lower(),
            node=record.node,
            feasible_nodes=record.feasible_nodes,
            evaluated_nodes=record.evaluated_nodes,
            ties=record.ties,
            total=record.total,
            margin=margin.points,
            runner_up=margin.runner_up,
            message=record.message,
            nominated_node=record.nominated_node,
            victims=list(record.victims),
            tier=None if origin is None else origin.tier,
            woken_by=None if origin is None else origin.woken_by,
            annotated=self._decisions.is_annotated(number),
            text=decision_text(record, margin.points),
        )

    def newest(self, count: int, deadline: Deadline | None = None) -> list[DecisionSummary]:
        """Return summaries of the newest decisions, the newest first."""
        end = len(self._decisions)
        return self.of(range(end - 1, max(end - count, self._decisions.oldest) - 1, -1), deadline)

    def of(self, numbers: Iterable[int], deadline: Deadline | None = None) -> list[DecisionSummary]:
        """Return summaries of decisions, except those that are no longer in memory."""
        found = []
        for number in numbers:
            try:
                record = self._decisions[number]
            except LookupError:
                continue
            found.append(self.summary(number, record, deadline))
        return found
