"""Extenders in a scheduling cycle: filtering the feasible nodes, scoring the remaining ones, binding.

Functions are in execution order; `bayplan.engine.cycle` calls those that filter and score,
`bayplan.engine.binding_cycle` the one that binds. None of them runs if no extender is configured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.engine.select_host import Ties
from bayplan.framework.extender import Extender
from bayplan.framework.extender_answers import ExtenderFailure, Filtered
from bayplan.framework.status import SUCCESS, Code, Status, error
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import wrap_int64
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_table import NodeTable


class ExtenderResult(msgspec.Struct):
    """The requests to one extender in one cycle, and its responses. Rows are row numbers of the cluster.

    Attributes:
        name: the URL prefix.
        weight: the weight of its scores.
        scale: the factor applied to its scores before the weight.
        asked: the rows sent to its filter verb, in order; empty if it was not called.
        refused: rows that it rejected, with the status (empty if it left a node out without a reason).
        unknown: names in its rejections that are not nodes of the cluster.
        scores: its scores by row, unscaled; None if it was not called, or failed.
        filter_error, prioritize_error: why the call failed, or "".
        ignored: whether the cycle continued despite a filter error.
    """

    name: str
    weight: int
    scale: int
    asked: tuple[int, ...] = ()
    refused: tuple[tuple[int, Status], ...] = ()
    unknown: tuple[tuple[str, Status], ...] = ()
    scores: tuple[tuple[int, int], ...] | None = None
    filter_error: str = ""
    prioritize_error: str = ""
    ignored: bool = False

    def moved(self, place: Mapping[int, int]) -> ExtenderResult:
        """Return a copy with new row numbers, without the rows that have none. `place` maps old numbers to new ones."""
        return replace(
            self,
            asked=tuple(place[row] for row in self.asked if row in place),
            refused=tuple((place[row], status) for row, status in self.refused if row in place),
            scores=self.scores and tuple((place[row], score) for row, score in self.scores if row in place),
        )


LEFT_OUT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The status of a node that an extender left out without a reason: upstream's for nodes without a known status."""


class ExtendedCycle:
    """The extenders' results in one cycle.

    Attributes:
        statuses: the statuses of rejected nodes, by node name.
        rejected_some: whether they returned a different number of nodes than they were called with.
        bare: whether an extender returned node objects instead of names; then scoring ignores the pods on nodes.
        left: the rows (intp) that remain, in the extenders' order.
        by_number: the result of each extender, to be changed by the functions below.
    """

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self.statuses: dict[str, Status] = {}
        self.rejected_some = False
        self.bare = False
        self.left: Index = np.zeros(0, dtype=np.intp)
        self.by_number = [ExtenderResult(extender.name, extender.weight, extender.scale) for extender in extenders]

    @property
    def results(self) -> tuple[ExtenderResult, ...]:
        """Return the result of each extender that was called, in order."""
        return tuple(
            result for result in self.by_number if result != ExtenderResult(result.name, result.weight, result.scale)
        )


def find_nodes_that_pass_extenders(
    extenders: Sequence[Extender], cycle: ExtendedCycle, pod: Pod, nodes: NodeTable, rows: Index
) -> Index | Status:
    """Call the extenders in order, each with the rows (intp) that the previous one left.

    Return the remaining rows, or an Error. If an ignorable extender fails, it counts as having rejected no node.
    """
    for number, extender in enumerate(extenders):
        if not len(rows):
            break
        if not extender.is_filter or not extender.is_interested(pod):
            continue
        result = cycle.by_number[number]
        result.asked = tuple(rows.tolist())
        try:
            found = extender.filter(pod, [node for row in result.asked if (node := nodes.nodes[row]) is not None])
            # Upstream would continue with a node that does not exist.
            extender.check_known(found.nodes, nodes.row_of)
        except ExtenderFailure as problem:
            result.filter_error, result.ignored = str(problem), extender.ignorable
            if extender.ignorable:
                continue
            return error(str(problem))
        result.filter_error = ""
        rows = _remaining_rows(found, cycle, result, nodes.row_of)
    return rows


def _remaining_rows(found: Filtered, cycle: ExtendedCycle, result: ExtenderResult, row_of: Mapping[str, int]) -> Index:
    """Record why an extender rejected nodes; return the remaining rows, in the extender's order."""
    statuses = {name: Status(Code.UNSCHEDULABLE, (text,), result.name) for name, text in found.failed.items()}
    for name, text in found.unresolvable.items():
        statuses[name] = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), result.name)
    cycle.statuses.update(statuses)
    cycle.bare |= found.bare
    left = [row_of[name] for name in found.nodes]
    rejected = set(result.asked).difference(left)
    names = {row_of[name]: name for name in statuses if name in row_of}
    result.refused = tuple(
        (row, statuses[names[row]] if row in names else LEFT_OUT.by(result.name))
        for row in result.asked
        if row in rejected
    )
    result.unknown = tuple((name, status) for name, status in statuses.items() if name not in row_of)
    return np.array(left, dtype=np.intp)


def add_extender_scores(
    extenders: Sequence[Extender], cycle: ExtendedCycle, pod: Pod, state: ClusterState, rows: Index, totals: Ints
) -> tuple[int, Ties]:
    """Call the extenders to score nodes; return the highest total including their scores, and the rows with it.

    An extender that fails gives no scores; the cycle continues.

    `rows` (intp) are the feasible rows, `totals` (int64) the plugins' score of each.
    """
    nodes = state.nodes
    places = {nodes.names[row] or "": place for place, row in enumerate(rows.tolist())}
    asked = [node for row in rows.tolist() if (node := nodes.nodes[row]) is not None]
    combined = totals.copy()
    for number, extender in enumerate(extenders):
        if not extender.is_prioritizer or not extender.is_interested(pod):
            continue
        result = cycle.by_number[number]
        try:
            answer = extender.prioritize(pod, asked)
        except ExtenderFailure as problem:
            result.prioritize_error = str(problem)
            continue
        known = [(places[name], score) for name, score in answer if name in places]
        index = np.array([place for place, _ in known], dtype=np.intp)
        scores: Ints = np.zeros(len(rows), dtype=np.int64)
        with np.errstate(over="ignore"):
            # A node that is listed twice gets both scores; sums wrap around, as in Go.
            np.add.at(scores, index, np.array([score for _, score in known], dtype=np.int64))
            combined += scores * wrap_int64(extender.weight * extender.scale)
        given = np.unique(index)
        result.scores = tuple(zip(rows[given].tolist(), scores[given].tolist(), strict=True))
    best = combined.max()
    return int(best), np.sort(rows[combined == best])


def bind_by_extenders(extenders: Sequence[Extender], pod: Pod, node_name: str) -> tuple[str, Status]:
    """Bind a pod through the first extender that binds such pods; return the extender's name and the status.

    The name is `""` if no extender binds such pods.
    """
    for extender in extenders:
        if not extender.is_binder or not extender.is_interested(pod):
            continue
        try:
            extender.bind(pod, node_name)
        except ExtenderFailure as problem:
            if extender.ignorable:
                continue
            return extender.name, error(str(problem))
        return extender.name, SUCCESS
    return "", SUCCESS
