"""Find the victims on one node: take pods off, ask the filters, and put back what can stay."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.engine.plan import Plan
from bayplan.engine.what_if import filter_row_now, place_all, trial
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.evaluator import NO_VICTIMS
from bayplan.framework.preemption.importance import importance
from bayplan.framework.status import Code, Status, error, unresolvable, verdict_code
from bayplan.state.pod_info import PodInfo

NO_VICTIMS_STATUS = unresolvable(NO_VICTIMS)


def victims_on_node(
    plan: Plan, row: int, priority: int, nominated: Sequence[PodInfo], budgets: DisruptionBudgets
) -> tuple[list[PodInfo], int] | Status:
    """Return the pods that must leave a node so that the plan's pod fits, the most important first, and how many are protected.

    All pods of lower priority are taken off, and put back one by one where the pod still fits: first those that a budget
    protects, each group from the most important on. Nominated pods count as if they ran there.

    Args:
        plan: of the pod that preempts; its PreFilter was run.
        row: the node.
        priority: of the pod.
        nominated: the nominated pods that count on the node.
        budgets: the disruption budgets.

    Returns:
        Victims and violations, or why the node is no candidate.
    """
    state = plan.state
    potential = sorted((info for info in state.pods_on[row].values() if info.priority < priority), key=importance)
    if not potential:
        return NO_VICTIMS_STATUS
    order = dict(state.pods_on[row])
    with trial(plan):
        found = _spare(plan, row, potential, nominated, budgets)
    # Undoing put pods back at the end; their order is that of their coming, and decides between equals.
    state.pods_on[row].clear()
    state.pods_on[row].update(order)
    return found


def _spare(
    plan: Plan, row: int, potential: list[PodInfo], nominated: Sequence[PodInfo], budgets: DisruptionBudgets
) -> tuple[list[PodInfo], int] | Status:
    state = plan.state
    for info in potential:
        state.remove_pod(info.key)
    refusal = _refusal(plan, row, nominated)
    if refusal is not None:
        return refusal
    violations = budgets.violated_by(potential)
    guarded = [info for info, violates in zip(potential, violations, strict=True) if violates]
    others = [info for info, violates in zip(potential, violations, strict=True) if not violates]
    victims = []
    violating = 0
    for number, info in enumerate((*guarded, *others)):
        state.place(info, row)
        if _refusal(plan, row, nominated) is not None:
            state.remove_pod(info.key)
            victims.append(info)
            violating += number < len(guarded)
    if guarded and others:
        victims.sort(key=importance)
    if not victims:
        return still_fits(plan, row)
    return victims, violating


def _refusal(plan: Plan, row: int, nominated: Sequence[PodInfo]) -> Status | None:
    """Return why the pod does not fit the node as it is now, with nominated pods and without them; None where it does."""
    if nominated:
        with plan.state.trial():
            place_all(plan, row, nominated)
            first, verdict = filter_row_now(plan, row)
        if first >= 0:
            return told(plan, first, verdict)
    first, verdict = filter_row_now(plan, row)
    return told(plan, first, verdict) if first >= 0 else None


def still_fits(plan: Plan, row: int) -> Status:
    """Return the Error for a node where the pod fits with all pods in place, although filters have rejected it there."""
    return error(f'expected at least one victim pod on node "{plan.state.nodes.names[row]}"')


def told(plan: Plan, first: int, verdict: int) -> Status:
    """Return the status of a failing filter, an Error in the words with which it would end a cycle."""
    if verdict_code(verdict) is Code.ERROR:
        return plan.filter_error(first, verdict)
    return plan.explain(first, verdict)
