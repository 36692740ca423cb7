"""The details of one decision: rejected nodes by plugin, the best nodes by score, and all results for one node.

The numbers are those of the decision record; no plugin runs again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.analysis.explanation import (
    Advantage,
    Attempt,
    AttemptDetail,
    ExtenderReport,
    NodeDetail,
    NodeScore,
    PluginScore,
    PluginVerdict,
    Rejection,
)
from bayplan.analysis.free_amounts import free_amounts
from bayplan.analysis.node_names import unknown_node
from bayplan.analysis.run_source import RunSource
from bayplan.engine.decision import Decision
from bayplan.framework.status import Status
from bayplan.sim.result import PodTimeline

# --- one attempt ------------------------------------------------------------------------------------------------------


def ranked_rows(decision: Decision) -> list[int]:
    """Return the scored rows by descending total. Equal totals are ordered by name, except that the chosen node comes first."""
    rows = np.flatnonzero(decision.total >= 0).tolist()
    chosen = decision.record.node
    return sorted(rows, key=lambda row: (-int(decision.total[row]), decision.names[row] != chosen, decision.names[row]))


def attempt_detail(
    source: RunSource, attempt: Attempt, decision: Decision, rows: Sequence[int], pod: PodTimeline, best: int
) -> AttemptDetail:
    """Return the plugin results of an attempt.

    Args:
        source: the run.
        attempt, decision: the attempt and its decision.
        rows: the scored rows, see `ranked_rows`.
        pod: the pod.
        best: the number of nodes whose scores are compared.
    """
    scored = bool(rows)
    ties = frozenset(decision.ties)
    beaten = [row for row in rows if decision.names[row] not in ties]
    winner = next((row for row in rows if decision.names[row] == decision.record.node), None)
    runner_up = beaten[0] if beaten and winner is not None else None
    alone = decision.record.node if chose_nominated_node_alone(decision) else ""
    return AttemptDetail(
        attempt=attempt,
        nodes=len(decision.names),
        examined=int(decision.examined.sum()),
        feasible=int(decision.feasible.sum()),
        ended_early=not alone and int(decision.examined.sum()) < int(decision.allowed.sum()),
        tried_alone=alone,
        rejections=[] if alone else rejections_of(decision),
        rejected_by_pre_filter=decision.pre_filter is not None,
        scored=scored,
        best=[_node_score(decision, rows, row) for row in rows[:best]],
        tie_set=sorted(decision.ties),
        runner_up="" if runner_up is None else decision.names[runner_up],
        margin=0 if runner_up is None or winner is None else int(decision.total[winner] - decision.total[runner_up]),
        advantages=[] if runner_up is None or winner is None else _advantages(decision, winner, runner_up),
        remedies=[],
        extenders=extender_reports(decision),
    )


def extender_reports(decision: Decision) -> list[ExtenderReport]:
    """Return the results of the extenders that an attempt called, in the order of the calls."""
    return [
        ExtenderReport(
            extender=each.name,
            asked=len(each.asked),
            rejected=len(each.refused),
            scored=each.scores is not None,
            filter_error=each.filter_error,
            ignored=each.ignored,
            prioritize_error=each.prioritize_error,
        )
        for each in decision.extenders
    ]


def chose_nominated_node_alone(decision: Decision) -> bool:
    """Return whether the nominated node was chosen without evaluating any other: the record has one evaluated node."""
    return bool(decision.record.node) and decision.record.evaluated_nodes == 1 and len(decision.names) > 1


def rejections_of(decision: Decision) -> list[Rejection]:
    """Return the rejected nodes by plugin, code and reasons, the largest group first."""
    groups: dict[Status, list[str]] = {}
    for row, name in enumerate(decision.names):
        for status in decision.failures(row):
            groups.setdefault(status, []).append(name)
    found = [
        Rejection(plugin=status.plugin, code=status.code.text, reasons=list(status.reasons), nodes=nodes)
        for status, nodes in groups.items()
    ]
    return sorted(found, key=lambda each: -len(each.nodes))


def _node_score(decision: Decision, rows: Sequence[int], row: int) -> NodeScore:
    total = int(decision.total[row])
    weighted = decision.weighted
    return NodeScore(
        node=decision.names[row],
        rank=1 + sum(int(decision.total[other]) > total for other in rows),
        total=total,
        tied=decision.names[row] in decision.ties,
        chosen=decision.names[row] == decision.record.node,
        scores=[
            PluginScore(
                plugin=name,
                weight=decision.weights[number],
                raw=int(decision.raw[number, row]),
                normalized=int(decision.normalized[number, row]),
                weighted=int(weighted[number, row]),
            )
            for number, name in enumerate(decision.scorers)
        ],
    )


def _advantages(decision: Decision, winner: int, other: int) -> list[Advantage]:
    points = (decision.weighted[:, winner] - decision.weighted[:, other]).tolist()
    found = [Advantage(plugin=name, points=gain) for name, gain in zip(decision.scorers, points, strict=True) if gain]
    return sorted(found, key=lambda each: -each.points)


# --- one node ---------------------------------------------------------------------------------------------------------


def node_detail(
    source: RunSource, attempt: Attempt, decision: Decision, rows: Sequence[int], pod: PodTimeline, node: str
) -> NodeDetail:
    """Return the results of all plugins for one node. `attempt_detail` describes the other arguments.

    Raises:
        InputError: no node of this name existed at the attempt.
    """
    if node not in decision.names:
        raise unknown_node(node, decision.names, wanted="a node that existed at this attempt")
    row = decision.names.index(node)
    verdicts = []
    if decision.pre_filter is None and (decision.allowed[row]):
        for number, plugin in enumerate(decision.filters):
            if not decision.ran_on(number, row):
                continue
            verdict = int(decision.codes[number, row])
            status = decision.statuses[number, verdict] if verdict else None
            code, reasons = ("Success", []) if status is None else (status.code.text, list(status.reasons))
            verdicts.append(PluginVerdict(plugin=plugin, code=code, reasons=reasons))
    requested = source.requests_of(pod)
    free = free_amounts(source, attempt.number, [node]).get(node, {})
    return NodeDetail(
        node=node,
        fate=_node_fate(decision, rows, row),
        verdicts=verdicts,
        score=_node_score(decision, rows, row) if row in rows else None,
        advantages=_against(decision, rows, row),
        free={name: free.get(name, 0) for name in requested} if free else {},
        requested=dict(requested),
    )


def _node_fate(decision: Decision, rows: Sequence[int], row: int) -> str:
    name = decision.names[row]
    if name == decision.record.node:
        return f"the pod went to {name}"
    if chose_nominated_node_alone(decision):
        return f"{name} was not examined: the pod was nominated to {decision.record.node}, which is tried first"
    status = decision.first_failure(row)
    if status is None and decision.allowed[row] and not decision.examined[row]:
        return f"{name} was not examined: enough other nodes fit (percentageOfNodesToScore)"
    if status is not None:
        who = f"{status.plugin} " if status.plugin else ""
        if decision.pre_filter is not None or not decision.allowed[row]:
            return f"{who}rejected {name} before filters ran on it: {status.message}"
        because = ", once pods nominated to the node are counted in" if row in decision.overrides else ""
        return f"{who}rejected {name}{because}: {status.message}"
    if row not in rows:
        return f"{name} was feasible, and nodes were not scored"
    if name in decision.ties:
        return f"{name} was as good as {decision.record.node}: a tie, broken at random"
    best = int(decision.total.max())
    return f"{name} was feasible, with {best - int(decision.total[row]):,} points less than the best"


def _against(decision: Decision, rows: Sequence[int], row: int) -> list[Advantage]:
    """Return the chosen node's score advantages over this node; for the chosen node itself, over the runner-up; else []."""
    winner = next((each for each in rows if decision.names[each] == decision.record.node), None)
    if winner is None or row not in rows:
        return []
    if row != winner:
        return _advantages(decision, winner, row)
    beaten = [each for each in rows if decision.names[each] not in decision.ties]
    return _advantages(decision, winner, beaten[0]) if beaten else []
