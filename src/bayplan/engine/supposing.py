"""Run a plan's filters as if pods were on nodes, or were not: on supposed columns where that is enough, else in a trial.

Upstream filters a node with nominated pods twice, with these pods and without: a pod that needs them must not count on them,
and one that they would crowd out must not take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.engine.full_pass import filter_over
from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.part import FilterPart
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import FilterPlugin, Plugin, Reads
from bayplan.state.arrays import SMALL, Codes, Index, largest_amount
from bayplan.state.hypothetical import HypotheticalRow, HypotheticalRows
from bayplan.state.pod_info import PodInfo

FEW_SUPPOSED = 3
"""Up to here plain Python numbers beat arrays."""


def supposed_parts(plan: Plan) -> list[tuple[int, FilterPart]] | None:
    """Return the filter parts that usage can change, with their numbers; None where some rule needs a true trial.

    A rule can be asked about supposed usage if it looks at rows through its view alone (as scalar rules do), reads nothing but
    nodes and usage, and has params that don't count pods.
    """
    parts = []
    for number, part in enumerate(plan.filter_parts):
        counts_pods, can_suppose = _traits(part.plugin)
        if counts_pods:
            return None
        if not part.static:
            if not can_suppose:
                return None
            parts.append((number, part))
    return parts


def _traits(plugin: FilterPlugin[Any]) -> tuple[bool, bool]:
    """Return whether params of such a plugin may change with pods, and whether it can be asked about supposed usage."""
    kind = type(plugin)
    known = _TRAITS.get(kind)
    if known is None:
        counts_pods = kind.params_after_changes is not FilterPlugin.params_after_changes
        counts_pods |= kind.observe is not Plugin.observe
        known = _TRAITS[kind] = (counts_pods, kind.scalar and not kind.reads & (Reads.OBJECTS | Reads.PORTS))
    return known


_TRAITS: dict[type, tuple[bool, bool]] = {}
"""By class: what they say of a class never changes."""


def filter_supposing(
    plan: Plan, rows: HypotheticalRows, parts: Sequence[tuple[int, FilterPart]]
) -> tuple[Index, Codes]:
    """Return per row the number of the first filter that fails on supposed usage (-1: none), and its verdict (uint16).

    `parts` are those of `supposed_parts`; the others are as the plan has them.
    """
    index = rows.row_numbers()
    first = np.full(len(index), -1, dtype=np.intp)
    verdicts = np.zeros(len(index), dtype=np.uint16)
    if len(index) <= FEW_SUPPOSED and plan.state.small and largest_amount(rows.usage.ravel()) < SMALL:
        columns = rows.usage.T.tolist()
        view = HypotheticalRow(plan.state)
        for place, row in enumerate(index.tolist()):
            view.number, view.usage = row, columns[place]
            first[place], verdicts[place] = _filter_one_supposing(plan, view, parts)
        return first, verdicts
    if plan.all_pass_static(index):
        numbered = parts
    else:
        numbered = list(enumerate(plan.filter_parts))
    for number, part in numbered:
        if part.static:
            codes = part.values[index]
        else:
            codes = part.plugin.filter(part.spec, plan.filter_params(part), rows)
        fresh = (codes != 0) & (first < 0)
        first[fresh] = number
        verdicts[fresh] = codes[fresh]
    return first, verdicts


def _filter_one_supposing(
    plan: Plan, view: HypotheticalRow, parts: Sequence[tuple[int, FilterPart]]
) -> tuple[int, int]:
    row = view.number
    for number, part in parts if plan.static_feasible.item(row) else enumerate(plan.filter_parts):
        if part.static:
            verdict = part.values.item(row)
        else:
            verdict = int(part.plugin.filter(part.spec, plan.filter_params(part), view))
        if verdict:
            return number, verdict
    return -1, 0


def filter_with_nominated_pods(plan: Plan, crowd: Crowd, index: Index) -> tuple[Index, Codes]:
    """Filter rows that hold nominated pods as if these ran there; return the first failing filter (-1: none) and its verdict.

    The run without them is the plan's own. `index` must be rows of the crowd.
    """
    parts = supposed_parts(plan)
    state = plan.state
    if parts is not None:
        _, extra = crowd.extra_at(index)
        return filter_supposing(plan, HypotheticalRows(state, index, state.usage[:, index] + extra), parts)
    first = np.full(len(index), -1, dtype=np.intp)
    verdicts = np.zeros(len(index), dtype=np.uint16)
    for place, row in enumerate(index.tolist()):
        first[place], verdicts[place] = filter_row_with(plan, row, crowd.pods_at(row))
    return first, verdicts


def filter_row_with(plan: Plan, row: int, pods: Sequence[PodInfo]) -> tuple[int, int]:
    """Filter one row as if pods ran there, in a trial; return the first failing filter (-1: none) and its verdict."""
    state = plan.state
    with state.trial():
        for info in pods:
            if info.key not in state.pods:
                state.place(info, row)
        first, verdicts = filter_over(plan, np.array([row], dtype=np.intp), changed=True)
    return int(first[0]), int(verdicts[0])
