"""Why a pod fits no node: the status of every node, and the text of upstream's event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from bayplan.framework.status import Code, Status, verdict_code
from bayplan.state.arrays import Bools, Ints

if TYPE_CHECKING:
    from bayplan.framework.preemption.account import PreemptionAccount
    from bayplan.framework.preemption.shortlist import Shortlist

NO_NODES_AVAILABLE = "no nodes available to schedule pods"


@dataclass
class Diagnosis:
    """The result of filtering when no node is feasible.

    Attributes:
        pre_filter_status: the rejection by PreFilter, or None if filters ran.
        examined: bool[rows], nodes on which filters ran.
        values: int64[rows], ``number << 16 | verdict`` of the first failing filter, where `number` is its index in
            `filters`; -1 if none failed.
        explain: the function that returns the status of an element of `values`.
        absent_status: the status of nodes that PreFilter excluded, or None.
        overrides: by row, statuses that are not packed verdicts: those of extenders.
        counts: number of examined nodes per value, excluding -1.
        unknown: statuses that extenders gave to names that are not nodes; they count in the message.
        unschedulable_plugins: the plugins that rejected the pod; the events that they registered bring it back.
        post_filter_message: the message that PostFilter adds.
        preemption: the function that returns the account of preemption, or None if preemption did not run; call it
            before the cluster changes.
    """

    num_all_nodes: int
    pre_filter_status: Status | None
    examined: Bools
    values: Ints
    filters: tuple[str, ...]
    explain: Callable[[int], Status]
    counts: Mapping[int, int]
    absent_status: Status | None = None
    overrides: dict[int, Status] = field(default_factory=dict)
    unknown: tuple[Status, ...] = ()
    unschedulable_plugins: tuple[str, ...] = ()
    post_filter_message: str = ""
    preemption: Callable[[], PreemptionAccount] | None = None

    def status_of(self, row: int) -> Status | None:
        """Return the status of one node, or None if nothing rejected it."""
        if self.pre_filter_status is not None:
            return self.pre_filter_status
        if row in self.overrides:
            return self.overrides[row]
        if self.examined[row]:
            value = int(self.values[row])
            return self.explain(value) if value >= 0 else None
        return self.absent_status

    def rows_with(self, code: Code) -> Bools | None:
        """Return the nodes whose status has this code (bool[rows]; may include freed rows); None if all have it."""
        if self.pre_filter_status is not None:
            return np.full(len(self.examined), self.pre_filter_status.code is code, dtype=np.bool_)
        alike = [value for value in self.counts if verdict_code(value & 0xFFFF) is code]
        if len(alike) == len(self.counts):
            if sum(self.counts.values()) == self.num_all_nodes and not self.overrides:
                return None
            rows = self.values >= 0
        elif alike:
            rows = np.isin(self.values, alike)
        else:
            rows = np.zeros(len(self.examined), dtype=np.bool_)
        rows &= self.examined
        if self.absent_status is not None and self.absent_status.code is code:
            rows |= ~self.examined
        for row, status in self.overrides.items():
            rows[row] = status.code is code
        return rows

    def groups(self) -> Iterator[tuple[Status, int]]:
        """Yield the statuses of nodes, some repeatedly, with the number of nodes; excluding `absent_status`."""
        counts = self.counts
        if self.overrides:
            counts = dict(counts)
            for row in self.overrides:
                if self.examined[row] and self.values[row] >= 0:
                    counts[int(self.values[row])] -= 1
        for value, count in counts.items():
            if count:
                yield self.explain(value), count
        for status in (*self.overrides.values(), *self.unknown):
            yield status, 1

    def message(self) -> str:
        """Return the text of upstream's FitError, followed by PostFilter's message."""
        text = f"0/{self.num_all_nodes} nodes are available:"
        if self.pre_filter_status is not None:
            if self.pre_filter_status.message:
                text += f" {self.pre_filter_status.message}."
        else:
            others = self.absent_status.reasons if self.absent_status is not None else ()
            text += format_reasons(count_reasons(self.groups(), self.num_all_nodes, others))
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text


def count_reasons(groups: Iterable[tuple[Status, int]], total: int, others: Sequence[str]) -> dict[str, int]:
    """Return the number of nodes for each reason.

    Args:
        groups: statuses with their numbers of nodes.
        total: the number of all nodes.
        others: the reasons of nodes that are in no group.
    """
    counts: dict[str, int] = {}
    known = 0
    for status, count in groups:
        known += count
        for reason in status.reasons:
            counts[reason] = counts.get(reason, 0) + count
    if known < total:
        for reason in others:
            counts[reason] = counts.get(reason, 0) + total - known
    return counts


def format_reasons(histogram: Mapping[str, int]) -> str:
    """Return the reasons with their numbers of nodes, formatted like upstream's FitError after its first colon."""
    parts = sorted([f"{count} {reason}" for reason, count in histogram.items()])
    return f" {', '.join(parts)}." if parts else ""


class PostFilterResult(msgspec.Struct, frozen=True):
    """The result of PostFilter.

    Attributes:
        nominated_node_name: the node to nominate the pod to; "" clears its nomination, None leaves it unchanged.
        victims: keys of the pods to evict, most important first.
        shortlist: all candidates found; valid until the cluster changes.
        clears_nominations: whether pods of lower priority that are nominated to the same node lose their nomination.
    """

    nominated_node_name: str | None = None
    victims: tuple[str, ...] = ()
    shortlist: Shortlist | None = None
    clears_nominations: bool = False
