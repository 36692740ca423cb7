"""The scheduling cycle of one pod, its functions in the order of execution and under the names that kube-scheduler uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bayplan.engine.full_pass import ScoreTable, filter_over, score_over
from bayplan.engine.plan import Plan
from bayplan.engine.select_host import Pick, tie_set
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from bayplan.framework.status import Code, Status, unresolvable, verdict_code
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Codes, Index
from bayplan.state.pod_info import PodInfo

NO_ROWS: Index = np.zeros(0, dtype=np.intp)


class ScheduleResult:
    """What a cycle found for a pod, before anything is done about it.

    Attributes:
        row: the chosen row, or -1.
        ties: rows with the highest total.
        total: the highest total; 0 where scoring was not needed.
        feasible_nodes, evaluated_nodes: how many nodes could hold the pod, and how many were looked at.
        scored: whether scores were computed (a single feasible node needs none).
        nominated_node: the name that was tried first, or "". tried_alone: whether the pod goes there, no other node being looked at.
        failure: why there is no node: an Error, or a rejection with `diagnosis`.
        overrides: rows whose first failing filter differs from the plan's, for nominated pods: row to (filter, verdict).
        table: the scores, where they are not the plan's own because the feasible nodes are not; else None.
    """

    __slots__ = (
        "diagnosis",
        "evaluated_nodes",
        "failure",
        "feasible_nodes",
        "nominated_node",
        "overrides",
        "row",
        "scored",
        "table",
        "ties",
        "total",
        "tried_alone",
    )

    def __init__(self) -> None:
        self.row = -1
        self.ties: Index = NO_ROWS
        self.total = 0
        self.feasible_nodes = 0
        self.evaluated_nodes = 0
        self.scored = False
        self.nominated_node = ""
        self.tried_alone = False
        self.failure: Status | None = None
        self.diagnosis: Diagnosis | None = None
        self.overrides: dict[int, tuple[int, int]] = {}
        self.table: ScoreTable | None = None


class NominatedPods(Protocol):
    """The nominator, as far as filtering reads it."""

    def __call__(self, pod: Pod) -> Sequence[tuple[int, Sequence[PodInfo]]]:
        """Return the rows that hold nominations of other pods of at least this pod's priority, with those pods."""
        ...


def schedule_pod(
    plan: Plan, pod: Pod, cycle_state: CycleState, nominated_pods: NominatedPods, pick: Pick
) -> ScheduleResult:
    """Find the node for a pod: filter, score, choose. Changes nothing but what the plan keeps."""
    result = ScheduleResult()
    state = plan.state
    if not state.nodes.row_of:
        result.failure = unresolvable(NO_NODES_AVAILABLE)
        return result
    pre = plan.run_pre_filter_plugins(cycle_state)
    if pre.status is not None:
        result.failure = pre.status
        if pre.status.code.rejects:
            result.diagnosis = diagnose_pre_filter(plan, pre.status)
        return result
    plan.refresh_filters()
    crowded = nominated_pods(pod)
    if pod.status.nominated_node_name and evaluate_nominated_node(plan, pod, crowded, result):
        return result
    feasible = find_nodes_that_fit_pod(plan, crowded, result)
    if result.failure is not None:
        return result
    if result.feasible_nodes == 0:
        result.diagnosis = diagnose(plan, result.overrides)
        result.failure = Status(Code.UNSCHEDULABLE, (result.diagnosis.message(),))
        return result
    if result.feasible_nodes == 1:
        # When only one node is left, it is taken without being scored.
        result.row = int(feasible.argmax())
        result.ties = np.array([result.row], dtype=np.intp)
        return result
    prioritize_nodes(plan, feasible, result)
    if result.failure is None:
        result.row = pick(state, result.ties)
    return result


def find_nodes_that_fit_pod(
    plan: Plan, crowded: Sequence[tuple[int, Sequence[PodInfo]]], result: ScheduleResult
) -> Bools:
    """Return bool[capacity], the feasible nodes, with pods nominated to nodes counted in."""
    result.evaluated_nodes = len(plan.state.nodes)
    if plan.failure is not None:
        result.failure = plan.failure
        return plan.feasible
    if not crowded:
        result.feasible_nodes = plan.feasible_count
        return plan.feasible
    examined = plan.examined()
    for row, pods in crowded:
        if not examined[row]:
            continue
        first, verdict = filter_with_nominated_pods(plan, row, pods)
        if first >= 0:
            result.overrides[row] = (first, verdict)
            if verdict_code(verdict) is Code.ERROR:
                result.failure = plan.filter_error(first, verdict)
    if not any(plan.feasible[row] for row in result.overrides):
        result.feasible_nodes = plan.feasible_count
        return plan.feasible
    feasible = plan.feasible.copy()
    feasible[list(result.overrides)] = False
    result.feasible_nodes = int(np.count_nonzero(feasible))
    return feasible


def filter_with_nominated_pods(plan: Plan, row: int, pods: Sequence[PodInfo]) -> tuple[int, int]:
    """Filter one row as if `pods` ran there; return the first failing filter (-1: none) and its verdict.

    Upstream filters such a node twice, with these pods and without: a pod that needs them there must not count on them. The
    run without them is the plan's own.
    """
    state = plan.state
    with state.trial():
        for info in pods:
            if info.key not in state.pods:
                state.place(info, row)
        first, verdicts = filter_over(plan, np.array([row], dtype=np.intp), changed=True)
    return int(first[0]), int(verdicts[0])


def evaluate_nominated_node(
    plan: Plan, pod: Pod, crowded: Sequence[tuple[int, Sequence[PodInfo]]], result: ScheduleResult
) -> bool:
    """Try the node that the pod is nominated to, first and alone; return whether it is taken."""
    row = plan.state.nodes.row_of.get(pod.status.nominated_node_name)
    result.nominated_node = pod.status.nominated_node_name
    if row is None:
        return False
    first, _ = filter_over(plan, np.array([row], dtype=np.intp))
    if int(first[0]) >= 0:
        return False
    for other, pods in crowded:
        if other == row and filter_with_nominated_pods(plan, row, pods)[0] >= 0:
            return False
    result.row = row
    result.ties = np.array([row], dtype=np.intp)
    result.feasible_nodes = result.evaluated_nodes = 1
    result.tried_alone = True
    return True


def prioritize_nodes(plan: Plan, feasible: Bools, result: ScheduleResult) -> None:
    """Score the feasible nodes and find the tie set."""
    count = plan.state.nodes.count
    result.scored = True
    if feasible is plan.feasible:
        plan.refresh_scores()
        result.failure = plan.failure
        total = plan.total
    else:
        table = result.table = score_over(plan, feasible)
        result.failure = table.failure
        total = table.total
    if result.failure is None:
        result.total, result.ties = tie_set(total, count)


def diagnose(plan: Plan, overrides: dict[int, tuple[int, int]]) -> Diagnosis:
    """Return why a pod that passed PreFilter fits nowhere."""
    first, verdicts = plan.first_failures()
    for row, (number, verdict) in overrides.items():
        first[row], verdicts[row] = number, verdict
    examined = plan.examined()
    rejecting: dict[str, None] = {}
    if plan.pre.node_names is not None:
        rejecting.update(dict.fromkeys(sorted(plan.pre.narrowed_by)))
    for number in np.unique(first[examined]).tolist():
        if number >= 0:
            rejecting[plan.filter_parts[number].name] = None
    return Diagnosis(
        num_all_nodes=len(plan.state.nodes),
        pre_filter_status=None,
        examined=examined.copy(),
        first=first,
        verdicts=verdicts,
        filters=tuple(part.name for part in plan.filter_parts),
        explain=plan.explain,
        absent_status=absent_status(plan),
        unschedulable_plugins=tuple(rejecting),
    )


def absent_status(plan: Plan) -> Status | None:
    """Return the status of the nodes that PreFilter kept from the filters, or None where it kept none."""
    if plan.pre.node_names is None:
        return None
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plan.pre.narrowed_by))}]")


def diagnose_pre_filter(plan: Plan, status: Status) -> Diagnosis:
    """Return the diagnosis of a pod that PreFilter rejected: every node has that status."""
    capacity = plan.state.nodes.capacity
    nothing: Codes = np.zeros(capacity, dtype=np.uint16)
    rejecting = (status.plugin,) if status.plugin else tuple(sorted(plan.pre.narrowed_by))
    return Diagnosis(
        num_all_nodes=len(plan.state.nodes),
        pre_filter_status=status,
        examined=np.zeros(capacity, dtype=np.bool_),
        first=np.full(capacity, -1, dtype=np.intp),
        verdicts=nothing,
        filters=(),
        explain=plan.explain,
        unschedulable_plugins=rejecting,
    )
