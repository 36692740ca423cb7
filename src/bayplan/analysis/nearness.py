"""Rank rejecting nodes by nearness: first the nodes that the pod may use, then by failing filters, then by missing room."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.analysis.decision_detail import chose_nominated_node_alone
from bayplan.analysis.filter_matrix import FIT, FilterMatrix, filter_matrix
from bayplan.analysis.free_amounts import free_amounts
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.shortage import shortage
from bayplan.analysis.units import format_amount
from bayplan.engine.decision import Decision
from bayplan.objects.requests import Amounts
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.resource_table import PODS

INSUFFICIENT = "Insufficient "
TOO_MANY_PODS = "Too many pods"
"""Reasons of NodeResourcesFit."""


class Nearness:
    """Measures how near each node of a decision is to accepting the pod.

    Args:
        source: the run.
        number: the number of the decision in the run.
        decision: the full record of the decision.
        pod: the pod that was tried.

    Attributes:
        matrix: the results of all filters.
        failing: int64[rows], the number of filters that reject the node; 0 if no filter ran on it.
        pinned: int64[rows], how many of these filters would reject the pod even if the node were empty: because of the
            node's properties, or because it lacks a kind of device that the pod requests.
        short: int64[rows], missing room, in thousandths of the pod's requests, summed over resources.
        unseen: bool[rows], nodes on which no filter ran because enough other nodes fit, or the nominated node did.
    """

    def __init__(self, source: RunSource, number: int, decision: Decision, pod: PodTimeline) -> None:
        self._decision = decision
        self._requests: Amounts = {} if pod.pod is None else source.requests_of(pod) | {PODS: 1}
        self.unseen: Bools = decision.allowed & ~decision.examined
        if decision.pre_filter is not None:
            self.unseen = np.zeros_like(decision.allowed)
        self.matrix: FilterMatrix = filter_matrix(decision)
        rejected: Bools = self.matrix.failing & self.matrix.known
        if decision.pre_filter is not None:
            # No filter ran, so no node is nearer than any other.
            rejected = np.zeros_like(rejected)
        self.failing: Ints = rejected.sum(axis=0, dtype=np.int64)
        self.pinned: Ints = np.where(self.failing > 0, self.matrix.pinned_failures, 0)
        self.short: Ints = np.zeros(len(decision.names), dtype=np.int64)
        self._free: Mapping[str, Amounts] = {}
        if FIT in decision.filters and pod.pod is not None and decision.pre_filter is None:
            rows = np.flatnonzero(rejected[decision.filters.index(FIT)]).tolist()
            self._measure(source, number, rows)

    def _measure(self, source: RunSource, number: int, rows: list[int]) -> None:
        names = self._decision.names
        devices = [resource for resource in self._requests if "/" in resource]
        free = self._free = free_amounts(source, number, [names[row] for row in rows])
        for row in rows:
            left = free.get(names[row])
            if left is None:
                continue
            self.short[row] = shortage(self._requests, left)
            node = source.nodes.get(names[row]) if devices else None
            if node is not None and not node.status.allocatable.keys() >= set(devices):
                self.pinned[row] += 1

    def order(self) -> Index:
        """Return all rows: feasible nodes by total, then all other nodes, the nearest first.

        The chosen node precedes feasible nodes with the same total. Equally near nodes are ordered by name. Nodes that
        were not evaluated come last.
        """
        decision = self._decision
        names = np.array(decision.names, dtype=object)
        by_name = np.argsort(names, kind="stable") if len(names) else np.zeros(0, dtype=np.intp)
        others = np.array([name != decision.record.node for name in decision.names], dtype=np.int64)
        # Stored records have no failing filter for nodes that PreFilter excluded; this does not make them near.
        unknown = ~decision.feasible & (self.failing == 0)
        keys = (
            self.short,
            self.failing,
            self.pinned,
            others,
            -decision.total,
            unknown,
            self.unseen,
            ~decision.feasible,
        )
        found: Index = by_name[np.lexsort([key[by_name] for key in keys])]
        return found

    def nearest(self) -> int | None:
        """Return the row of the node that is nearest to fitting the pod; None if no filter rejected a node."""
        rows = self.order()
        found = rows[~self._decision.feasible[rows] & (self.failing[rows] > 0)]
        return int(found[0]) if len(found) else None

    def gap(self, row: int) -> str:
        """Return what a node lacks (``lacks 0.8 cpu (requests 4, 3.2 free)``) or else why it was rejected; "" if feasible."""
        decision = self._decision
        if self.unseen[row]:
            if chose_nominated_node_alone(decision):
                return f"not examined: the pod was nominated to {decision.record.node}, which is tried first"
            return "not examined: enough other nodes fit"
        status = decision.first_failure(row)
        if status is None:
            return ""
        free = self._free.get(decision.names[row]) if status.plugin == FIT else None
        if free is None:
            return status.message or status.code.text
        return ", ".join(self._short_of(reason, free) for reason in status.reasons) or status.message

    def _short_of(self, reason: str, free: Amounts) -> str:
        """Return a reason of NodeResourcesFit with its amounts, or alone if the amounts contradict the record."""
        resource = PODS if reason == TOO_MANY_PODS else reason.removeprefix(INSUFFICIENT)
        wanted, left = self._requests.get(resource, 0), free.get(resource, 0)
        if wanted <= left or resource == PODS:
            return reason
        missing, requested, has = (format_amount(resource, amount) for amount in (wanted - left, wanted, max(left, 0)))
        return f"lacks {missing} {resource} (requests {requested}, {has} free)"
