"""The scheduling cycle of the classic scheduler: functions in execution order, named as in Kubernetes 1.16."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from bayplan.classic.fit_error import FitError
from bayplan.classic.plugins.priority import MAX_PRIORITY, FailingPriority, RowPriority
from bayplan.classic.select_host import select_host
from bayplan.classic.trial import NodeTrial
from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.extenders import ExtendedCycle, add_extender_scores, find_nodes_that_pass_extenders
from bayplan.engine.nominated_pods import NominatedPodLister, NominatedPods
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.select_host import NodeSampling, Pick, Sample, mask_of, visited_rows
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import NO_NODES_AVAILABLE
from bayplan.framework.extender import Extender
from bayplan.framework.status import ERROR_BIT, Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.plugins.pod_claims import claim_not_found
from bayplan.state.arrays import Bools, Codes, Index, Ints
from bayplan.state.object_catalog import ObjectCatalog


class CycleSettings(msgspec.Struct, frozen=True):
    """The settings shared by all cycles of a scheduler.

    Attributes:
        pick: the function that chooses one of several best nodes.
        always_check_all_predicates: whether all predicates run on a node, not just up to the first that fails.
        sampling: decides when enough feasible nodes have been found; None to filter all nodes.
        custom: the names of custom plugins. Their filters run after the predicates, regardless of their results.
    """

    pick: Pick
    always_check_all_predicates: bool = False
    sampling: NodeSampling | None = None
    custom: frozenset[str] = frozenset()


@dataclass
class ClassicResult:
    """The result of a cycle.

    Attributes:
        common: the part of the result that is common to all schedulers.
        fit_error: why no node is feasible; None if one is, or if an error ended the cycle.
        failing: uint16[predicates, capacity], the verdicts that count (see `_verdicts_that_count`).
        order: intp, the feasible rows in the order in which they were found.
    """

    common: ScheduleResult = field(default_factory=ScheduleResult)
    fit_error: FitError | None = None
    failing: Codes = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint16))
    order: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


def schedule_pod(
    plan: Plan,
    pod: Pod,
    cycle_state: CycleState,
    nominated_pods: NominatedPodLister,
    settings: CycleSettings,
    extenders: Sequence[Extender] = (),
) -> ClassicResult:
    """Find a node for a pod: filter, score, select.

    Changes only the plan's caches and the position of the sampling.
    """
    result = ClassicResult()
    common, state = result.common, plan.state
    text = pod_passes_basic_checks(pod, state.catalog)
    if text:
        common.failure = error(text)
        return result
    if not state.nodes.row_of:
        common.failure = unschedulable(NO_NODES_AVAILABLE)
        return result
    refused = run_pre_filter_plugins(plan, pod, cycle_state)
    if refused is not None:
        common.failure = refused
        return result
    plan.refresh_filters()
    find_nodes_that_fit(plan, nominated_pods(pod), result, settings)
    if extenders and common.failure is None:
        pass_extenders(plan, pod, extenders, result)
    if common.failure is not None:
        return result
    if not len(result.order):
        rows: Index = state.nodes.alive.nonzero()[0]
        result.fit_error = FitError(plan, len(state.nodes), rows, result.failing[:, rows], _extender_messages(common))
        # The message is built later, on demand.
        common.failure = Status(Code.UNSCHEDULABLE)
        return result
    if len(result.order) == 1:
        # A single feasible node is chosen without scoring.
        common.row = int(result.order[0])
        common.ties = [common.row]
        return result
    prioritize_nodes(plan, pod, result, settings, extenders)
    return result


def pod_passes_basic_checks(pod: Pod, catalog: ObjectCatalog) -> str:
    """Return why the pod can't be scheduled: a claim is missing or being deleted. "" if it can."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = catalog.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
        if claim is None:
            return claim_not_found(name)
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
    return ""


def run_pre_filter_plugins(plan: Plan, pod: Pod, cycle_state: CycleState) -> Status | None:
    """Run the PreFilter plugins, predicates first; return the status with which the cycle ends, or None."""
    pre = plan.run_pre_filter_plugins(cycle_state)
    if pre.status is not None:
        plugin, text = pre.status.plugin, pre.status.message
        if pre.status.code.rejects:
            return error(f'rejected by "{plugin}" at prefilter: {text}').by(plugin)
        text = text.removeprefix(f'running PreFilter plugin "{plugin}": ')
        name = pod.metadata.name
        return error(f'error while running "{plugin}" prefilter plugin for pod "{name}": {text}').by(plugin)
    if pre.node_names is not None:
        plugin = pre.narrowed_by[0]
        return error(f"plugin {plugin} chose nodes at PreFilter, which Kubernetes 1.16 does not have").by(plugin)
    return None


def find_nodes_that_fit(plan: Plan, nominated: NominatedPods, result: ClassicResult, settings: CycleSettings) -> None:
    """Record the verdicts of predicates on every node, counting nominated pods, and the feasible nodes."""
    state, common = plan.state, result.common
    common.check_all = settings.always_check_all_predicates
    result.failing = _verdicts_that_count(plan, settings)
    if nominated:
        _with_nominated_pods(plan, nominated, result, settings)
    feasible: Bools = state.nodes.alive & ~result.failing.any(axis=0)
    order = state.nodes.tree.order(state.nodes.row_of)
    sampling = settings.sampling
    wanted = len(order) if sampling is None else sampling.wanted(None, len(order), True)
    if sampling is None or (wanted >= len(order) and sampling.percentage_of_nodes_to_score >= 100):
        visited = order
        result.order = order[feasible[order]]
    else:
        sample = sampling.search(order, feasible.view(np.uint8), wanted)
        result.order, evaluated = sample.array(), sample.visited
        visited = visited_rows(order, sampling.next_start, evaluated)
        if len(result.order) < np.count_nonzero(feasible):
            common.sample = sample
        sampling.advance(evaluated, len(order))
    common.feasible_nodes, common.evaluated_nodes = len(result.order), len(visited)
    common.failure = _predicate_errors(plan, result.failing[:, visited], settings)


def _verdicts_that_count(plan: Plan, settings: CycleSettings) -> Codes:
    """Return the verdicts that count: all, or only that of the first failing predicate of each node.

    The result is uint16[predicates, capacity]. In both cases, the first failing filter of custom plugins counts, too.
    """
    capacity = plan.state.nodes.capacity
    failing: Codes = np.zeros((len(plan.filtered.results), capacity), dtype=np.uint16)
    for number, part in enumerate(plan.filtered.results):
        failing[number, : len(part.values)] = part.values
    predicates = [number for number, part in enumerate(plan.filtered.results) if part.name not in settings.custom]
    if not settings.always_check_all_predicates:
        _keep_first(failing, predicates)
    if settings.custom:
        _keep_first(failing, [number for number in range(len(failing)) if number not in predicates])
    return failing


def _keep_first(failing: Codes, numbers: Sequence[int]) -> None:
    """Of the filters `numbers`, keep only the first failure of each node; set the other verdicts to 0."""
    seen = np.zeros(failing.shape[1], dtype=np.bool_)
    for number in numbers:
        failing[number][seen] = 0
        seen |= failing[number] != 0


def _with_nominated_pods(plan: Plan, nominated: NominatedPods, result: ClassicResult, settings: CycleSettings) -> None:
    """Run the predicates again on nodes with nominated pods, as if these ran there.

    Failures that this finds replace the earlier verdicts.
    """
    failures: dict[int, int] = {}
    for row in nominated.rows:
        trial = NodeTrial(plan, row, settings.custom)
        try:
            with trial.with_nominated(nominated.pods_at(row)):
                found = trial.verdicts(check_all=settings.always_check_all_predicates)
        finally:
            trial.close()
        if found.any():
            result.failing[:, row] = found
            number = int(found.nonzero()[0][0])
            failures[row] = number << 16 | int(found[number])
    result.common.nominated_failures = failures


def _predicate_errors(plan: Plan, failing: Codes, settings: CycleSettings) -> Status | None:
    """Return the Error that ends the cycle, with all errors of predicates and their counts; None without errors."""
    counts: Counter[str] = Counter()
    for column in failing.T[(failing >= ERROR_BIT).any(axis=0)]:
        number = int((column >= ERROR_BIT).nonzero()[0][0])
        status = plan.explain(number, int(column[number]))
        text = status.message
        if status.plugin in settings.custom:
            name = plan.pod.metadata.name
            text = f'error while running "{status.plugin}" filter plugin for pod "{name}": {text}'
        counts[text] += 1
    if not counts:
        return None
    return error(
        aggregate([text if count == 1 else f"{text} (repeated {count} times)" for text, count in counts.items()])
    )


def aggregate(texts: Sequence[str]) -> str:
    """Join several errors as upstream does. Their order is random upstream; here they are sorted."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(sorted(texts))}]"


def pass_extenders(plan: Plan, pod: Pod, extenders: Sequence[Extender], result: ClassicResult) -> None:
    """Call extenders to filter the feasible nodes."""
    common = result.common
    common.extended = ExtendedCycle(extenders)
    left = find_nodes_that_pass_extenders(extenders, common.extended, pod, plan.state.nodes, result.order)
    if isinstance(left, Status):
        common.failure = left
        return
    result.order = left
    common.feasible_nodes = len(left)


def _extender_messages(common: ScheduleResult) -> dict[str, str]:
    """Return why extenders rejected nodes, by node name."""
    statuses = common.extended.statuses if common.extended is not None else {}
    return {name: status.message for name, status in statuses.items()}


def prioritize_nodes(
    plan: Plan, pod: Pod, result: ClassicResult, settings: CycleSettings, extenders: Sequence[Extender] = ()
) -> None:
    """Score the feasible nodes, add the scores of extenders, and select the host."""
    common, state = result.common, plan.state
    common.scored_by = plan
    common.failure = priority_errors(plan, len(result.order))
    if common.failure is not None:
        return
    counts_nominated = bool(common.nominated_failures)
    checked = settings.custom or not state.small
    if common.sample is not None and not (
        common.extended or counts_nominated or checked or plan.pre_scores.reads_feasible
    ):
        sample = Sample(result.order)
        plan.refresh_scores(sample)
        common.total, found = plan.totals.best(sample)
        in_order: Index = result.order[np.isin(result.order, list(found))]
        common.row, common.ties = settings.pick(state, in_order), found
        return
    feasible = mask_of(result.order, state.nodes.capacity)
    if common.sample is None and np.array_equal(feasible, plan.filtered.feasible):
        plan.refresh_scores()
    else:
        plan = common.scored_by = score_over(plan, feasible)
    total = plan.totals.total
    if settings.custom:
        custom = [number for number, part in enumerate(plan.totals.results) if part.name in settings.custom]
        scores = [(plan.totals.results[number].name, plan.totals.normalized(number)) for number in custom]
        common.failure = custom_score_error(pod, scores, plan.failure, result.order, settings)
        if common.failure is not None:
            return
    if common.extended is not None:
        total = total if plan.profile.score else np.where(total < 0, total, 0)
        common.total, best = add_extender_scores(
            extenders, common.extended, pod, state, result.order, total[result.order]
        )
        total = np.full_like(total, -1)
        total[list(best)] = common.total
    chosen = select_host(state, total, result.order, settings.pick)
    if isinstance(chosen, Status):
        common.failure = chosen
        return
    common.row, common.total, ties = chosen
    common.ties = np.sort(ties)


def custom_score_error(
    pod: Pod, scores: Sequence[tuple[str, Ints]], failure: Status | None, rows: Index, settings: CycleSettings
) -> Status | None:
    """Return the Error with which a custom plugin ends scoring, or None.

    Args:
        pod: the pod.
        scores: int64[rows in use] by custom plugin.
        failure: the plan's failure.
        rows: intp, the feasible rows.
        settings: the settings, with the names of the custom plugins.
    """
    for name, normalized in scores:
        wrong = [score for score in normalized[rows].tolist() if not 0 <= score <= MAX_PRIORITY]
        if wrong:
            text = f'score plugin "{name}" returns an invalid score {wrong[0]}, it should in the range of [0, {MAX_PRIORITY}]'
            return error(
                f'error while applying score weights for pod "{pod.metadata.name}": {text} after normalizing'
            ).by(name)
    return failure if failure is not None and failure.plugin in settings.custom else None


def priority_errors(plan: Plan, count: int) -> Status | None:
    """Return the errors of the priorities that can't score the pod, combined, or None.

    A priority with a map function fails once per node; a priority that is computed for all nodes together fails once.
    """
    texts: list[str] = []
    for entry in plan.profile.score:
        plugin = entry.plugin
        text = plugin.map_error(plan.specs[plugin.name]) if isinstance(plugin, FailingPriority) else ""
        if text:
            texts += [text] * (1 if isinstance(plugin, RowPriority) else count)
    return error(aggregate(texts)) if texts else None
