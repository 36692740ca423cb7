"""The scheduling cycle of the classic scheduler, its functions in the order of execution and under the names of Kubernetes 1.16."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from bayplan.engine.classic.fit_error import FitError
from bayplan.engine.classic.select_host import select_host
from bayplan.engine.classic.trial import NodeTrial
from bayplan.engine.cycle import CountedIn, ScheduleResult
from bayplan.engine.extenders import ExtendedCycle, add_extender_scores, find_nodes_that_pass_extenders
from bayplan.engine.full_pass import score_over
from bayplan.engine.node_sampling import NodeSampling
from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.overrides import Overrides
from bayplan.engine.plan import Plan
from bayplan.engine.select_host import Pick
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import NO_NODES_AVAILABLE
from bayplan.framework.extender import Extender
from bayplan.framework.status import ERROR_BIT, Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.plugins.classic.priority import FailingPriority, RowPriority
from bayplan.plugins.pod_claims import claim_not_found
from bayplan.state.arrays import Bools, Codes, Index
from bayplan.state.object_catalog import ObjectCatalog


class CycleSettings(msgspec.Struct, frozen=True):
    """What the cycles of a scheduler have in common.

    Attributes:
        pick: chooses among equals.
        always_check_all_predicates: whether all predicates give their reasons, not just the first that fails.
        sampling: when the search for nodes ends; None: when all have been looked at.
    """

    pick: Pick
    always_check_all_predicates: bool = False
    sampling: NodeSampling | None = None


@dataclass
class ClassicResult:
    """What a cycle found.

    Attributes:
        common: what every scheduler's cycle finds.
        fit_error: why there is no node, where predicates say so; None where there is one, or an error ended the cycle.
        failing: uint16[predicates, capacity], the verdicts that count.
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
    nominated_pods: CountedIn,
    settings: CycleSettings,
    extenders: Sequence[Extender] = (),
) -> ClassicResult:
    """Find the node for a pod: filter, score, choose. Changes nothing but what the plan keeps and where the sampling stands."""
    result = ClassicResult()
    common, state = result.common, plan.state
    text = pod_passes_basic_checks(pod, state.catalog)
    if text:
        common.failure = error(text)
        return result
    if not state.nodes.row_of:
        common.failure = unschedulable(NO_NODES_AVAILABLE)
        return result
    plan.run_pre_filter_plugins(cycle_state)
    plan.refresh_filters()
    find_nodes_that_fit(plan, nominated_pods(pod), result, settings)
    if extenders and common.failure is None:
        pass_extenders(plan, pod, extenders, result)
    if common.failure is not None:
        return result
    if not len(result.order):
        rows: Index = state.nodes.alive.nonzero()[0]
        result.fit_error = FitError(plan, len(state.nodes), rows, result.failing[:, rows], _said_by_extenders(common))
        # The words are told when somebody asks for them.
        common.failure = Status(Code.UNSCHEDULABLE)
        return result
    if len(result.order) == 1:
        # A single node is taken without being scored.
        common.row = int(result.order[0])
        common.ties = [common.row]
        return result
    prioritize_nodes(plan, pod, result, settings, extenders)
    return result


def pod_passes_basic_checks(pod: Pod, catalog: ObjectCatalog) -> str:
    """Return why the pod is not even looked at, or the empty text: a claim that is missing or being deleted."""
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


def find_nodes_that_fit(plan: Plan, crowd: Crowd, result: ClassicResult, settings: CycleSettings) -> None:
    """Note what predicates say of every node, with nominated pods counted in, and who is feasible."""
    state, common = plan.state, result.common
    common.check_all = settings.always_check_all_predicates
    result.failing = _verdicts_that_count(plan, check_all=common.check_all)
    if crowd:
        _with_nominated_pods(plan, crowd, result, check_all=common.check_all)
    feasible: Bools = state.nodes.alive & ~result.failing.any(axis=0)
    order = state.nodes.tree.order(state.nodes.row_of)
    sampling = settings.sampling
    wanted = len(order) if sampling is None else sampling.wanted(None, len(order), scoring=True)
    if sampling is None or (wanted >= len(order) and sampling.wants_all(None)):
        visited = order
        result.order = order[feasible[order]]
    else:
        sample = sampling.search(order, feasible, wanted)
        visited = sampling.visited(order, sample.evaluated)
        result.order = sample.rows
        if len(sample.rows) < np.count_nonzero(feasible):
            common.sample, common.sample_span = sample.rows, (sampling.next_start, sample.evaluated)
        sampling.advance(sample.evaluated, len(order))
    common.feasible_nodes, common.evaluated_nodes = len(result.order), len(visited)
    common.failure = _predicate_errors(plan, result.failing[:, visited])


def _verdicts_that_count(plan: Plan, *, check_all: bool) -> Codes:
    """Return uint16[predicates, capacity]: all verdicts, or those of the first failing predicate of each node only."""
    capacity = plan.state.nodes.capacity
    failing: Codes = np.zeros((len(plan.filter_parts), capacity), dtype=np.uint16)
    for number, part in enumerate(plan.filter_parts):
        failing[number, : len(part.values)] = part.values
    if not check_all and len(failing):
        seen = np.zeros(capacity, dtype=np.bool_)
        for verdicts in failing:
            verdicts[seen] = 0
            seen |= verdicts != 0
    return failing


def _with_nominated_pods(plan: Plan, crowd: Crowd, result: ClassicResult, *, check_all: bool) -> None:
    """Ask the predicates once more about nodes that pods are nominated to, as if these ran there; their failures count first."""
    rows, first, verdicts = [], [], []
    for row in crowd.rows.tolist():
        trial = NodeTrial(plan, row)
        with trial.with_nominated(crowd.pods_at(row)):
            found = trial.verdicts(check_all=check_all)
        if found.any():
            result.failing[:, row] = found
            number = int(found.nonzero()[0][0])
            rows.append(row)
            first.append(number)
            verdicts.append(int(found[number]))
    result.common.overrides = Overrides.of(
        np.array(rows, dtype=np.intp), np.array(first, dtype=np.intp), np.array(verdicts, dtype=np.uint16)
    )


def _predicate_errors(plan: Plan, failing: Codes) -> Status | None:
    """Return the error that ends the cycle where a predicate failed with one on some node: all of them, counted."""
    counts: Counter[str] = Counter()
    for column in failing.T[(failing >= ERROR_BIT).any(axis=0)]:
        number = int((column >= ERROR_BIT).nonzero()[0][0])
        counts[plan.explain(number, int(column[number])).message] += 1
    if not counts:
        return None
    return error(
        aggregate([text if count == 1 else f"{text} (repeated {count} times)" for text, count in counts.items()])
    )


def aggregate(texts: Sequence[str]) -> str:
    """Join several errors as upstream does. Their order is random there; here they are sorted."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(sorted(texts))}]"


def pass_extenders(plan: Plan, pod: Pod, extenders: Sequence[Extender], result: ClassicResult) -> None:
    """Ask extenders which of the feasible nodes they leave."""
    common = result.common
    common.extended = ExtendedCycle(extenders)
    left = find_nodes_that_pass_extenders(extenders, common.extended, pod, plan.state.nodes, result.order)
    if isinstance(left, Status):
        common.failure = left
        return
    result.order = left
    common.feasible_nodes = len(left)


def _said_by_extenders(common: ScheduleResult) -> dict[str, str]:
    """Return why extenders rejected nodes, by name."""
    statuses = common.extended.statuses if common.extended is not None else {}
    return {name: status.message for name, status in statuses.items()}


def prioritize_nodes(
    plan: Plan, pod: Pod, result: ClassicResult, settings: CycleSettings, extenders: Sequence[Extender] = ()
) -> None:
    """Score the feasible nodes, add what extenders say, and choose the host."""
    common, state = result.common, plan.state
    common.scored = True
    common.failure = priority_errors(plan, len(result.order))
    if common.failure is not None:
        return
    feasible: Bools = np.zeros(state.nodes.capacity, dtype=np.bool_)
    feasible[result.order] = True
    if common.sample is None and np.array_equal(feasible, plan.feasible):
        plan.refresh_scores()
        total = plan.total
    else:
        common.table = score_over(plan, feasible)
        total = common.table.total
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


def priority_errors(plan: Plan, count: int) -> Status | None:
    """Return the error where a priority can't score the pod: that of every cell of the table, collected.

    A priority that is mapped fails on each node, one that is computed as a whole fails once.
    """
    texts: list[str] = []
    for entry in plan.profile.score:
        plugin = entry.plugin
        text = plugin.map_error(plan.specs[plugin.name]) if isinstance(plugin, FailingPriority) else ""
        if text:
            texts += [text] * (1 if isinstance(plugin, RowPriority) else count)
    return error(aggregate(texts)) if texts else None
