"""Go through potential nodes, one after the other, until there are enough candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.engine.preemption.victims_on_node import victims_on_node
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist, shortlist_of
from bayplan.framework.status import Status
from bayplan.state.arrays import Index
from bayplan.state.pod_info import PodInfo

def search_candidates(
    plan: Plan, rows: Index, priority: int, crowd: Crowd, budgets: DisruptionBudgets, wanted: int
) -> Shortlist:
    """Dry-run preemption on one node after the other, in this order, until `wanted` candidates are found."""
    safe: list[tuple[int, Sequence[PodInfo], int]] = []
    violating: list[tuple[int, Sequence[PodInfo], int]] = []
    refused: dict[Status, list[int]] = {}
    for row in rows.tolist():
        found = victims_on_node(plan, row, priority, crowd.pods_at(row), budgets)
        if isinstance(found, Status):
            refused.setdefault(found, []).append(row)
            continue
        victims, violations = found
        if not violations:
            safe.append((row, victims, violations))
        elif len(violating) < wanted:
            violating.append((row, victims, violations))
        if safe and len(safe) + len(violating) >= wanted:
            break
    refusals = tuple((status, len(refused_rows)) for status, refused_rows in refused.items())
    return shortlist_of(
        [*safe, *violating],
        refusals,
        lambda: [(status, np.array(refused_rows, dtype=np.intp)) for status, refused_rows in refused.items()],
    )
