"""The reasons why no node is feasible, the message of the event, and the nodes where preemption could help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bayplan.engine.plan import Plan
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.state.arrays import Bools, Codes, Index


@dataclass
class FitError:
    """The result of filtering when no node is feasible.

    Attributes:
        plan: the pod's plan, whose predicates explain the verdicts.
        num_all_nodes: the number of nodes in the cluster.
        rows: intp, the rows of the rejected nodes.
        codes: uint16[predicates, rows], their verdicts: only of the first failing predicate, or of all.
        by_extenders: why extenders rejected nodes, by node name.
    """

    plan: Plan
    num_all_nodes: int
    rows: Index
    codes: Codes
    by_extenders: Mapping[str, str] = field(default_factory=dict)

    def reasons_of(self, place: int) -> list[str]:
        """Return the reasons of the node at an index of `rows`, in the order of the predicates."""
        return self._reasons(self.codes[:, place])

    def _reasons(self, verdicts: Codes) -> list[str]:
        reasons: list[str] = []
        for number in verdicts.nonzero()[0].tolist():
            reasons += self.plan.explain(number, int(verdicts[number])).reasons
        return reasons

    def _groups(self) -> Iterator[tuple[Codes, int]]:
        """Yield each distinct column of verdicts, with the number of nodes that have it."""
        if self.codes.shape[1]:
            columns, counts = np.unique(self.codes, axis=1, return_counts=True)
            for place, count in enumerate(counts.tolist()):
                yield columns[:, place], count

    def message(self) -> str:
        """Return the text of upstream's FitError: every reason with its number of nodes, sorted as text."""
        histogram: Counter[str] = Counter(self.by_extenders.values())
        for verdicts, count in self._groups():
            for reason in self._reasons(verdicts):
                histogram[reason] += count
        parts = sorted(f"{count} {reason}" for reason, count in histogram.items())
        return f"0/{self.num_all_nodes} nodes are available: {', '.join(parts)}."

    def rejecting(self) -> tuple[str, ...]:
        """Return the names of the predicates that rejected any node, in execution order."""
        return tuple(
            part.name for part, verdicts in zip(self.plan.filtered.results, self.codes, strict=True) if verdicts.any()
        )

    def nodes_where_preemption_might_help(self) -> Index:
        """Return the rows that no predicate rejected as unresolvable, including nodes that only extenders rejected."""
        state = self.plan.state
        helpless: Bools = np.zeros(state.nodes.capacity, dtype=np.bool_)
        if len(self.codes):
            helpless[self.rows] = (self.codes & UNRESOLVABLE_BIT).any(axis=0)
        order = state.nodes.tree.order(state.nodes.row_of)
        return order[~helpless[order]]
