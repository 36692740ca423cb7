"""The part of a cycle that asks extenders: which of the feasible nodes they leave, and what these are worth to them.

The functions stand in the order of execution; `bayplan.engine.cycle` calls them. Nothing here runs where no extender is configured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bayplan.engine.extender_record import ExtenderSaid
from bayplan.engine.select_host import Ties
from bayplan.framework.extender import Extender, ExtenderFailure, Filtered, unknown_node
from bayplan.framework.status import SUCCESS, Code, Status, error
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import wrap_int64
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_table import NodeTable

LEFT_OUT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The status of a node that an extender left out without a word: upstream's for nodes of which it knows none."""


class ExtendedCycle:
    """What the extenders said in one cycle.

    Attributes:
        statuses: of nodes that they rejected, by name.
        refused_some: whether they left another number of nodes than they were asked about.
        bare: whether one of them answered with nodes instead of names, so that scores know of no pods on them.
        left: the rows (intp) that they left, in their order.
    """

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self.statuses: dict[str, Status] = {}
        self.refused_some = False
        self.bare = False
        self.left: Index = np.zeros(0, dtype=np.intp)
        self._said = [ExtenderSaid(extender.name, extender.weight, extender.scale) for extender in extenders]

    @property
    def said(self) -> tuple[ExtenderSaid, ...]:
        """Return what each of them said, in the order in which they are asked; those that were asked nothing left out."""
        return tuple(said for said in self._said if said != ExtenderSaid(said.name, said.weight, said.scale))

    def of(self, number: int) -> ExtenderSaid:
        """Return what the extender with this number said, to be added to."""
        return self._said[number]

    def statuses_by_row(self, row_of: Mapping[str, int]) -> dict[int, Status]:
        """Return the statuses of nodes that there are."""
        return {row_of[name]: status for name, status in self.statuses.items() if name in row_of}

    def statuses_of_others(self, row_of: Mapping[str, int]) -> tuple[Status, ...]:
        """Return the statuses of names that are no nodes; they count in messages all the same."""
        return tuple(status for name, status in self.statuses.items() if name not in row_of)


def find_nodes_that_pass_extenders(
    extenders: Sequence[Extender], cycle: ExtendedCycle, pod: Pod, nodes: NodeTable, rows: Index
) -> Index | Status:
    """Ask extenders one after the other, each about what those before it left (rows, intp); return what is left, or an Error.

    The failure of an extender that can be ignored counts as if it had none to object to.
    """
    for number, extender in enumerate(extenders):
        if not len(rows):
            break
        if not extender.is_filter or not extender.is_interested(pod):
            continue
        said = cycle.of(number)
        said.asked = tuple(rows.tolist())
        found = extender.filter(pod, [node for row in said.asked if (node := nodes.nodes[row]) is not None])
        if isinstance(found, Filtered):
            found = _refuse_strangers(found, extender, nodes.row_of)
        if isinstance(found, ExtenderFailure):
            said.filter_error, said.ignored = found.message, extender.ignorable
            if extender.ignorable:
                continue
            return error(found.message)
        said.filter_error = ""
        rows = _what_is_left(found, cycle, said, nodes.row_of)
    return rows


def _refuse_strangers(found: Filtered, extender: Extender, row_of: Mapping[str, int]) -> Filtered | ExtenderFailure:
    """Return a failure where a node passes that the cluster does not have; upstream would go on, and know nothing of it."""
    for name in found.nodes:
        if name not in row_of:
            return ExtenderFailure(unknown_node(extender.name, name))
    return found


def _what_is_left(found: Filtered, cycle: ExtendedCycle, said: ExtenderSaid, row_of: Mapping[str, int]) -> Index:
    """Note why an extender rejected nodes; return the rows that it left, in its order."""
    statuses = {name: _refusal(Code.UNSCHEDULABLE, text, said.name) for name, text in found.failed.items()}
    for name, text in found.unresolvable.items():
        statuses[name] = _refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, text, said.name)
    cycle.statuses.update(statuses)
    cycle.bare |= found.bare
    left = [row_of[name] for name in found.nodes]
    gone = set(said.asked).difference(left)
    names = {row_of[name]: name for name in statuses if name in row_of}
    said.refused = tuple(
        (row, statuses[names[row]] if row in names else LEFT_OUT.by(said.name)) for row in said.asked if row in gone
    )
    said.unknown = tuple((name, status) for name, status in statuses.items() if name not in row_of)
    return np.array(left, dtype=np.intp)


def _refusal(code: Code, text: str, name: str) -> Status:
    return Status(code, (text,), name)


def add_extender_scores(
    extenders: Sequence[Extender], cycle: ExtendedCycle, pod: Pod, state: ClusterState, rows: Index, totals: Ints
) -> tuple[int, Ties]:
    """Ask extenders what nodes (rows, intp) are worth; return the highest total with that, and the rows that have it.

    An extender that fails here gives no scores, and nothing else happens.

    Args:
        extenders: all of them. cycle: takes what they say.
        pod: the pod.
        state: the cluster.
        rows: the feasible rows.
        totals: int64, one a row of `rows`: what the plugins say.
    """
    nodes = state.nodes
    places = {nodes.names[row] or "": place for place, row in enumerate(rows.tolist())}
    asked = [node for row in rows.tolist() if (node := nodes.nodes[row]) is not None]
    worths = totals.copy()
    for number, extender in enumerate(extenders):
        if not extender.is_prioritizer or not extender.is_interested(pod):
            continue
        said = cycle.of(number)
        answer = extender.prioritize(pod, asked)
        if isinstance(answer, ExtenderFailure):
            said.prioritize_error = answer.message
            continue
        known = [(places[name], score) for name, score in answer if name in places]
        index = np.array([place for place, _ in known], dtype=np.intp)
        scores: Ints = np.zeros(len(rows), dtype=np.int64)
        with np.errstate(over="ignore"):
            # A host that is named twice is given both; sums wrap, as Go's do.
            np.add.at(scores, index, np.array([score for _, score in known], dtype=np.int64))
            worths += scores * wrap_int64(extender.weight * extender.scale)
        given = np.unique(index)
        said.scores = tuple(zip(rows[given].tolist(), scores[given].tolist(), strict=True))
    best = worths.max()
    return int(best), np.sort(rows[worths == best])


def bind_by_extenders(extenders: Sequence[Extender], pod: Pod, node_name: str) -> tuple[str, Status]:
    """Have the first extender bind a pod that binds such pods; return its name ("": none does) and how that ended."""
    for extender in extenders:
        if not extender.is_binder or not extender.is_interested(pod):
            continue
        failure = extender.bind(pod, node_name)
        if failure is None:
            return extender.name, SUCCESS
        if not extender.ignorable:
            return extender.name, error(failure.message)
    return "", SUCCESS
