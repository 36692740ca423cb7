"""Explain a pod in the present cluster: why it waits and what would help, or where it would go if it were scheduled again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from bayplan.analysis.explain import BEST_NODES, explain
from bayplan.analysis.explanation import Attempt, AttemptDetail, Explanation, NodeDetail, PluginVerdict, Remedy
from bayplan.analysis.filter_matrix import LOAD, filter_matrix
from bayplan.analysis.node_names import unknown_node
from bayplan.analysis.node_taints import LEAVING_TAINTS, is_condition_taint, untolerated_taints
from bayplan.analysis.units import format_list
from bayplan.answers.current_source import CurrentSource
from bayplan.answers.displaced_pods import MIRROR
from bayplan.answers.drain_rules import CORDON_TAINT
from bayplan.answers.move_steps import move_steps
from bayplan.answers.node_steps import node_steps
from bayplan.answers.pod_diagnosis import PodDiagnosis, diagnose_pod
from bayplan.answers.pod_steps import pod_steps
from bayplan.answers.step_texts import preemption_text
from bayplan.answers.steps import RANKS, Step, StepKind, changes_of, edited
from bayplan.answers.trial import Trial
from bayplan.answers.unblock import Suggestion, unblock
from bayplan.base.errors import InputError
from bayplan.objects.node import Taint
from bayplan.objects.pod import Pod, not_scheduled
from bayplan.sim.result import PodFate, PodTimeline

MAX_REMEDIES = 5


def explain_now(
    trial: Trial,
    pods: Sequence[PodTimeline],
    life: PodTimeline,
    *,
    node: str = "",
    best: int = BEST_NODES,
    now_ns: int = 0,
) -> Explanation:
    """Explain a pod in the present cluster.

    Args:
        trial: the cluster.
        pods: all pods, see `bayplan.answers.current_source.current_pods`.
        life: the pod.
        node: a node for which to show all filters, each with the smallest change after which it no longer rejects the
        node; "" for none.
        best: the maximum number of nodes whose scores are compared.
        now_ns: the present time.

    Raises:
        InputError: there is no such node.
    """
    if node and trial.node(node) is None:
        raise _unknown_node(node, trial)
    # Treat a pod without a creation time as new.
    arrived_ns = min(life.arrived_ns, now_ns) or now_ns
    life = replace(
        life, arrived_ns=arrived_ns, bound_ns=None if life.bound_ns is None else max(life.bound_ns, arrived_ns)
    )
    source = CurrentSource(trial, pods, life, now_ns)
    found = explain(source, [life], node=node if source.records else "", best=best)
    found = replace(_with_reported(found, life, source), age_ns=max(now_ns - arrived_ns, 0))
    if life.pod is None or life.fate in (PodFate.UNATTENDED, PodFate.SUCCEEDED, PodFate.FAILED, PodFate.DELETED):
        return found
    if life.node:
        text = _stays(life.pod, trial)
        return replace(found, verdict=text) if text else _again(found, life, source)
    if found.detail is not None and found.detail.attempt.node:
        fits = f"{found.detail.feasible:,} of {found.detail.nodes:,}"
        found = replace(
            found, verdict=f"{life.key} fits now: it would go to {found.detail.attempt.node} ({fits} nodes fit)"
        )
    return with_suggestions(found, trial, life.pod, node)


def _with_reported(found: Explanation, life: PodTimeline, source: CurrentSource) -> Explanation:
    """Add the time at which the explained message was reported, and the message of Bayplan's attempt if it differs."""
    condition = None if life.pod is None else not_scheduled(life.pod)
    if not found.message or condition is None:
        return found
    own = source.records[0].message if source.records else ""
    at = condition.last_transition_time or "an unknown time"
    return replace(found, reported_at=at, message_now=own if own != found.message else "")


def _stays(pod: Pod, trial: Trial) -> str:
    """Return a verdict about a placed pod that the scheduler would never place again; "" for all others."""
    where = f"{pod.key} is on {pod.spec.node_name}"
    if trial.node(pod.spec.node_name) is None:
        return f"{where}, which is not in the cluster"
    if pod.metadata.deletion_timestamp is not None:
        return f"{where}, and is being deleted"
    if MIRROR in pod.metadata.annotations:
        return f"{where}: it is a static pod, which the kubelet of this node runs without the scheduler"
    return ""


def _again(found: Explanation, life: PodTimeline, source: CurrentSource) -> Explanation:
    """Add to the explanation of a placed pod the node on which the scheduler would place it now."""
    detail = found.detail
    if detail is None:
        return found
    note = "the attempt is hypothetical: the pod was taken off its node and scheduled again in a copy of the cluster"
    if detail.attempt.outcome == "error":
        text = f"{life.key} is on {life.node}; scheduling it again now fails: {source.message_of(life)}"
    elif not detail.attempt.node:
        text = f"{life.key} is on {life.node}; if it had to be scheduled again now, it would be pending"
    elif detail.attempt.node == life.node:
        text = f"{life.key} is on {life.node}, and would be placed there again now"
    else:
        text = f"{life.key} is on {life.node}; scheduled again now, it would go to {detail.attempt.node}"
    return replace(found, verdict=text, notes=[*found.notes, note])


def with_suggestions(found: Explanation, trial: Trial, pod: Pod, node: str = "") -> Explanation:
    """Add suggestions to the explanation of a waiting pod and, for a node, a change that resolves each rejection.

    A node of the attempt that is no longer in the cluster has only the results of the attempt.

    Raises:
        InputError: neither the cluster nor the attempt has a node of this name.
    """
    if pod.metadata.deletion_timestamp is not None:
        # The scheduler skips the pod, whatever the cluster has.
        return replace(found, verdict=f"{pod.key} has no node, and is being deleted")
    if pod.spec.scheduler_name not in trial.profiles:
        return found
    answer = unblock(trial, [pod])
    detail = found.detail
    if answer.cause is not None and (not found.attempts or (detail is not None and detail.rejected_by_pre_filter)):
        # No filter ran: the pod was not tried, or the attempt ended before. The diagnosis knows what else is in the way.
        found = replace(found, verdict=f"{pod.key} is {found.fate}: {answer.cause.headline}")
    if detail is not None:
        found = replace(found, detail=_with_remedies(detail, answer.suggestions))
    if node and trial.node(node) is not None:
        found = replace(found, node_detail=_node_detail(found.node_detail, diagnose_pod(trial, pod), trial, node))
    elif node and found.node_detail is None:
        raise _unknown_node(node, trial)
    return found


def _unknown_node(name: str, trial: Trial) -> InputError:
    return unknown_node(name, [each.metadata.name for each in trial.nodes()], wanted="a node of the cluster")


def _with_remedies(detail: AttemptDetail, suggestions: Sequence[Suggestion]) -> AttemptDetail:
    shown = [_remedy(each, detail.attempt) for each in suggestions[:MAX_REMEDIES]]
    return replace(detail, remedies=shown)


def _remedy(suggestion: Suggestion, attempt: Attempt) -> Remedy:
    """Return a suggestion as a remedy. If it is to wait for preemption, name the victims of the explained attempt.

    If several candidates are equally good, each attempt chooses one at random.
    """
    is_preemption = suggestion.kind == StepKind.WAIT.value and not suggestion.ended
    if is_preemption and attempt.nominated_node and attempt.victims:
        text = preemption_text(attempt.victims, attempt.nominated_node)
        return Remedy(kind=suggestion.kind, text=text, nodes=[attempt.nominated_node])
    return Remedy(kind=suggestion.kind, text=suggestion.text, nodes=[suggestion.node])


# --- one node ---------------------------------------------------------------------------------------------------------


def _node_detail(known: NodeDetail | None, diagnosis: PodDiagnosis, trial: Trial, node: str) -> NodeDetail:
    verdicts = node_verdicts(diagnosis, trial, node)
    if known is not None and known.verdicts:
        # The cluster may have changed since the attempt: keep the attempt's results, and add the changes that would help now.
        now = {each.plugin: each.change for each in verdicts}
        verdicts = [
            each if each.code == "Success" else replace(each, change=now.get(each.plugin, ""))
            for each in known.verdicts
        ]
    rejecting = [each.plugin for each in verdicts if each.code != "Success"]
    shown = format_list(rejecting) if rejecting else ""
    fate = f"{shown} {'rejects' if len(rejecting) == 1 else 'reject'} {node}" if shown else f"no filter rejects {node}"
    if known is None:
        return NodeDetail(node=node, fate=fate, verdicts=verdicts, score=None, advantages=[], free={}, requested={})
    return replace(known, verdicts=verdicts, fate=fate if len(rejecting) != 1 else known.fate)


def node_verdicts(diagnosis: PodDiagnosis, trial: Trial, node: str) -> list[PluginVerdict]:
    """Return the result of every filter for a node and, for rejections, the smallest change that would resolve them."""
    matrix = diagnosis.matrix
    row = matrix.nodes.index(node) if node in matrix.nodes else -1
    found: list[PluginVerdict] = []
    for plugin in matrix.filters:
        if not matrix.ran_on(plugin, row):
            continue
        status = matrix.status(plugin, row)
        if status is None:
            found.append(PluginVerdict(plugin=plugin, code="Success", reasons=[]))
            continue
        change = smallest_change(plugin, diagnosis, trial, node)
        reasons = list(status.reasons) or [status.message]
        found.append(PluginVerdict(plugin=plugin, code=status.code.text, reasons=reasons, change=change))
    return found


def smallest_change(plugin: str, diagnosis: PodDiagnosis, trial: Trial, node: str) -> str:
    """Return the least risky change after which a filter no longer rejects a node, tested in a fork; "" if none is known."""
    steps = [
        step
        for step in (*pod_steps(diagnosis, trial, node), *node_steps(diagnosis, trial, node))
        if step.lifts == plugin
    ]
    if plugin in LOAD:
        steps += [step for step in move_steps(diagnosis, trial, node) if step.nodes is not None and node in step.nodes]
    if plugin in diagnosis.matrix.whole:
        steps = [step for step in pod_steps(diagnosis, trial, node) if not step.preempts]
    for step in sorted(steps, key=lambda each: (RANKS[each.kind], each.cost)):
        if not _rejects(plugin, step, diagnosis, trial, node):
            return step.text
    of_node = trial.node(node)
    ill = (
        []
        if of_node is None
        else [each for each in untolerated_taints(diagnosis.pod, of_node) if is_condition_taint(each)]
    )
    return _remedy_of_conditions(node, ill) if plugin == "TaintToleration" and ill else ""


def _remedy_of_conditions(node: str, taints: Sequence[Taint]) -> str:
    """Return what removes taints that mark a node as cordoned, unhealthy or about to be removed."""
    # A condition may have two taints of one key, with the effects NoSchedule and NoExecute.
    keys = list(dict.fromkeys(each.key for each in taints))
    leaving = [key for key in keys if key in LEAVING_TAINTS]
    if leaving:
        return f"none: an autoscaler is removing the node ({', '.join(leaving)})"
    ill = [key for key in keys if key != CORDON_TAINT]
    parts = [f"uncordon {node}"] if CORDON_TAINT in keys else []
    if ill:
        parts.append(f"repair the node ({', '.join(ill)}); such a taint should never be tolerated")
    return " and ".join(parts)


def _rejects(plugin: str, step: Step, diagnosis: PodDiagnosis, trial: Trial, node: str) -> bool:
    """Return whether a filter still rejects a node after a step, or the pod could not be scheduled at all."""
    pod = edited(diagnosis.pod, [step])
    others = [name for name in diagnosis.matrix.whole if name != plugin]
    decision = trial.decide_after(pod, changes_of([step], trial), others)
    if decision is None:
        return True
    if decision.pre_filter is not None:
        return decision.pre_filter.plugin == plugin
    matrix = filter_matrix(decision)
    return plugin in matrix.filters and matrix.status(plugin, matrix.nodes.index(node)) is not None
