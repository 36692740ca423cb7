"""Preemption of the classic scheduler: the victims on each node, and the choice of the node."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.classic.fit_error import FitError
from bayplan.classic.trial import NodeTrial
from bayplan.engine.nominated_pods import NominatedPods
from bayplan.engine.plan import Plan
from bayplan.engine.queued_pod import key_of
from bayplan.framework.extender import Extender
from bayplan.framework.extender import Victims as ExtenderVictims
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.framework.preemption.evaluator import NEVER, importance, pods_on
from bayplan.framework.preemption.shortlist import PRIORITY_OFFSET
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.selectors import SelectorError, compile_label_selector
from bayplan.state.cluster_state import ClusterState
from bayplan.state.object_catalog import ObjectCatalog
from bayplan.state.pod_info import PodInfo


class Victims(msgspec.Struct, frozen=True):
    """The victims on a node: those that violate a budget first, each group sorted by importance, highest first."""

    pods: tuple[PodInfo, ...]
    num_pdb_violations: int

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of the victims."""
        return tuple(info.key for info in self.pods)


class Preemption(msgspec.Struct, frozen=True):
    """The result of preemption.

    Attributes:
        candidates: the victims by row, in visiting order.
        best: the best rows; upstream takes any of them.
        clear_own_nomination: whether evicting pods can't help on any node, so that the pod's own nomination must be
            cleared.
    """

    candidates: dict[int, Victims]
    best: tuple[int, ...] = ()
    clear_own_nomination: bool = False


NOTHING = Preemption({})


def preempt(
    pod: Pod,
    fit_error: FitError,
    nominated: NominatedPods,
    *,
    non_preempting: bool,
    custom: frozenset[str] = frozenset(),
) -> Preemption:
    """Find nodes on which a pod without a feasible node could preempt other pods.

    Args:
        pod: the newest version of the pod.
        fit_error: why it has no feasible node.
        nominated: the nominated pods that count for it.
        non_preempting: the gate NonPreemptingPriority.
        custom: the names of custom plugins.
    """
    state = fit_error.plan.state
    if not pod_eligible_to_preempt_others(pod, state, non_preempting=non_preempting):
        return NOTHING
    potential = fit_error.nodes_where_preemption_might_help()
    if not len(potential):
        return Preemption({}, clear_own_nomination=True)
    budgets = _budgets(state.catalog)
    candidates: dict[int, Victims] = {}
    for row in potential.tolist():
        victims = select_victims_on_node(fit_error.plan, pod, row, nominated.pods_at(row), budgets, custom)
        if victims is not None:
            candidates[row] = victims
    return Preemption(candidates, pick_one_node_for_preemption(candidates))


def with_extenders(found: Preemption, pod: Pod, extenders: Sequence[Extender], state: ClusterState) -> Preemption:
    """Return the candidates that extenders with a preempt verb accept; none if a non-ignorable extender fails."""
    candidates = found.candidates
    for extender in extenders:
        if not candidates:
            break
        if not extender.supports_preemption or not extender.is_interested(pod):
            continue
        names = state.nodes.names
        victims_by_node = {
            names[row] or "": ExtenderVictims(tuple(info.pod for info in victims.pods), victims.num_pdb_violations)
            for row, victims in candidates.items()
        }
        try:
            answer = extender.process_preemption(pod, victims_by_node, lambda name: pods_on(name, state))
        except ExtenderFailure:
            if extender.ignorable:
                continue
            return NOTHING
        candidates = {
            state.nodes.row_of[name]: Victims(
                tuple(state.pods[key_of(item)] for item in victims.pods),
                victims.num_pdb_violations,
            )
            for name, victims in answer.items()
        }
    return Preemption(candidates, pick_one_node_for_preemption(candidates), found.clear_own_nomination)


def pod_eligible_to_preempt_others(pod: Pod, state: ClusterState, *, non_preempting: bool) -> bool:
    """Return whether a pod may preempt: not while a pod of lower priority terminates on its nominated node."""
    if non_preempting and pod.spec.preemption_policy == NEVER:
        return False
    row = state.nodes.row_of.get(pod.status.nominated_node_name) if pod.status.nominated_node_name else None
    if row is None:
        return True
    priority = pod.spec.priority or 0
    return not any(
        info.pod.metadata.deletion_timestamp is not None and info.priority < priority
        for info in state.pods_on[row].values()
    )


def select_victims_on_node(
    plan: Plan,
    pod: Pod,
    row: int,
    nominated: Sequence[PodInfo],
    budgets: Sequence[PodDisruptionBudget],
    custom: frozenset[str] = frozenset(),
) -> Victims | None:
    """Return the minimal victims on a node for the pod, or None if evicting all pods of lower priority is not enough.

    All pods of lower priority are removed, and added back one by one if the pod still fits: first those whose budget
    allows no disruption; in each group, the most important first.
    """
    state, priority = plan.state, pod.spec.priority or 0
    potential = sorted((info for info in state.pods_on[row].values() if info.priority < priority), key=importance)
    victims: list[PodInfo] = []
    trial = NodeTrial(plan, row, custom)
    try:
        for info in potential:
            trial.remove(info)
        fits = trial.fits(nominated)
        protected = [violates_budget(info, budgets) for info in potential] if fits else []
        violating = [info for info, violates in zip(potential, protected, strict=bool(fits)) if violates]
        others = [info for info, violates in zip(potential, protected, strict=bool(fits)) if not violates]
        violations = 0
        for number, info in enumerate((*violating, *others)):
            trial.restore(info)
            if not trial.fits(nominated):
                trial.remove(info)
                victims.append(info)
                violations += number < len(violating)
    finally:
        trial.close()
    return Victims(tuple(victims), violations) if fits else None


def _budgets(catalog: ObjectCatalog) -> list[PodDisruptionBudget]:
    """Return the budgets that allow no disruption. As upstream, counts of other budgets are not decremented."""
    return [item for item in catalog.all(PodDisruptionBudget) if item.status.disruptions_allowed <= 0]


def violates_budget(info: PodInfo, budgets: Sequence[PodDisruptionBudget]) -> bool:
    """Return whether one of these exhausted budgets selects a pod; an empty selector selects no pods."""
    metadata = info.pod.metadata
    if not metadata.labels:
        return False
    for budget in budgets:
        if budget.metadata.namespace != metadata.namespace:
            continue
        try:
            selector = compile_label_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not selector.matches_everything and selector.matches(metadata.labels):
            return True
    return False


def pick_one_node_for_preemption(candidates: dict[int, Victims]) -> tuple[int, ...]:
    """Return the best rows; upstream takes any of them.

    Nodes without victims are best. Otherwise these criteria apply in order: fewest budget violations, lowest priority
    of the first victim, lowest sum of priorities (each + 2^31), fewest victims, latest start time of the earliest
    started victim with the highest priority.
    """
    free = tuple(row for row, victims in candidates.items() if not victims.pods)
    if free or not candidates:
        return free
    rows = list(candidates)
    for criterion in (_violations, _highest_priority, _sum_of_priorities, _count, _earliest_start):
        values = {row: criterion(candidates[row]) for row in rows}
        least = min(values.values())
        rows = [row for row in rows if values[row] == least]
        if len(rows) == 1:
            break
    return tuple(rows)


def _violations(victims: Victims) -> int:
    return victims.num_pdb_violations


def _highest_priority(victims: Victims) -> int:
    # Upstream takes the first victim, which is not the most important one if a less important victim violates a budget.
    return victims.pods[0].priority


def _sum_of_priorities(victims: Victims) -> int:
    return sum(info.priority + PRIORITY_OFFSET for info in victims.pods)


def _count(victims: Victims) -> int:
    return len(victims.pods)


def _earliest_start(victims: Victims) -> int:
    highest = max(info.priority for info in victims.pods)
    return -min(info.started_at() for info in victims.pods if info.priority == highest)
