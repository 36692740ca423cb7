"""Go through potential nodes until there are enough candidates: node by node in trials, or in lockstep by blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.engine.preemption.lockstep import NO_VICTIMS_AT_ALL, STILL_FITS, Outcome
from bayplan.engine.preemption.victims_on_node import NO_VICTIMS_STATUS, still_fits, told, victims_on_node
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist, joined, shortlist_of
from bayplan.framework.status import Status
from bayplan.state.arrays import Index
from bayplan.state.pod_info import PodInfo

SMALLEST_BLOCK = 64
"""A lockstep over fewer nodes costs nearly as much."""


def search_node_by_node(
    plan: Plan, rows: Index, priority: int, crowd: Crowd, budgets: DisruptionBudgets, wanted: int
) -> Shortlist:
    """Dry-run preemption on one node after the other, in trials: the reference, and the way for rules that look across nodes."""
    safe: list[tuple[int, Sequence[PodInfo], int]] = []
    violating: list[tuple[int, Sequence[PodInfo], int]] = []
    refusals: dict[Status, int] = {}
    for row in rows.tolist():
        found = victims_on_node(plan, row, priority, crowd.pods_at(row), budgets)
        if isinstance(found, Status):
            refusals[found] = refusals.get(found, 0) + 1
            continue
        victims, violations = found
        if not violations:
            safe.append((row, victims, violations))
        elif len(violating) < wanted:
            violating.append((row, victims, violations))
        if safe and len(safe) + len(violating) >= wanted:
            break
    return shortlist_of([*safe, *violating], tuple(refusals.items()))


def search_in_lockstep(plan: Plan, run: Callable[[Index], Outcome], rows: Index, wanted: int) -> Shortlist:
    """Dry-run preemption in blocks of nodes (`run`); what is found is what a search node by node finds."""
    found: list[Shortlist] = []
    outcomes: list[tuple[Outcome, Index]] = []
    safe = violating = start = 0
    while start < len(rows):
        missing = wanted - safe - violating
        block = rows[start : start + max(missing + missing // 4, SMALLEST_BLOCK)]
        start += len(block)
        outcome = run(block)
        outcomes.append((outcome, block))
        shortlist = outcome.shortlist
        if not len(shortlist):
            continue
        protected = shortlist.violations > 0
        are_safe = safe + np.cumsum(~protected)
        are_violating = np.minimum(violating + np.cumsum(protected), wanted)
        enough = np.flatnonzero((are_safe > 0) & (are_safe + are_violating >= wanted))
        if len(enough):
            found.append(shortlist.at_places(np.arange(int(enough[0]) + 1)))
            break
        found.append(shortlist)
        safe, violating = int(are_safe[-1]), int(are_violating[-1])
    if not found:
        return shortlist_of((), _refusals(plan, outcomes))
    whole = joined(found)
    protected = whole.violations > 0
    if not protected.any():
        return whole
    return whole.at_places(np.concatenate((np.flatnonzero(~protected), np.flatnonzero(protected)[:wanted])))


def _refusals(plan: Plan, outcomes: Sequence[tuple[Outcome, Index]]) -> Sequence[tuple[Status, int]]:
    """Return why rows are no candidates, with how many there are of each reason, in the order in which they were met."""
    refusals: dict[Status, int] = {}
    for outcome, block in outcomes:
        fits = outcome.first == STILL_FITS
        packed = (outcome.first.astype(np.int64) << 16 | outcome.verdicts)[~fits]
        _, places, counts = np.unique(packed, return_index=True, return_counts=True)
        for place, count in sorted(zip(places.tolist(), counts.tolist(), strict=True)):
            first, verdict = int(packed[place]) >> 16, int(packed[place]) & 0xFFFF
            status = NO_VICTIMS_STATUS if first == NO_VICTIMS_AT_ALL else told(plan, first, verdict)
            refusals[status] = refusals.get(status, 0) + count
        for row in block[outcome.refused[fits]].tolist():
            refusals[still_fits(plan, row)] = 1
    return tuple(refusals.items())
