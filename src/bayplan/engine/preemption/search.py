"""Go through potential nodes until there are enough candidates: node by node in trials, or in lockstep by blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

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


def search_in_lockstep(
    plan: Plan,
    run: Callable[[Index], Outcome],
    rows: Index,
    wanted: int,
    hopeful: Callable[[Index], Index] | None = None,
) -> Shortlist:
    """Dry-run preemption in blocks of nodes (`run`); what is found is what a search node by node finds.

    `hopeful` returns those rows of a block that may be candidates; others are passed by.
    """
    found: list[Shortlist] = []
    outcomes: list[tuple[Outcome, Index]] = []
    safe = violating = start = 0
    smallest = SMALLEST_BLOCK
    while start < len(rows):
        missing = wanted - safe - violating
        size = max(missing + missing // 4, smallest)
        block = rows[start : start + size]
        start += len(block)
        if hopeful is not None:
            block = hopeful(block)
            # Where there is little hope, larger steps find what there is.
            smallest = 2 * size if 2 * len(block) < size else smallest
            if not len(block):
                continue
        outcome = run(block)
        outcomes.append((outcome, block))
        shortlist = outcome.shortlist
        if not len(shortlist):
            continue
        protected = shortlist.violations > 0
        if not np.count_nonzero(protected):
            # As below, where no budget has to be looked at.
            needed = max(missing, 1)
            found.append(shortlist.first(needed))
            if len(shortlist) >= needed:
                break
            safe += len(shortlist)
            continue
        are_safe = safe + np.cumsum(~protected)
        are_violating = np.minimum(violating + np.cumsum(protected), wanted)
        enough = np.flatnonzero((are_safe > 0) & (are_safe + are_violating >= wanted))
        if len(enough):
            found.append(shortlist.at_places(np.arange(int(enough[0]) + 1)))
            break
        found.append(shortlist)
        safe, violating = int(are_safe[-1]), int(are_violating[-1])
    if not found:
        refused = _refused_rows(plan, outcomes)
        return shortlist_of((), [(status, len(rows)) for status, rows in refused], lambda: refused)
    whole = joined(found)
    protected = whole.violations > 0
    if np.count_nonzero(protected):
        whole = whole.at_places(np.concatenate((np.flatnonzero(~protected), np.flatnonzero(protected)[:wanted])))
    return replace(whole, refused_rows=lambda: _refused_rows(plan, outcomes))


def _refused_rows(plan: Plan, outcomes: Sequence[tuple[Outcome, Index]]) -> Sequence[tuple[Status, Index]]:
    """Return why rows are no candidates, with the rows (intp) of each reason, in the order in which they were met."""
    refused: dict[Status, list[Index]] = {}
    for outcome, block in outcomes:
        fits = outcome.first == STILL_FITS
        packed, rows = outcome.first.astype(np.int64) << 16 | outcome.verdicts, block[outcome.refused]
        values, places = np.unique(packed[~fits], return_index=True)
        for _, value in sorted(zip(places.tolist(), values.tolist(), strict=True)):
            first, verdict = value >> 16, value & 0xFFFF
            status = NO_VICTIMS_STATUS if first == NO_VICTIMS_AT_ALL else told(plan, first, verdict)
            refused.setdefault(status, []).append(rows[packed == value])
        for row in rows[fits].tolist():
            refused[still_fits(plan, row)] = [np.array([row], dtype=np.intp)]
    return [(status, np.concatenate(parts)) for status, parts in refused.items()]
