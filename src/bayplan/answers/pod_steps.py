"""Steps that change the pod itself: tolerate, relax, shrink, raise its priority, remove a gate, or create missing objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from bayplan.analysis.filter_matrix import FIT, NODE_AFFINITY, TAINTS
from bayplan.analysis.node_groups_text import requirement_text
from bayplan.analysis.node_taints import reserving_taints, taint_text, taints_of_selected, untolerated_taints
from bayplan.analysis.units import format_amount
from bayplan.answers.displaced_pods import is_sibling
from bayplan.answers.missing_steps import missing_steps
from bayplan.answers.node_shapes import is_condition_taint
from bayplan.answers.pod_diagnosis import PodDiagnosis
from bayplan.answers.spread_steps import counted_domains
from bayplan.answers.steps import DROPPED, Step, StepKind
from bayplan.answers.trial import Trial
from bayplan.answers.workloads import workload_of
from bayplan.base.counted_nouns import plural
from bayplan.engine.decision import Outcome
from bayplan.objects.affinity import Affinity, NodeSelectorRequirement, Toleration
from bayplan.objects.meta import ResourceList
from bayplan.objects.node import Taint
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.objects.policy import PriorityClass
from bayplan.objects.quantity import milli_value, value
from bayplan.objects.requests import accounted_requests, fit_requests
from bayplan.objects.selectors import selector_text
from bayplan.state.pod_info import FIRST_RESOURCE

SYSTEM_PRIORITY = 1_000_000_000
"""The lowest priority of Kubernetes' system classes."""

_MAX_SETS = 8
_MAX_SHRINKS = 3
_MAX_CLASSES = 5
_MEMORY_STEP = 1 << 20
_SMALLEST_SHARE = 0.1
"""The smallest fraction to which a request may be reduced."""


_relax = partial(Step, StepKind.RELAX)


def pod_steps(diagnosis: PodDiagnosis, trial: Trial, node: str = "") -> Iterator[Step]:
    """Yield the steps that change the pod, or create objects that it refers to.

    Args:
        diagnosis: the pod with the verdicts of all filters.
        trial: the cluster.
        node: the only node to consider; "" for all.
    """
    yield from _gates(diagnosis)
    yield from missing_steps(diagnosis, trial)
    yield from _shrinks(diagnosis, trial, node)
    yield from _unreadable(diagnosis)
    yield from _relaxations(diagnosis.pod)
    yield from _shared_relaxations(diagnosis.pod, trial)
    yield from _priorities(diagnosis, trial)
    yield from _tolerations(diagnosis, trial, node)


def matrix_name(diagnosis: PodDiagnosis, row: int) -> str:
    """Return the name of the node in a row of the matrix."""
    return diagnosis.matrix.nodes[row]


def _with_spec(pod: Pod, **fields: object) -> Pod:
    return replace(pod, spec=replace(pod.spec, **fields))


# --- what is missing --------------------------------------------------------------------------------------------------


def _gates(diagnosis: PodDiagnosis) -> Iterator[Step]:
    for gate in diagnosis.pod.spec.scheduling_gates:
        yield Step(
            StepKind.UNGATE,
            f"remove the scheduling gate {gate.name}",
            "SchedulingGates",
            edit_pod=partial(_without_gate, gate.name),
        )
    if len(diagnosis.pod.spec.scheduling_gates) > 1:
        names = ", ".join(gate.name for gate in diagnosis.pod.spec.scheduling_gates)
        yield Step(
            StepKind.UNGATE,
            f"remove the scheduling gates {names}",
            "SchedulingGates",
            edit_pod=lambda pod: _with_spec(pod, scheduling_gates=()),
        )


def _without_gate(name: str, pod: Pod) -> Pod:
    return _with_spec(pod, scheduling_gates=tuple(each for each in pod.spec.scheduling_gates if each.name != name))


# --- taints -----------------------------------------------------------------------------------------------------------


def _tolerations(diagnosis: PodDiagnosis, trial: Trial, only: str) -> Iterator[Step]:
    """Yield steps that tolerate the taints of healthy nodes, the most frequent set of taints first."""
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
    largest = sorted(groups.items(), key=lambda each: (-len(each[1][1]), each[0]))
    requests = accounted_requests(diagnosis.pod, trial.state.request_gates).requests
    reserving = reserving_taints(diagnosis.pod, requests, trial.nodes()).values()
    own = {taint_text(taint) for taints in reserving for taint in taints}
    own |= {taint_text(taint) for taint in taints_of_selected(diagnosis.pod, trial.nodes())}
    for place, (texts, (taints, names)) in enumerate(largest[:_MAX_SETS]):
        yield Step(
            StepKind.TOLERATE_OWN if own.issuperset(texts) else StepKind.TOLERATE,
            f"tolerate {' and '.join(texts)}",
            TAINTS,
            cost=place / _MAX_SETS,
            nodes=frozenset(names),
            edit_pod=partial(_tolerating, taints),
        )


def _tolerating(taints: tuple[Taint, ...], pod: Pod) -> Pod:
    more = tuple(Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect) for each in taints)
    return _with_spec(pod, tolerations=(*pod.spec.tolerations, *more))


# --- constraints ------------------------------------------------------------------------------------------------------


def _relaxations(pod: Pod) -> Iterator[Step]:
    """Yield steps that soften one of the pod's hard rules, or remove a part of it."""
    spec = pod.spec
    for key, wanted in (spec.node_selector or {}).items():
        yield _relax(
            f"drop {key}={wanted} from the nodeSelector",
            NODE_AFFINITY,
            cost=0.5,
            edit_pod=partial(_without_selector, key),
            risk=DROPPED,
        )
    if len(spec.node_selector or {}) > 1:
        yield _relax(
            "drop the nodeSelector",
            NODE_AFFINITY,
            cost=0.8,
            edit_pod=partial(_with_spec, node_selector=None),
            risk=DROPPED,
        )
    affinity = spec.affinity
    if affinity is not None:
        yield from _affinity_relaxations(affinity)
    for place, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            yield _relax(
                f"spread over {constraint.topology_key} with whenUnsatisfiable: ScheduleAnyway",
                "PodTopologySpread",
                cost=0.1,
                edit_pod=partial(_soft_spread, place),
            )
            yield from counted_domains(place, constraint)
    if len(spec.topology_spread_constraints) > 1:
        yield _relax(
            "make all topologySpreadConstraints ScheduleAnyway",
            "PodTopologySpread",
            cost=0.2,
            edit_pod=_all_soft_spread,
        )
    if any(port.host_port for each in spec.containers for port in each.ports):
        yield _relax("do without host ports", "NodePorts", cost=0.7, edit_pod=_without_host_ports, risk=DROPPED)


def _unreadable(diagnosis: PodDiagnosis) -> Iterator[Step]:
    """Yield a step that drops the preferred node affinity if the attempt failed: it may be one that only the scheduler rejects."""
    affinity = diagnosis.pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    is_error = diagnosis.decision is not None and diagnosis.decision.record.outcome is Outcome.ERROR
    if is_error and node is not None and node.preferred_during_scheduling_ignored_during_execution:
        yield _relax(
            "drop the preferred node affinity, which can't be read",
            NODE_AFFINITY,
            cost=0.05,
            edit_pod=_without_preferences,
            risk=DROPPED,
        )


def _without_preferences(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    node = replace(affinity.node_affinity, preferred_during_scheduling_ignored_during_execution=None)
    return _with_spec(pod, affinity=replace(affinity, node_affinity=node))


def _affinity_relaxations(affinity: Affinity) -> Iterator[Step]:
    node = affinity.node_affinity
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if node is not None and required is not None:
        expressions = {
            requirement_text(each): each
            for term in required.node_selector_terms
            for each in (*term.match_expressions, *term.match_fields)
        }
        if len(expressions) > 1:
            for text, each in expressions.items():
                yield _relax(
                    f"drop {text} from the required node affinity",
                    NODE_AFFINITY,
                    cost=0.3,
                    edit_pod=partial(_without_expression, each),
                    risk=DROPPED,
                )
        yield _relax(
            "make the required node affinity preferred",
            NODE_AFFINITY,
            cost=0.4,
            edit_pod=_soft_node_affinity,
        )
    rules = [
        side.required_during_scheduling_ignored_during_execution
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if side is not None
    ]
    # If there is only one rule, the step that relaxes it does the same.
    if sum(map(bool, (required, *rules))) > 1:
        yield _relax(
            "make all required affinity preferred",
            "InterPodAffinity",
            cost=0.9,
            edit_pod=lambda pod: _with_spec(pod, affinity=None),
        )
    for anti in (False, True):
        side = affinity.pod_anti_affinity if anti else affinity.pod_affinity
        terms = side.required_during_scheduling_ignored_during_execution if side is not None else ()
        name = "anti-affinity" if anti else "affinity"
        if len(terms) > 1:
            yield _relax(
                f"make all required pod {name} preferred",
                "InterPodAffinity",
                cost=0.6,
                edit_pod=partial(_without_side, anti),
            )
        for place, term in enumerate(terms):
            yield _relax(
                f"make the required pod {name} to {selector_text(term.label_selector)} in {term.topology_key} preferred",
                "InterPodAffinity",
                cost=0.3,
                edit_pod=partial(_soft_pod_term, anti, place),
            )


def _shared_relaxations(pod: Pod, trial: Trial) -> Iterator[Step]:
    """Yield steps that soften an anti-affinity in all pods of the workload, because running pods would still reject the pod."""
    owner = pod.metadata.controller()
    side = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None
    terms = side.required_during_scheduling_ignored_during_execution if side is not None else ()
    if owner is None or not terms:
        return
    affinity = pod.spec.affinity
    siblings = [
        info.pod
        for info in trial.state.pods.values()
        if info.pod.spec.affinity == affinity and is_sibling(info.pod, pod)
    ]
    kind, name = workload_of(pod, trial.catalog)
    for place, term in enumerate(terms if siblings else ()):
        yield _relax(
            f"make the required pod anti-affinity to {selector_text(term.label_selector)} in {term.topology_key} preferred in all "
            f"pods of {kind} {name}, which restarts them",
            "InterPodAffinity",
            cost=0.6,
            edit_pod=partial(_soft_pod_term, True, place),
            replaces=tuple(_soft_pod_term(True, place, each) for each in siblings),
        )


def _without_selector(key: str, pod: Pod) -> Pod:
    left = {name: wanted for name, wanted in (pod.spec.node_selector or {}).items() if name != key}
    return _with_spec(pod, node_selector=left or None)


def _without_expression(expression: NodeSelectorRequirement, pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if affinity is None or node is None or required is None:
        return pod
    terms = [
        replace(
            term,
            match_expressions=tuple(each for each in term.match_expressions if each != expression),
            match_fields=tuple(each for each in term.match_fields if each != expression),
        )
        for term in required.node_selector_terms
    ]
    # A term without expressions matches nothing; terms are alternatives, so if one requires nothing, drop the rule.
    found = (
        None
        if any(not (each.match_expressions or each.match_fields) for each in terms)
        else replace(required, node_selector_terms=tuple(terms))
    )
    node = replace(node, required_during_scheduling_ignored_during_execution=found)
    return _with_spec(pod, affinity=replace(affinity, node_affinity=node))


def _soft_node_affinity(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    node = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=None)
    return _with_spec(pod, affinity=replace(affinity, node_affinity=node))


def _soft_pod_term(anti: bool, place: int, pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    side = None if affinity is None else affinity.pod_anti_affinity if anti else affinity.pod_affinity
    if affinity is None or side is None:
        return pod
    terms = side.required_during_scheduling_ignored_during_execution
    left = replace(side, required_during_scheduling_ignored_during_execution=(*terms[:place], *terms[place + 1 :]))
    name = "pod_anti_affinity" if anti else "pod_affinity"
    return _with_spec(pod, affinity=replace(affinity, **{name: left}))


def _without_side(anti: bool, pod: Pod) -> Pod:
    name = "pod_anti_affinity" if anti else "pod_affinity"
    affinity = pod.spec.affinity
    return pod if affinity is None else _with_spec(pod, affinity=replace(affinity, **{name: None}))


def _soft_spread(place: int, pod: Pod) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[place] = replace(constraints[place], when_unsatisfiable="ScheduleAnyway")
    return _with_spec(pod, topology_spread_constraints=tuple(constraints))


def _all_soft_spread(pod: Pod) -> Pod:
    soft = tuple(replace(each, when_unsatisfiable="ScheduleAnyway") for each in pod.spec.topology_spread_constraints)
    return _with_spec(pod, topology_spread_constraints=soft)


def _without_host_ports(pod: Pod) -> Pod:
    def bare(container: Container) -> Container:
        return replace(container, ports=tuple(replace(port, host_port=0) for port in container.ports))

    return _with_spec(pod, containers=tuple(map(bare, pod.spec.containers)))


# --- requests ---------------------------------------------------------------------------------------------------------


def _shrinks(diagnosis: PodDiagnosis, trial: Trial, only: str) -> Iterator[Step]:
    """Yield steps that reduce requests so that the pod fits on some node, the smallest reductions first."""
    pod, matrix = diagnosis.pod, diagnosis.matrix
    if FIT not in matrix.filters:
        return
    requests = fit_requests(pod, trial.state.request_gates)
    failing = matrix.failing[matrix.filters.index(FIT)]
    others = matrix.failing.sum(axis=0) - failing
    found: dict[tuple[tuple[str, int], ...], tuple[float, list[str]]] = {}
    rows = np.flatnonzero(failing & (others <= 1)).tolist() if not only else [matrix.nodes.index(only)]
    for row in rows:
        cut = _cut(requests, trial, matrix.nodes[row])
        if cut is not None:
            share = max(1 - left / requests[resource] for resource, left in cut.items())
            key = tuple(sorted(cut.items()))
            found.setdefault(key, (share + 0.001 * int(others[row]), []))[1].append(matrix.nodes[row])
    least = sorted(found.items(), key=lambda each: (each[1][0], each[0]))
    for key, (share, names) in least[:_MAX_SHRINKS]:
        shown = ", ".join(
            f"{resource} from {format_amount(resource, requests[resource])} to {format_amount(resource, left)}"
            for resource, left in key
        )
        yield Step(
            StepKind.SHRINK,
            f"reduce the {plural('request', len(key))}: {shown}",
            FIT,
            cost=min(share, 0.999),
            nodes=frozenset(names),
            edit_pod=partial(_shrunk, dict(key), requests),
            # Show only the smallest reduction of the same resources.
            group=f"shrink {' '.join(resource for resource, _ in key)}",
            risk=_shrink_risk([resource for resource, _ in key]),
        )


def _shrink_risk(resources: Sequence[str]) -> str:
    """Return the possible effect of smaller requests; "" to use the risk of the kind of step."""
    risks = {"cpu": "run slower", "memory": "run out of memory", "ephemeral-storage": "be evicted for lack of storage"}
    found = [risks[resource] for resource in resources if resource in risks]
    return f"the pod may {' or '.join(found)}" if found else ""


def _cut(requests: dict[str, int], trial: Trial, name: str) -> dict[str, int] | None:
    """Return the free amounts, rounded down, of the resources that a node lacks; None if reducing requests does not help."""
    state = trial.state
    row = state.nodes.row_of[name]
    if state.usage.item(0, row) >= int(state.nodes.allowed_pods[row]):
        return None
    found: dict[str, int] = {}
    for resource, wanted in requests.items():
        number = state.nodes.resources.get(resource)
        free = 0
        if number is not None:
            free = state.nodes.allocatable.item(number, row) - state.usage.item(FIRST_RESOURCE + number, row)
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
            edit_pod=lambda old: _with_spec(old, preemption_policy=None),
            preempts=True,
        )
    classes = sorted(
        (each for each in trial.catalog.all(PriorityClass) if own < each.value < SYSTEM_PRIORITY),
        key=lambda each: (each.value, each.metadata.name),
    )
    for place, each in enumerate(classes[:_MAX_CLASSES]):
        name = each.metadata.name
        yield Step(
            StepKind.PRIORITY,
            f"raise its priority to {each.value:,} (priorityClassName: {name})",
            "DefaultPreemption",
            cost=0.1 + place / (2 * _MAX_CLASSES),
            edit_pod=partial(_with_class, each),
            preempts=True,
        )


def _with_class(chosen: PriorityClass, pod: Pod) -> Pod:
    policy = chosen.preemption_policy or pod.spec.preemption_policy
    fields: dict[str, object] = {"priority_class_name": chosen.metadata.name, "priority": chosen.value}
    spec: PodSpec = replace(pod.spec, **fields, preemption_policy=policy)
    return replace(pod, spec=spec)
