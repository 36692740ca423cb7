"""Steps that change the pod itself: tolerate, relax, shrink, raise its priority, remove a gate, or create missing objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from bayplan.analysis.filter_matrix import FIT, GATES, NODE_AFFINITY, TAINTS
from bayplan.analysis.node_taints import (
    is_condition_taint,
    reserving_taints,
    taint_text,
    taints_of_selected,
    untolerated_taints,
)
from bayplan.analysis.scheduler_surroundings import nominated_amounts
from bayplan.analysis.units import format_amount, format_list
from bayplan.answers.affinity_steps import (
    affinity_relaxations,
    shared_relaxations,
    unreadable_pod_terms,
    without_node_affinity,
)
from bayplan.answers.missing_steps import missing_steps
from bayplan.answers.pod_diagnosis import PodDiagnosis
from bayplan.answers.spread_steps import counted_domains
from bayplan.answers.steps import DROPPED, Step, StepKind, relaxation, with_spec
from bayplan.answers.trial import Trial
from bayplan.base.counted_nouns import plural
from bayplan.engine.decision import Outcome
from bayplan.objects.admission import with_priority_class
from bayplan.objects.affinity import Toleration
from bayplan.objects.meta import ResourceList
from bayplan.objects.node import Taint
from bayplan.objects.pod import Container, Pod, ResourceRequirements
from bayplan.objects.policy import PriorityClass
from bayplan.objects.quantity import milli_value, value
from bayplan.objects.requests import accounted_requests, fit_requests
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import PODS

SYSTEM_PRIORITY = 1_000_000_000
"""The lowest priority of Kubernetes' system classes."""

_MAX_SETS = 8
_MAX_SHRINKS = 3
_MAX_CLASSES = 5
_MEMORY_STEP = 1 << 20
_SMALLEST_SHARE = 0.1
"""The smallest fraction to which a request may be reduced."""


def pod_steps(diagnosis: PodDiagnosis, trial: Trial, node: str = "") -> Iterator[Step]:
    """Yield the steps that change the pod, or create objects that it refers to.

    Args:
        diagnosis: the pod with the verdicts of all filters.
        trial: the cluster.
        node: the only node to consider; "" for all.
    """
    yield from gate_steps(diagnosis.pod)
    yield from missing_steps(diagnosis, trial)
    yield from _shrinks(diagnosis, trial, node)
    yield from _unreadable(diagnosis)
    yield from _relaxations(diagnosis.pod)
    yield from shared_relaxations(diagnosis.pod, trial)
    yield from _priorities(diagnosis, trial)
    yield from _tolerations(diagnosis, trial, node)


def matrix_name(diagnosis: PodDiagnosis, row: int) -> str:
    """Return the name of the node in a row of the matrix."""
    return diagnosis.matrix.nodes[row]


# --- what is missing --------------------------------------------------------------------------------------------------


def gate_steps(pod: Pod) -> Iterator[Step]:
    """Yield a step that removes all scheduling gates of a pod, if it has any: fewer would not help."""
    names = [gate.name for gate in pod.spec.scheduling_gates]
    if names:
        yield Step(
            StepKind.UNGATE,
            f"remove the scheduling {plural('gate', len(names))} {format_list(names)}",
            GATES,
            edit_pod=partial(with_spec, scheduling_gates=()),
        )


# --- taints -----------------------------------------------------------------------------------------------------------


def _tolerations(diagnosis: PodDiagnosis, trial: Trial, only: str) -> Iterator[Step]:
    """Yield steps that tolerate the taints of healthy nodes: the smallest sets of taints first, then the most frequent."""
    if TAINTS not in diagnosis.matrix.filters:
        return
    number = diagnosis.matrix.filters.index(TAINTS)
    groups: dict[tuple[str, ...], tuple[tuple[Taint, ...], list[str]]] = {}
    for row in np.flatnonzero(diagnosis.matrix.failing[number]).tolist():
        node = trial.node(diagnosis.matrix.nodes[row])
        taints = () if node is None else tuple(untolerated_taints(diagnosis.pod, node))
        if not taints or any(map(is_condition_taint, taints)) or only not in ("", matrix_name(diagnosis, row)):
            continue
        key = tuple(sorted(map(taint_text, taints)))
        groups.setdefault(key, (taints, []))[1].append(diagnosis.matrix.nodes[row])
    order = sorted(groups.items(), key=lambda each: (len(each[0]), -len(each[1][1]), each[0]))
    requests = accounted_requests(diagnosis.pod, trial.state.request_gates).requests
    reserving = reserving_taints(diagnosis.pod, requests, trial.nodes()).values()
    own = {taint_text(taint) for taints in reserving for taint in taints}
    own |= {taint_text(taint) for taint in taints_of_selected(diagnosis.pod, trial.nodes())}
    for place, (texts, (taints, names)) in enumerate(order[:_MAX_SETS]):
        yield Step(
            StepKind.TOLERATE_OWN if own.issuperset(texts) else StepKind.TOLERATE,
            f"tolerate {' and '.join(texts)}",
            TAINTS,
            cost=place / _MAX_SETS,
            nodes=frozenset(names),
            edit_pod=partial(_tolerating, taints),
            parts=tuple(f"tolerate {' and '.join(each)}" for each in groups if set(each) < set(texts)),
        )


def _tolerating(taints: tuple[Taint, ...], pod: Pod) -> Pod:
    more = tuple(Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect) for each in taints)
    return with_spec(pod, tolerations=(*pod.spec.tolerations, *more))


# --- constraints ------------------------------------------------------------------------------------------------------


def _relaxations(pod: Pod) -> Iterator[Step]:
    """Yield steps that soften one of the pod's hard rules, or remove a part of it."""
    spec = pod.spec
    entries = {key: f"drop {key}={wanted} from the nodeSelector" for key, wanted in (spec.node_selector or {}).items()}
    for key, text in entries.items():
        yield relaxation(
            text,
            NODE_AFFINITY,
            cost=0.5,
            edit_pod=partial(_without_selector, key),
            risk=DROPPED,
        )
    if len(entries) > 1:
        yield relaxation(
            "drop the nodeSelector",
            NODE_AFFINITY,
            cost=0.8,
            edit_pod=partial(with_spec, node_selector=None),
            risk=DROPPED,
            parts=tuple(entries.values()),
        )
    affinity = spec.affinity
    if affinity is not None:
        yield from affinity_relaxations(affinity)
    hard: list[str] = []
    for place, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            hard.append(f"spread over {constraint.topology_key} with whenUnsatisfiable: ScheduleAnyway")
            yield relaxation(
                hard[-1],
                "PodTopologySpread",
                cost=0.1,
                edit_pod=partial(_soft_spread, place),
            )
            yield from counted_domains(place, constraint)
    if len(hard) > 1:
        yield relaxation(
            "make all topologySpreadConstraints ScheduleAnyway",
            "PodTopologySpread",
            cost=0.2,
            edit_pod=_all_soft_spread,
            parts=tuple(hard),
        )
    if any(port.host_port for each in spec.containers for port in each.ports):
        yield relaxation("do without host ports", "NodePorts", cost=0.7, edit_pod=_without_host_ports, risk=DROPPED)


def _unreadable(diagnosis: PodDiagnosis) -> Iterator[Step]:
    """Yield steps that drop pod affinity that can't be read, and the preferred node affinity if the attempt failed.

    The node affinity may be one that only the scheduler rejects.
    """
    affinity = diagnosis.pod.spec.affinity
    if affinity is not None:
        yield from unreadable_pod_terms(affinity)
    node = affinity.node_affinity if affinity is not None else None
    is_error = diagnosis.decision is not None and diagnosis.decision.record.outcome is Outcome.ERROR
    if is_error and node is not None and node.preferred_during_scheduling_ignored_during_execution:
        yield relaxation(
            "drop the preferred node affinity, which can't be read",
            NODE_AFFINITY,
            cost=0.05,
            edit_pod=partial(without_node_affinity, "preferred_during_scheduling_ignored_during_execution"),
            risk=DROPPED,
        )


def _without_selector(key: str, pod: Pod) -> Pod:
    left = {name: wanted for name, wanted in (pod.spec.node_selector or {}).items() if name != key}
    return with_spec(pod, node_selector=left or None)


def _soft_spread(place: int, pod: Pod) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[place] = replace(constraints[place], when_unsatisfiable="ScheduleAnyway")
    return with_spec(pod, topology_spread_constraints=tuple(constraints))


def _all_soft_spread(pod: Pod) -> Pod:
    soft = tuple(replace(each, when_unsatisfiable="ScheduleAnyway") for each in pod.spec.topology_spread_constraints)
    return with_spec(pod, topology_spread_constraints=soft)


def _without_host_ports(pod: Pod) -> Pod:
    def bare(container: Container) -> Container:
        return replace(container, ports=tuple(replace(port, host_port=0) for port in container.ports))

    return with_spec(pod, containers=tuple(map(bare, pod.spec.containers)))


# --- requests ---------------------------------------------------------------------------------------------------------


def _shrinks(diagnosis: PodDiagnosis, trial: Trial, only: str) -> Iterator[Step]:
    """Yield steps that reduce requests so that the pod fits on some node, the smallest reductions first."""
    pod, matrix = diagnosis.pod, diagnosis.matrix
    if FIT not in matrix.filters:
        return
    requests = fit_requests(pod, trial.state.request_gates)
    failing = matrix.failing[matrix.filters.index(FIT)]
    others = matrix.failing.sum(axis=0) - failing
    found: dict[tuple[tuple[tuple[str, int], ...], bool], tuple[float, list[str]]] = {}
    rows = np.flatnonzero(failing & (others <= 1)).tolist() if not only else [matrix.nodes.index(only)]
    for row in rows:
        found_cut = _cut(pod, requests, trial, matrix.nodes[row])
        if found_cut is not None:
            share = max(1 - left / requests[resource] for resource, left in found_cut.items())
            key = tuple(sorted(found_cut.items()))
            is_enough = not others[row]
            found.setdefault((key, is_enough), (share + 0.001 * int(others[row]), []))[1].append(matrix.nodes[row])
    least = sorted(found.items(), key=lambda each: (each[1][0], each[0]))
    # For nodes that another filter rejects, too, the reduction only helps in a pair of steps. Such nodes have their own limit.
    enough = [each for each in least if each[0][1]][:_MAX_SHRINKS]
    for_pairs = [each for each in least if not each[0][1]][:_MAX_SHRINKS]
    earlier: list[tuple[dict[str, int], str]] = []
    for (key, _), (share, names) in (*enough, *for_pairs):
        shown = ", ".join(
            f"{resource} from {format_amount(resource, requests[resource])} to {format_amount(resource, left)}"
            for resource, left in key
        )
        text, cut = f"reduce the {plural('request', len(key))}: {shown}", dict(key)
        parts = [
            other for kept, other in earlier if all(cut.get(each, left + 1) <= left for each, left in kept.items())
        ]
        earlier.append((cut, text))
        yield Step(
            StepKind.SHRINK,
            text,
            FIT,
            cost=min(share, 0.999),
            nodes=frozenset(names),
            edit_pod=partial(_shrunk, cut, requests),
            # Show only the smallest reduction of the same resources.
            group=f"shrink {' '.join(resource for resource, _ in key)}",
            parts=tuple(parts),
            risk=_shrink_risk([resource for resource, _ in key]),
        )


def _shrink_risk(resources: Sequence[str]) -> str:
    """Return the possible effect of smaller requests; "" to use the risk of the kind of step."""
    risks = {"cpu": "run slower", "memory": "run out of memory", "ephemeral-storage": "be evicted for lack of storage"}
    found = [risks[resource] for resource in resources if resource in risks]
    return f"the pod may {' or '.join(found)}" if found else ""


def _cut(pod: Pod, requests: dict[str, int], trial: Trial, name: str) -> dict[str, int] | None:
    """Return the free amounts, rounded down, of the resources that a node lacks; None if reducing requests does not help."""
    state, nominated = trial.state, nominated_amounts(trial.scheduler, pod, name)
    row = state.nodes.row_of[name]
    if state.usage.item(POD_COUNT, row) + nominated.get(PODS, 0) >= int(state.nodes.allowed_pods[row]):
        return None
    found: dict[str, int] = {}
    for resource, wanted in requests.items():
        number = state.nodes.resources.get(resource)
        free = 0
        if number is not None:
            free = state.nodes.allocatable.item(number, row) - state.usage.item(FIRST_RESOURCE + number, row)
            free -= nominated.get(resource, 0)
        if wanted <= free or not wanted:
            continue
        step = 10 if resource == "cpu" else _MEMORY_STEP if resource in ("memory", "ephemeral-storage") else 1
        left = free // step * step
        if left < max(step, int(wanted * _SMALLEST_SHARE)):
            return None
        found[resource] = left
    return found or None


def _shrunk(cut: dict[str, int], requests: dict[str, int], pod: Pod) -> Pod:
    """Return a pod with all containers' requests reduced in proportion. Only limits of extended resources change with them."""
    spec = pod.spec
    for resource, left in cut.items():
        share = left / requests[resource]
        spec = replace(
            spec,
            containers=tuple(_less(each, resource, share) for each in spec.containers),
            init_containers=tuple(_less(each, resource, share) for each in spec.init_containers),
            resources=None if spec.resources is None else _less_of(spec.resources, resource, share),
        )
    return replace(pod, spec=spec)


def _less(container: Container, resource: str, share: float) -> Container:
    return replace(container, resources=_less_of(container.resources, resource, share))


def _less_of(resources: ResourceRequirements, resource: str, share: float) -> ResourceRequirements:
    amounts: ResourceList = dict(resources.requests)
    if resource not in amounts:
        return resources
    if resource == "cpu":
        amounts[resource] = f"{int(milli_value(amounts[resource]) * share)}m"
    else:
        amounts[resource] = str(int(value(amounts[resource]) * share))
    limits: ResourceList = dict(resources.limits)
    if resource in limits and "/" in resource:
        # For extended resources, requests and limits must be equal.
        limits[resource] = amounts[resource]
    return replace(resources, requests=amounts, limits=limits)


# --- priority ---------------------------------------------------------------------------------------------------------


def _priorities(diagnosis: PodDiagnosis, trial: Trial) -> Iterator[Step]:
    """Yield steps that raise the pod's priority, lowest class first. If the pod must not preempt, permit that first."""
    pod = diagnosis.pod
    own = pod.spec.priority or 0
    if pod.spec.preemption_policy == "Never":
        yield Step(
            StepKind.PRIORITY,
            "let it preempt (preemptionPolicy: PreemptLowerPriority)",
            "DefaultPreemption",
            edit_pod=lambda old: with_spec(old, preemption_policy=None),
            preempts=True,
        )
    classes = sorted(
        (each for each in trial.catalog.all(PriorityClass) if own < each.value < SYSTEM_PRIORITY),
        key=lambda each: (each.value, each.metadata.name),
    )
    lower: list[str] = []
    for place, each in enumerate(classes[:_MAX_CLASSES]):
        text = f"raise its priority to {each.value:,} (priorityClassName: {each.metadata.name})"
        yield Step(
            StepKind.PRIORITY,
            text,
            "DefaultPreemption",
            cost=0.1 + place / (2 * _MAX_CLASSES),
            edit_pod=partial(with_priority_class, chosen=each),
            preempts=True,
            parts=tuple(lower),
        )
        lower.append(text)
