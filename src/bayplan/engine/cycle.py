"""The scheduling cycle of one pod: functions in execution order, named as in kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from bayplan.engine.dry_run import find_candidates
from bayplan.engine.extenders import ExtendedCycle, add_extender_scores, find_nodes_that_pass_extenders
from bayplan.engine.filtered_rows import PASSES, count_failures
from bayplan.engine.first_failures import FirstFailures
from bayplan.engine.nominated_pods import NO_NOMINATED_PODS, NominatedPodLister, NominatedPods
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.select_host import NodeSampling, Pick, Sample, Ties, mask_of, visited_rows
from bayplan.engine.what_if import first_failure_with
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from bayplan.framework.extender import EXTENDER, Extender
from bayplan.framework.preemption.evaluator import DRY_RUN
from bayplan.framework.status import ERROR_BIT, Status, unresolvable, unschedulable
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Index
from bayplan.state.row_log import RowLog

_UNSCHEDULABLE = unschedulable()


class ScheduleResult:
    """The result of a cycle, before it is applied.

    Attributes:
        row: the row of the chosen node; -1 if there is none.
        ties: rows with the highest total.
        total: the highest total; 0 if no scoring was needed.
        feasible_nodes, evaluated_nodes: number of nodes that fit the pod, and number of nodes evaluated.
        scored_by: the plan that scored the nodes: the pod's own one, or a temporary one if the feasible nodes differ from
            those of the plan; None if at most one node is feasible.
        chose_nominated_node_alone: whether the nominated node was chosen without evaluating any other node.
        failure: why there is no node: an Error, or a rejection with `diagnosis`.
        rejected_row, rejection: the row and first failure of the pod's nominated node if filters rejected it; else -1.
        sample: the feasible rows found before the search ended early; None if it visited all nodes.
        nominated_failures: by row, the first failures that nominated pods change. Valid until the cluster changes.
        extended: the extenders' results; None if there are no extenders or the cycle did not reach them.
        check_all: whether every failing filter of a node counts, not just the first (alwaysCheckAllPredicates).
    """

    def __init__(self) -> None:
        self.row = -1
        self.ties: Ties = []
        self.total = 0
        self.feasible_nodes = 0
        self.evaluated_nodes = 0
        self.scored_by: Plan | None = None
        self.chose_nominated_node_alone = False
        self.rejected_row = -1
        self.rejection = PASSES
        self.sample: Sample | None = None
        self.failure: Status | None = None
        self.diagnosis: Diagnosis | None = None
        self.extended: ExtendedCycle | None = None
        self.check_all = False
        self.nominated_failures: Mapping[int, int] = {}


def schedule_pod(
    plan: Plan,
    pod: Pod,
    cycle_state: CycleState,
    nominated_pods: NominatedPodLister,
    pick: Pick,
    sampling: NodeSampling | None = None,
    extenders: Sequence[Extender] = (),
) -> ScheduleResult:
    """Find a node for a pod: filter, score, select. Change only the plan's caches and the position of `sampling`."""
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
            cycle_state.write(DRY_RUN, partial(find_candidates, plan, nominated_pods))
        return result
    plan.refresh_filters()
    nominated = nominated_pods(pod)
    if (
        pod.status.nominated_node_name
        and evaluate_nominated_node(plan, pod, nominated, result)
        and (not extenders or nominated_node_passes_extenders(plan, pod, extenders, result))
    ):
        return result
    feasible = find_nodes_that_fit_pod(plan, nominated, nominated_pods.log, result, sampling)
    if extenders and result.failure is None:
        feasible = pass_extenders(plan, pod, extenders, feasible, result, sampling)
    if result.failure is not None:
        return result
    if result.feasible_nodes == 0:
        result.diagnosis = diagnose(plan, result, first_failures(plan, nominated, nominated_pods.log))
        # The message comes from the diagnosis, after PostFilter has run.
        result.failure = _UNSCHEDULABLE
        cycle_state.write(DRY_RUN, partial(find_candidates, plan, nominated_pods))
        return result
    if result.feasible_nodes == 1:
        # A single remaining node is chosen without scoring.
        result.row = int(feasible.argmax()) if result.sample is None else int(result.sample.rows[0])
        result.ties = [result.row]
        return result
    prioritize_nodes(plan, feasible, result)
    if extenders and result.failure is None:
        prioritize_with_extenders(plan, pod, extenders, result)
    if result.failure is None:
        result.row = pick(state, result.ties)
    return result


def find_nodes_that_fit_pod(
    plan: Plan,
    nominated: NominatedPods,
    nominations: RowLog,
    result: ScheduleResult,
    sampling: NodeSampling | None = None,
) -> Bools:
    """Return the feasible nodes (bool[capacity]), counting nominated pods as if they already ran.

    With `sampling`, the search may end early; `result.sample` then holds the feasible nodes that it found.
    """
    state = plan.state
    narrowed = plan.pre.node_names is not None
    count = int(np.count_nonzero(plan.filtered.examined())) if narrowed else len(state.nodes.row_of)
    feasible = plan.filtered.feasible
    result.feasible_nodes = plan.filtered.count
    may_fail = plan.filtered.has_errors
    if nominated is not NO_NOMINATED_PODS and nominated:
        failures = first_failures(plan, nominated, nominations)
        if failures.overrides:
            result.nominated_failures = failures.overrides
            may_fail = may_fail or failures.has_errors()
            count_left = int(np.count_nonzero(failures.feasible))
            if count_left < result.feasible_nodes:
                feasible, result.feasible_nodes = failures.feasible, count_left
    result.evaluated_nodes = count
    if sampling is not None:
        _search_sample(plan, feasible, result, sampling, count, may_fail)
    elif may_fail:
        result.failure = _first_error(plan, result)
    return feasible


def first_failures(plan: Plan, nominated: NominatedPods, nominations: RowLog) -> FirstFailures:
    """Return the plan's `FirstFailures`, updated for the nominated pods; the plan's filters must be up to date."""
    if not isinstance(plan.first_failed, FirstFailures):
        plan.first_failed = FirstFailures(plan, nominations)
    plan.first_failed.refresh(nominated)
    return plan.first_failed


def _first_error(plan: Plan, result: ScheduleResult, visited: Index | None = None) -> Status | None:
    """Return the Error that ends the cycle, or None: the first in the order of `visited`, else of the node names."""
    failures = plan.filtered.first_failures()
    for row, failure in result.nominated_failures.items():
        failures[row] = failure
    wrong = (failures != PASSES) & (failures & ERROR_BIT != 0) & plan.filtered.examined()
    if visited is None:
        names = plan.state.nodes.names
        rows = sorted(np.flatnonzero(wrong).tolist(), key=lambda row: names[row] or "")
    else:
        rows = visited[wrong[visited]].tolist()
    return plan.filter_error(int(failures[rows[0]])) if rows else None


def _search_sample(
    plan: Plan, feasible: Bools, result: ScheduleResult, sampling: NodeSampling, count: int, may_fail: bool
) -> None:
    """End the search once it has found enough feasible nodes: store the sample in `result`, and advance `sampling`.

    `may_fail`: whether some row may have an Error, with nominated pods or without.
    """
    state, profile = plan.state, plan.profile
    nodes = len(state.nodes.row_of)
    scoring = bool(profile.score) or sampling.extended
    wanted = sampling.wanted(profile.percentage_of_nodes_to_score, count, scoring)
    if result.feasible_nodes > wanted or may_fail:
        order = state.nodes.tree.order(state.nodes.row_of)
        if plan.pre.node_names is not None:
            order = order[plan.filtered.examined()[order]]
        filtered = plan.filtered
        if feasible is filtered.feasible:
            passes = filtered.flags
        else:
            passes = feasible.view(np.uint8)
        sample = sampling.search(order, passes, wanted)
        evaluated = sample.visited
        if may_fail:
            result.failure = _first_error(plan, result, visited_rows(order, sampling.next_start, evaluated))
        if sample.count < result.feasible_nodes:
            result.sample = sample
            result.feasible_nodes, result.evaluated_nodes = sample.count, evaluated
        # The nominated node counts as evaluated, even if the search did not visit it again.
        row = result.rejected_row
        if row >= 0 and row not in visited_rows(order, sampling.next_start, evaluated):
            result.evaluated_nodes += 1
    elif result.rejected_row >= 0 and not plan.filtered.examined()[result.rejected_row]:
        result.evaluated_nodes += 1
    sampling.advance(result.evaluated_nodes, nodes)


def evaluate_nominated_node(plan: Plan, pod: Pod, nominated: NominatedPods, result: ScheduleResult) -> bool:
    """Evaluate the nominated node before all other nodes; return whether it is chosen."""
    row = plan.state.nodes.row_of.get(pod.status.nominated_node_name)
    if row is None:
        return False
    failure = first_failure_with(plan, row, nominated.pods_at(row))
    if failure != PASSES:
        if not failure & ERROR_BIT:
            result.rejected_row, result.rejection = row, failure
        return False
    result.row = row
    result.ties = [row]
    result.feasible_nodes = result.evaluated_nodes = 1
    result.chose_nominated_node_alone = True
    return True


def nominated_node_passes_extenders(
    plan: Plan, pod: Pod, extenders: Sequence[Extender], result: ScheduleResult
) -> bool:
    """Run the extenders on the nominated node, which passed the filters; return whether they accept it.

    Their rejections stay recorded in `result.extended`.
    """
    extended = result.extended = ExtendedCycle(extenders)
    rows = np.array([result.row], dtype=np.intp)
    left = find_nodes_that_pass_extenders(extenders, extended, pod, plan.state.nodes, rows)
    if not isinstance(left, Status) and result.row in left:
        result.evaluated_nodes += len(extended.statuses)
        return True
    # If an extender fails here, it is called again with the other nodes, and only a failure of that call counts.
    extended.bare = False
    result.row, result.ties, result.chose_nominated_node_alone = -1, [], False
    return False


def pass_extenders(
    plan: Plan,
    pod: Pod,
    extenders: Sequence[Extender],
    feasible: Bools,
    result: ScheduleResult,
    sampling: NodeSampling | None,
) -> Bools:
    """Run the extenders on the feasible nodes; return bool[capacity], the nodes that remain."""
    nodes = plan.state.nodes
    extended = result.extended if result.extended is not None else ExtendedCycle(extenders)
    result.extended = extended
    sample = result.sample
    rows = sample.array() if sample is not None else _as_visited(plan, feasible, result, sampling)
    if sampling is not None:
        # Each status that an extender recorded for the nominated node counts as a processed node.
        sampling.advance(len(extended.statuses), len(nodes))
    left = find_nodes_that_pass_extenders(extenders, extended, pod, nodes, rows)
    if isinstance(left, Status):
        result.failure = left
        return feasible
    rejected = result.evaluated_nodes - result.feasible_nodes
    passed, examined = set(rows.tolist()), plan.filtered.examined()
    for name in extended.statuses:
        row = nodes.row_of.get(name, -1)
        # Nodes that filters rejected are already counted.
        rejected += row < 0 or row in passed or not examined[row]
    result.feasible_nodes, result.evaluated_nodes = len(left), len(left) + rejected
    extended.left, extended.rejected_some = left, len(left) != len(rows)
    if passed == set(left.tolist()):
        return feasible
    if sample is not None:
        result.sample = Sample(left, sample.start, sample.visited)
    return mask_of(left, len(feasible))


def _as_visited(plan: Plan, feasible: Bools, result: ScheduleResult, sampling: NodeSampling | None) -> Index:
    """Return the feasible rows of a search over all nodes, in visiting order."""
    nodes = plan.state.nodes
    order = nodes.tree.order(nodes.row_of)
    if sampling is not None:
        # Start where this cycle's search started: `next_start` has already moved past it.
        order = np.roll(order, -((sampling.next_start - result.evaluated_nodes) % len(order)))
    return order[feasible[order]]


def prioritize_nodes(plan: Plan, feasible: Bools, result: ScheduleResult) -> None:
    """Score the feasible nodes and find the tie set."""
    result.scored_by, sample = plan, None
    own = feasible is plan.filtered.feasible
    # If an extender returned its own node objects, scoring ignores the pods on nodes.
    bare = result.extended is not None and result.extended.bare
    if not bare and (
        (own and result.sample is None) or (result.extended is None and not plan.pre_scores.reads_feasible)
    ):
        sample = result.sample
        if sample is None and not own:
            # Without the nodes that nominated pods fill, the feasible nodes are a sample, too.
            sample = Sample(feasible.nonzero()[0])
        plan.refresh_scores(sample)
    else:
        if result.sample is not None:
            feasible = mask_of(result.sample.array(), len(feasible))
        plan = result.scored_by = score_over(plan, feasible, bare=bare)
    result.failure = plan.failure
    if result.failure is None:
        result.total, result.ties = plan.totals.best(sample)


def prioritize_with_extenders(plan: Plan, pod: Pod, extenders: Sequence[Extender], result: ScheduleResult) -> None:
    """Add the extenders' scores to the totals of the remaining nodes, and find the tie set again."""
    extended, scored_by = result.extended, result.scored_by
    assert extended is not None
    assert scored_by is not None
    rows = extended.left
    # Without score plugins, each node gets one point only if there are no extenders, either.
    totals = scored_by.totals.total[rows] if plan.profile.score else np.zeros(len(rows), dtype=np.int64)
    result.total, result.ties = add_extender_scores(extenders, extended, pod, plan.state, rows, totals)


def diagnose(plan: Plan, result: ScheduleResult, failures: FirstFailures) -> Diagnosis:
    """Return the diagnosis of a pod that passed PreFilter but fits no node."""
    examined, counts = failures.examined, failures.counts
    rejecting: dict[str, None] = {}
    outside: dict[int, Status] = {}
    rejecting_plugin = plan.filtered.results[result.rejection >> 16].name if result.rejected_row >= 0 else ""
    if rejecting_plugin and plan.pre.node_names is not None:
        rejecting[rejecting_plugin] = None
        if not examined[result.rejected_row]:
            # PreFilter excluded the nominated node, but it was evaluated before the other nodes, so its status counts.
            outside[result.rejected_row] = plan.status_of(result.rejection)
    if plan.pre.node_names is not None:
        rejecting.update(dict.fromkeys(sorted(plan.pre.narrowed_by)))
    unknown: tuple[Status, ...] = ()
    if result.extended is not None:
        sample = result.sample
        if sample is not None:
            order = plan.state.nodes.tree.order(plan.state.nodes.row_of)
            examined = mask_of(visited_rows(order[examined[order]], sample.start, sample.visited), len(examined))
            counts = count_failures(np.where(examined, failures.values, PASSES))
        row_of, statuses = plan.state.nodes.row_of, result.extended.statuses
        outside.update({row_of[name]: status for name, status in statuses.items() if name in row_of})
        # Rejected names that are not nodes of the cluster still count in messages.
        unknown = tuple([status for name, status in statuses.items() if name not in row_of])
    diagnosis = Diagnosis(
        num_all_nodes=len(plan.state.nodes),
        pre_filter_status=None,
        examined=examined,
        values=failures.values,
        filters=tuple([part.name for part in plan.filtered.results]),
        explain=plan.status_of,
        counts=counts,
        absent_status=absent_status(plan, rejecting_plugin),
        overrides=outside,
        unknown=unknown,
    )
    for number in sorted({value >> 16 for value in counts}):
        rejecting[plan.filtered.results[number].name] = None
    if result.extended is not None and result.extended.rejected_some:
        rejecting[EXTENDER] = None
    diagnosis.unschedulable_plugins = tuple(rejecting)
    return diagnosis


def absent_status(plan: Plan, rejecting_plugin: str = "") -> Status | None:
    """Return the status of the nodes that PreFilter excluded, or None if it excluded none.

    The status also names the filter that rejected the pod's nominated node, if any, as upstream does.
    """
    if plan.pre.node_names is None:
        return None
    names = {*plan.pre.narrowed_by, rejecting_plugin} - {""}
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(names))}]")


def diagnose_pre_filter(plan: Plan, status: Status) -> Diagnosis:
    """Return the diagnosis of a pod that PreFilter rejected: all nodes have the same status."""
    capacity = plan.state.nodes.capacity
    rejecting = (status.plugin,) if status.plugin else tuple(sorted(plan.pre.narrowed_by))
    return Diagnosis(
        num_all_nodes=len(plan.state.nodes),
        pre_filter_status=status,
        examined=np.zeros(capacity, dtype=np.bool_),
        values=np.full(capacity, PASSES, dtype=np.int64),
        filters=(),
        explain=plan.status_of,
        counts={},
        unschedulable_plugins=rejecting,
    )
