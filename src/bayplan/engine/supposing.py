"""Run a plan's filters as if pods were on nodes, or were not: on supposed columns where that is enough, else in a trial.

Upstream filters a node with nominated pods twice, with these pods and without: a pod that needs them must not count on them,
and one that they would crowd out must not take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bayplan.engine.full_pass import filter_over
from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.part import FilterPart
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import FilterPlugin, Plugin, Reads
from bayplan.state.arrays import SMALL, Codes, Index, largest_amount
from bayplan.state.cluster_state import ClusterState
from bayplan.state.hypothetical import HypotheticalRow, HypotheticalRows
from bayplan.state.pod_info import PodInfo
from bayplan.state.supposed_pods import SupposedPods

FEW_SUPPOSED = 3
"""Up to here plain Python numbers beat arrays."""


class SupposedParts(msgspec.Struct, frozen=True):
    """The filter parts of a plan that supposed pods can change the verdicts of, all of which can be asked about them.

    Attributes:
        parts: with their numbers.
        counts_pods: whether verdicts about a row may depend on pods of other rows, by counts.
        reads_ports: whether ports are looked at.
    """

    parts: Sequence[tuple[int, FilterPart]]
    counts_pods: bool
    reads_ports: bool

    @property
    def needs_pods(self) -> bool:
        """Return whether it takes more than usage to answer."""
        return self.counts_pods or self.reads_ports


def supposed_parts(plan: Plan) -> SupposedParts | None:
    """Return the filter parts that supposed pods can change; None where some rule needs a true trial.

    A rule can be asked about supposed pods if it looks at rows through its view alone (as scalar rules do) and reads nothing but
    nodes, usage and ports; one whose params count pods, if it says what they would be (`FilterPlugin.filter_supposing`).
    """
    filters = plan.filter_parts
    known = plan.supposable
    if known is None or known[0] is not filters:
        known = plan.supposable = (filters, _supposed_parts(filters))
    found = known[1]
    assert found is None or isinstance(found, SupposedParts)
    return found


def _supposed_parts(filters: Sequence[FilterPart]) -> SupposedParts | None:
    parts, counts_pods, reads_ports = list[tuple[int, FilterPart]](), False, False
    for number, part in enumerate(filters):
        traits = _traits(part.plugin)
        if traits.observes or (traits.counts_pods and not traits.can_suppose_counts):
            return None
        if not part.static:
            if not traits.can_suppose:
                return None
            parts.append((number, part))
            counts_pods |= traits.counts_pods
            reads_ports |= traits.reads_ports
    return SupposedParts(parts, counts_pods, reads_ports)


class _Traits(NamedTuple):
    """What a class of plugins says of itself.

    Attributes:
        observes: its params may change with whatever it observes. counts_pods: they count pods.
        can_suppose: it looks at rows through its view. can_suppose_counts: also where its params count pods.
        reads_ports: it looks at ports, too.
    """

    observes: bool
    counts_pods: bool
    can_suppose: bool
    can_suppose_counts: bool
    reads_ports: bool


def _traits(plugin: FilterPlugin[Any]) -> _Traits:
    kind = type(plugin)
    known = _TRAITS.get(kind)
    if known is None:
        known = _TRAITS[kind] = _Traits(
            kind.observe is not Plugin.observe,
            kind.params_after_changes is not FilterPlugin.params_after_changes,
            kind.scalar and not kind.reads & Reads.OBJECTS,
            kind.filter_supposing is not FilterPlugin.filter_supposing,
            bool(kind.reads & Reads.PORTS),
        )
    return known


_TRAITS: dict[type, _Traits] = {}
"""By class: what they say of a class never changes."""


def filter_supposing(plan: Plan, rows: HypotheticalRows, supposed: SupposedParts) -> tuple[Index, Codes]:
    """Return per row the number of the first filter that fails on supposed rows (-1: none), and its verdict (uint16).

    `supposed` is that of the plan; other filters are as the plan has them.
    """
    index = rows.row_numbers()
    first = np.full(len(index), -1, dtype=np.intp)
    verdicts = np.zeros(len(index), dtype=np.uint16)
    few = len(index) <= FEW_SUPPOSED and not supposed.needs_pods
    if few and plan.state.small and largest_amount(rows.usage.ravel()) < SMALL:
        columns = rows.usage.T.tolist()
        view = HypotheticalRow(plan.state)
        for place, row in enumerate(index.tolist()):
            view.number, view.usage = row, columns[place]
            first[place], verdicts[place] = filter_one_supposing(plan, view, supposed.parts)
        return first, verdicts
    if plan.all_pass_static(index):
        numbered = supposed.parts
    else:
        numbered = list(enumerate(plan.filter_parts))
    for number, part in numbered:
        codes = part.values[index] if part.static else verdicts_supposing(plan, part, rows)
        fresh = (codes != 0) & (first < 0)
        first[fresh] = number
        verdicts[fresh] = codes[fresh]
    return first, verdicts


def verdicts_supposing(plan: Plan, part: FilterPart, rows: HypotheticalRows) -> Codes:
    """Return the verdicts of one filter on supposed rows (uint16)."""
    return part.plugin.filter_supposing(part.spec, plan.filter_params(part), rows)


def filter_one_supposing(plan: Plan, view: HypotheticalRow, parts: Sequence[tuple[int, FilterPart]]) -> tuple[int, int]:
    """Return the same for one row of small amounts; `parts` are those of `supposed_parts`, which must need no pods."""
    row = view.number
    for number, part in parts if plan.static_feasible.item(row) else enumerate(plan.filter_parts):
        if part.static:
            verdict = part.values.item(row)
        else:
            verdict = int(part.plugin.filter(part.spec, plan.filter_params(part), view))
        if verdict:
            return number, verdict
    return -1, 0


def filter_row_supposing(plan: Plan, row: int, crowd: Crowd) -> tuple[int, int]:
    """Filter one row as if the pods ran there that are nominated to it; return the first failing filter (-1: none) and its verdict.

    Where no such pods count on the row, it fails nothing that the plan does not say anyhow: (-1, 0).
    """
    extra = crowd.extra_on(row)
    if extra is None:
        return -1, 0
    supposed, state = supposed_parts(plan), plan.state
    if supposed is not None and not supposed.needs_pods and state.small:
        usage = [amount + more for amount, more in zip(state.usage[:, row].tolist(), extra, strict=True)]
        if max(usage) < SMALL:
            view = HypotheticalRow(state)
            view.number, view.usage = row, usage
            return filter_one_supposing(plan, view, supposed.parts)
    first, verdicts = filter_with_nominated_pods(plan, crowd, np.array([row], dtype=np.intp))
    return int(first[0]), int(verdicts[0])


def filter_with_nominated_pods(plan: Plan, crowd: Crowd, index: Index) -> tuple[Index, Codes]:
    """Filter rows that hold nominated pods as if these ran there; return the first failing filter (-1: none) and its verdict.

    The run without them is the plan's own. `index` must be rows of the crowd.
    """
    supposed = supposed_parts(plan)
    state = plan.state
    if supposed is not None:
        _, extra = crowd.extra_at(index)
        pods = SupposedPods(state, index, nominated_pods_at(crowd, index, state)) if supposed.needs_pods else None
        return filter_supposing(plan, HypotheticalRows(state, index, state.usage[:, index] + extra, pods), supposed)
    first = np.full(len(index), -1, dtype=np.intp)
    verdicts = np.zeros(len(index), dtype=np.uint16)
    for place, row in enumerate(index.tolist()):
        first[place], verdicts[place] = filter_row_with(plan, row, crowd.pods_at(row))
    return first, verdicts


def nominated_pods_at(crowd: Crowd, index: Index, state: ClusterState) -> list[list[PodInfo]]:
    """Return per row (intp) the nominated pods that are not on a node already."""
    return [[info for info in crowd.pods_at(row) if info.key not in state.pods] for row in index.tolist()]


def filter_row_with(plan: Plan, row: int, pods: Sequence[PodInfo]) -> tuple[int, int]:
    """Filter one row as if pods ran there, in a trial; return the first failing filter (-1: none) and its verdict."""
    state = plan.state
    with state.trial():
        for info in pods:
            if info.key not in state.pods:
                state.place(info, row)
        first, verdicts = filter_over(plan, np.array([row], dtype=np.intp), changed=True)
    return int(first[0]), int(verdicts[0])
