"""Steps that evict other pods from a node: found by preemption with the highest priority, and by rules about other pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace as replace_step
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from bayplan.analysis.filter_matrix import FIT
from bayplan.analysis.scheduler_surroundings import nominated_amounts
from bayplan.analysis.units import format_first
from bayplan.answers.displaced_pods import is_recreated, stays_on_node
from bayplan.answers.pod_diagnosis import PodDiagnosis
from bayplan.answers.steps import Step, StepKind
from bayplan.answers.trial import Trial
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, NON_ZERO_MEMORY, POD_COUNT, Footprint, PodInfo
from bayplan.state.resource_table import PODS

HIGHEST_PRIORITY = 2**31 - 1
MAX_CANDIDATES = 12
MAX_VICTIMS = 12
SHOWN = 3
_MAX_DOMAINS = 4


def move_steps(diagnosis: PodDiagnosis, trial: Trial, only: str = "") -> Iterator[Step]:
    """Yield steps that evict a set of pods whose removal may make room. Disruption budgets allow all these evictions.

    Args:
        diagnosis: the pod with the verdicts of all filters.
        trial: the cluster.
        only: a node whose movable pods are tried as one more set; "" for none.
    """
    budgets = DisruptionBudgets(trial.catalog)
    seen: set[tuple[str, ...]] = set()
    movable = [] if not only else [(only, [pod.key for pod in trial.pods_on(only) if not stays_on_node(pod)])]
    sets = (
        # Preemption finds one set a node. Its pods may fit nowhere else although other pods of the node would.
        *sorted(
            (*_by_preemption(diagnosis, trial), *_by_room(diagnosis, trial, budgets)), key=lambda each: len(each[1])
        ),
        *_by_devices(diagnosis, trial),
        *_affinity_violations(diagnosis, trial),
        *movable,
    )
    for node, keys in sets:
        chosen = tuple(sorted(keys))
        infos = [trial.state.pods[key] for key in chosen if key in trial.state.pods]
        if chosen in seen or not infos or len(infos) > MAX_VICTIMS:
            continue
        seen.add(chosen)
        if any(stays_on_node(info.pod) for info in infos) or any(budgets.violated_by(infos)):
            continue
        yield _step(node, infos, trial, len(seen))


def _step(node: str, infos: Sequence[PodInfo], trial: Trial, place: int) -> Step:
    keys = [info.key for info in infos]
    # Prefer sets of few pods and, among equal sizes, those found first.
    cost = min(0.05 * len(keys) + 0.001 * place, 0.99)
    return Step(
        StepKind.MOVE,
        _text(keys, node),
        "",
        cost=cost,
        commands=tuple(
            f"kubectl delete pod -n {info.pod.metadata.namespace} {info.pod.metadata.name}" for info in infos
        ),
        nodes=frozenset((node,)),
        evicts=tuple(keys),
    )


def _text(keys: Sequence[str], node: str) -> str:
    return f"move {format_first(keys, SHOWN)} off {node}"


def without_evictions(step: Step, kept: Collection[str]) -> Step:
    """Return a step that does not move the pods `kept`; a step that moves no pods is returned unchanged."""
    if not step.evicts:
        return step
    chosen = [number for number, key in enumerate(step.evicts) if key not in kept]
    evicts = tuple(step.evicts[number] for number in chosen)
    (node,) = step.nodes or ("",)
    commands = tuple(step.commands[number] for number in chosen)
    return replace_step(step, text=_text(evicts, node), evicts=evicts, commands=commands)


def _by_preemption(diagnosis: PodDiagnosis, trial: Trial) -> list[tuple[str, list[str]]]:
    """Return (node, victims) for the smallest sets that preemption would evict if the pod had the highest priority."""
    if diagnosis.matrix.whole:
        return []
    spec = replace(diagnosis.pod.spec, priority=HIGHEST_PRIORITY, preemption_policy=None)
    status = replace(diagnosis.pod.status, nominated_node_name="")
    decision = trial.decide(replace(diagnosis.pod, spec=spec, status=status))
    if decision is None or decision.preemption is None:
        return []
    allowed = [each for each in decision.preemption.candidates if not each.pdb_violations]
    order = sorted(allowed, key=lambda each: (len(each.victims), each.priority_sum, each.node))
    return [(each.node, [victim.pod for victim in each.victims]) for each in order[:MAX_CANDIDATES]]


def _by_room(diagnosis: PodDiagnosis, trial: Trial, budgets: DisruptionBudgets) -> Iterator[tuple[str, list[str]]]:
    """Yield (node, [pod]) for pods that make enough room on nodes that only NodeResourcesFit rejects, the least important first.

    Pods that budgets protect are left out, so that they don't take the place of others.
    """
    matrix, state = diagnosis.matrix, trial.state
    if FIT not in matrix.filters or matrix.whole:
        return
    alone = matrix.failing[matrix.filters.index(FIT)] & (matrix.failing.sum(axis=0) == 1)
    wanted = state.footprint(diagnosis.pod)
    found: list[tuple[int, int, str, str, tuple[str, str]]] = []
    for name in (matrix.nodes[number] for number in np.flatnonzero(alone).tolist()):
        row = state.nodes.row_of[name]
        lacking = _lacking_amounts(state, row, wanted, nominated_amounts(trial.scheduler, diagnosis.pod, name))
        for info in state.pods_on[row].values():
            amounts = dict(info.footprint.amounts)
            if all(amounts.get(number, 0) >= amount for number, amount in lacking) and is_recreated(info.pod):
                owner = info.pod.metadata.controller()
                group = (info.pod.metadata.namespace, "" if owner is None else owner.name)
                found.append((info.priority, info.footprint.largest, info.key, name, group))
    # If one pod of a controller fits nowhere else, the others probably don't either, so try one of each controller first.
    seen = Counter[tuple[str, str]]()
    turns: list[tuple[int, str, str]] = []
    for _, _, key, name, group in sorted(found):
        turns.append((seen[group], key, name))
        seen[group] += 1
    ordered = ((name, [key]) for _, key, name in sorted(turns, key=lambda each: each[0]))
    allowed = (each for each in ordered if not any(budgets.violated_by([state.pods[key] for key in each[1]])))
    yield from islice(allowed, MAX_CANDIDATES)


def _lacking_amounts(state: ClusterState, row: int, wanted: Footprint, nominated: Amounts) -> list[tuple[int, int]]:
    """Return the amounts that a node lacks, by row of the usage matrix; `nominated`: the amounts left to nominated pods."""
    nodes, found = state.nodes, list[tuple[int, int]]()
    taken = {POD_COUNT: nominated.get(PODS, 0)}
    taken |= {FIRST_RESOURCE + place: nominated[name] for name, place in nodes.resources.items() if name in nominated}
    for number, amount in wanted.amounts:
        if number in (NON_ZERO_CPU, NON_ZERO_MEMORY) or not amount:
            continue
        offered = nodes.allowed_pods if number == POD_COUNT else nodes.allocatable[number - FIRST_RESOURCE]
        lacking = amount - (int(offered[row]) - state.usage.item(number, row) - taken.get(number, 0))
        if lacking > 0:
            found.append((number, lacking))
    return found


def _by_devices(diagnosis: PodDiagnosis, trial: Trial) -> Iterator[tuple[str, list[str]]]:
    """Yield (node, [pod]) for pods with devices on nodes that only DynamicResources rejects: preemption does not free devices."""
    matrix = diagnosis.matrix
    if "DynamicResources" not in matrix.filters:
        return
    alone = matrix.failing[matrix.filters.index("DynamicResources")] & (matrix.failing.sum(axis=0) == 1)
    found = 0
    for row in np.flatnonzero(alone).tolist():
        name = matrix.nodes[row]
        holders = [pod for pod in trial.pods_on(name) if pod.spec.resource_claims]
        for pod in sorted(holders, key=lambda each: (each.spec.priority or 0, each.key)):
            yield name, [pod.key]
            found += 1
            if found >= MAX_CANDIDATES:
                return


def _affinity_violations(diagnosis: PodDiagnosis, trial: Trial) -> Iterator[tuple[str, list[str]]]:
    """Yield (node, pods) for pods of a domain that conflict with anti-affinity or spread constraints, the smallest sets first."""
    matrix, sets = diagnosis.matrix, list[tuple[str, list[str]]]()
    for plugin in ("InterPodAffinity", "PodTopologySpread"):
        if plugin not in matrix.filters:
            continue
        number = matrix.filters.index(plugin)
        alone = matrix.failing[number] & (matrix.pinned_failures == 0)
        names = [matrix.nodes[row] for row in np.flatnonzero(alone).tolist()]
        sets += (
            _rivals(diagnosis.pod, trial, names)
            if plugin == "InterPodAffinity"
            else _overfull_domains(diagnosis.pod, trial, names)
        )
    yield from sorted(sets, key=lambda each: (len(each[1]), each))[:MAX_CANDIDATES]


def _rivals(pod: Pod, trial: Trial, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (node, pods) per domain: the pods that the pod's anti-affinity excludes, or whose anti-affinity excludes the pod."""
    own = _compiled(_anti_terms(pod))
    known: dict[int, list[_Term]] = {}
    others: dict[str, list[_Term]] = {}
    for info in trial.state.pods.values():
        terms = _anti_terms(info.pod) if info.owned_counters else ()
        if terms:
            # Pods of one template share the tuple of terms, so compile it once.
            if id(terms) not in known:
                known[id(terms)] = _compiled(terms)
            others[info.key] = known[id(terms)]
    keys = {each.term.topology_key for terms in (own, *known.values()) for each in terms}
    for key in sorted(keys):
        for name, infos in _domains(key, trial, names):
            against = [
                info.key
                for info in infos
                if any(each.term.topology_key == key and _applies_to(each, pod, info.pod) for each in own)
                or any(
                    each.term.topology_key == key and _applies_to(each, info.pod, pod)
                    for each in others.get(info.key, ())
                )
            ]
            if against:
                yield name, against


def _overfull_domains(pod: Pod, trial: Trial, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (node, pods) per domain of a hard spread constraint: its least important pod, then its least two, then three."""
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        try:
            selector = compile_label_selector(constraint.label_selector)
        except SelectorError:
            continue
        for name, infos in _domains(constraint.topology_key, trial, names):
            counted = [
                info
                for info in infos
                if info.pod.metadata.namespace == pod.metadata.namespace and selector.matches(info.pod.metadata.labels)
            ]
            order = [info.key for info in sorted(counted, key=lambda info: (info.priority, info.key))]
            for count in range(1, min(len(order), 3) + 1):
                yield name, order[:count]


def _domains(key: str, trial: Trial, names: Sequence[str]) -> Iterator[tuple[str, list[PodInfo]]]:
    """Yield one node of each of the first domains of `names`, with all pods of the domain."""
    members: dict[str, list[str]] = {}
    for node in trial.nodes():
        value = node.metadata.labels.get(key)
        if value is not None:
            members.setdefault(value, []).append(node.metadata.name)
    seen: dict[str, str] = {}
    for name in names:
        known = trial.node(name)
        value = known.metadata.labels.get(key) if known is not None else None
        if value is not None and value not in seen:
            seen[value] = name
        if len(seen) == _MAX_DOMAINS:
            break
    for value, name in seen.items():
        rows = [trial.state.nodes.row_of[member] for member in members[value]]
        yield name, [info for row in rows for info in trial.state.pods_on[row].values()]


def _anti_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    anti = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None
    return anti.required_during_scheduling_ignored_during_execution if anti is not None else ()


class _Term(NamedTuple):
    """A pod affinity term with its compiled selector."""

    term: PodAffinityTerm
    selector: Selector


def _compiled(terms: Sequence[PodAffinityTerm]) -> list[_Term]:
    found = []
    for term in terms:
        try:
            found.append(_Term(term, compile_label_selector(term.label_selector)))
        except SelectorError:
            continue
    return found


def _applies_to(each: _Term, owner: Pod, other: Pod) -> bool:
    term = each.term
    namespaces = term.namespaces or (owner.metadata.namespace,)
    here = other.metadata.namespace in namespaces or term.namespace_selector is not None
    return here and each.selector.matches(other.metadata.labels)
