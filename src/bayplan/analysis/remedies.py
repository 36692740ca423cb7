"""Changes that would let a pod fit, in the simple cases: for nodes that fail exactly one filter.

Only checked changes are reported: the result comes from the record, the remedy from the objects and the amounts free at that
time, and if they disagree there is no remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np

from bayplan.analysis.free_amounts import free_amounts
from bayplan.analysis.neighbours import NEIGHBOUR_PLUGINS, Neighbours
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.units import format_amount, format_count
from bayplan.engine.decision import Decision
from bayplan.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.requests import node_amounts
from bayplan.objects.selectors import compile_node_term, tolerates
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools
from bayplan.state.resource_table import PODS

REJECTING_EFFECTS = ("NoSchedule", "NoExecute")
FIT = "NodeResourcesFit"
TAINTS = "TaintToleration"
CORDON = "NodeUnschedulable"
CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""The taint that a cordoned node is given, so that two filters reject it for one reason."""

_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
"""The message of upstream's volume plugins for a claim that does not exist."""

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient "


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One change that would let the pod onto some nodes.

    Attributes:
        plugin: the only filter that these nodes fail.
        text: the change.
        nodes: the nodes that would then fit, in row order; empty if a new node is required.
    """

    plugin: str
    text: str
    nodes: list[str]


def remedies(source: RunSource, number: int, decision: Decision, pod: PodTimeline) -> list[Remedy]:
    """Return the changes that make nodes fit which fail a single filter, the change for the most nodes first.

    Args:
        source: the run. number: of the decision in it.
        decision: one that found no node.
        pod: the pod of the decision.
    """
    if pod.pod is None:
        return []
    if decision.pre_filter is not None:
        return _missing_claim(decision.pre_filter.plugin, decision.pre_filter.message, pod.pod)
    found: list[Remedy] = []
    failing = _failing(source, decision, pod.pod)
    alone = failing.sum(axis=0) == 1
    for part, plugin in enumerate(decision.filters):
        rows = [row for row in np.flatnonzero(failing[part] & alone).tolist() if row not in decision.overrides]
        nodes = [decision.names[row] for row in rows]
        if not nodes:
            continue
        if plugin == FIT:
            reasons = {
                decision.names[row]: decision.statuses[part, int(decision.codes[part, row])].reasons for row in rows
            }
            found += _room(source, number, reasons, pod)
        elif plugin in _BY_NODE:
            found += _grouped(plugin, nodes, source, partial(_BY_NODE[plugin], pod.pod))
        elif plugin in NEIGHBOUR_PLUGINS:
            reasons = {
                decision.names[row]: decision.statuses[part, int(decision.codes[part, row])].reasons for row in rows
            }
            neighbours = Neighbours(source, number, pod.pod)
            found += _grouped(plugin, nodes, source, partial(_neighbours, neighbours, reasons))
    return sorted(found, key=lambda remedy: -len(remedy.nodes))


def _missing_claim(plugin: str, message: str, pod: Pod) -> list[Remedy]:
    """Return the claim to create, if the pod was rejected because its claim doesn't exist."""
    match = _NO_CLAIM.fullmatch(message)
    if match is None:
        return []
    name = f"{pod.metadata.namespace}/{match[1]}"
    text = f"a PersistentVolumeClaim {name}: the pod uses it, and it does not exist"
    return [Remedy(plugin=plugin, text=text, nodes=[])]


def _failing(source: RunSource, decision: Decision, pod: Pod) -> Bools:
    """Return bool[filters, rows]: which filter rejects which node. The taint that comes with a cordon counts as that cordon."""
    failing: Bools = (decision.codes != 0) & decision.examined
    if CORDON not in decision.filters or TAINTS not in decision.filters:
        return failing
    cordon, taints = decision.filters.index(CORDON), decision.filters.index(TAINTS)
    for row in np.flatnonzero(failing[cordon] & failing[taints]).tolist():
        node = source.nodes.get(decision.names[row])
        if node is not None and all(taint.key == CORDON_TAINT for taint in _untolerated(pod, node)):
            failing[taints, row] = False
    return failing


def _grouped(plugin: str, nodes: Sequence[str], source: RunSource, tell: Callable[[Node], str]) -> list[Remedy]:
    """Group nodes by the change that each of them needs."""
    groups: dict[str, list[str]] = {}
    for name in nodes:
        node = source.nodes.get(name)
        text = tell(node) if node is not None else ""
        if text:
            groups.setdefault(text, []).append(name)
    return [Remedy(plugin=plugin, text=text, nodes=names) for text, names in groups.items()]


def _neighbours(neighbours: Neighbours, reasons: dict[str, tuple[str, ...]], node: Node) -> str:
    return neighbours.remedy(node, reasons[node.metadata.name])


# --- room -------------------------------------------------------------------------------------------------------------


def _room(source: RunSource, number: int, reasons: dict[str, tuple[str, ...]], pod: PodTimeline) -> list[Remedy]:
    """Return the smallest shortfall among nodes that lack room for the same resources, for each such set of resources."""
    requests = source.requests_of(pod) | {PODS: 1}
    groups: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
    too_small: dict[str, list[str]] = {}
    for name, free in free_amounts(source, number, reasons).items():
        short = {
            resource: requests.get(resource, 0) - free.get(resource, 0)
            for resource in (_resource_of(reason) for reason in reasons[name])
        }
        if any(amount <= 0 for amount in short.values()):
            continue
        offered = node_amounts(source.nodes[name].status.allocatable)
        beyond = [resource for resource in short if offered.get(resource, 0) < requests[resource]]
        if beyond:
            too_small.setdefault(beyond[0], []).append(name)
        else:
            groups.setdefault(tuple(short), {})[name] = short
    shortfalls = [_shortfall(resources, nodes, requests) for resources, nodes in groups.items()]
    found = [remedy for _, remedy in sorted(shortfalls, key=lambda each: each[0])]
    return found + [_larger_node(source, resource, nodes, requests) for resource, nodes in too_small.items()]


def _shortfall(
    resources: tuple[str, ...], nodes: dict[str, dict[str, int]], requests: dict[str, int]
) -> tuple[tuple[float, str], Remedy]:
    """Return the shortfall of the node that is nearest to having room, and how near it is; all have it if empty."""

    def distance(name: str) -> tuple[float, str]:
        return (sum(nodes[name][resource] / requests[resource] for resource in resources), name)

    nearest = min(nodes, key=distance)
    text = f"{_amounts(resources, nodes[nearest])} more free on {nearest}"
    if len(nodes) > 1:
        text += f", the nearest of {format_count(len(nodes), 'node')} that lack only that"
    if any(resource != PODS for resource in resources):
        text += f" (the pod asks for {_amounts(resources, requests)})"
    return distance(nearest), Remedy(plugin=FIT, text=text, nodes=[nearest])


def _larger_node(source: RunSource, resource: str, nodes: list[str], requests: dict[str, int]) -> Remedy:
    """Return the allocatable amounts that are too small even on empty nodes."""
    largest = max(node_amounts(source.nodes[name].status.allocatable).get(resource, 0) for name in nodes)
    asked = format_amount(resource, requests[resource])
    which = f"{nodes[0]} offers" if len(nodes) == 1 else f"the largest of {format_count(len(nodes), 'node')} offers"
    text = f"a larger node or a smaller request: the pod asks for {asked} {resource}, {which} {format_amount(resource, largest)}"
    return Remedy(plugin=FIT, text=text, nodes=[])


def _amounts(resources: Sequence[str], amounts: dict[str, int]) -> str:
    return ", ".join(f"{format_amount(resource, amounts[resource])} {resource}" for resource in resources)


def _resource_of(reason: str) -> str:
    return PODS if reason == TOO_MANY_PODS else reason.removeprefix(INSUFFICIENT)


# --- taints, labels, cordons ------------------------------------------------------------------------------------------


def _toleration(pod: Pod, node: Node) -> str:
    taints = _untolerated(pod, node)
    if not taints:
        return ""
    named = " and ".join(_taint_text(taint) for taint in taints)
    return f"a toleration of the pod for {named}"


def _untolerated(pod: Pod, node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect in REJECTING_EFFECTS and not _is_tolerated(pod, taint)]


def _is_tolerated(pod: Pod, taint: Taint) -> bool:
    return any(tolerates(toleration, taint, comparison_operators=True) for toleration in pod.spec.tolerations)


def _taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _label(pod: Pod, node: Node) -> str:
    labels = node.metadata.labels
    wanted = pod.spec.node_selector or {}
    missing = [f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value]
    if missing:
        return f"{_plural('label', missing)} {', '.join(missing)} on the node (the pod's nodeSelector)"
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None or not required.node_selector_terms:
        return ""
    unmet = [_unmet(term, node.metadata) for term in required.node_selector_terms]
    if not all(unmet):
        return ""
    return f"node labels that match {' or '.join(dict.fromkeys(unmet))} (the pod's required node affinity)"


def _unmet(term: NodeSelectorTerm, metadata: ObjectMeta) -> str:
    """Return the requirements of a term that a node does not meet."""
    unmet = [
        _requirement_text(expression)
        for expression in term.match_expressions
        if not _matches(NodeSelectorTerm(match_expressions=(expression,)), metadata)
    ]
    unmet += [
        _requirement_text(expression)
        for expression in term.match_fields
        if not _matches(NodeSelectorTerm(match_fields=(expression,)), metadata)
    ]
    return " and ".join(unmet)


def _matches(term: NodeSelectorTerm, metadata: ObjectMeta) -> bool:
    return compile_node_term(term, "").matches(metadata.labels, metadata.name)


def _requirement_text(requirement: NodeSelectorRequirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def _cordon(pod: Pod, node: Node) -> str:
    return "kubectl uncordon" if node.spec.unschedulable else ""


def _port(pod: Pod, node: Node) -> str:
    ports = sorted({port.host_port for container in pod.spec.containers for port in container.ports if port.host_port})
    return f"{_plural('host port', ports)} {', '.join(map(str, ports))} free on the node" if ports else ""


def _plural(noun: str, items: Sequence[object]) -> str:
    return noun if len(items) == 1 else f"{noun}s"


_BY_NODE: dict[str, Callable[[Pod, Node], str]] = {
    TAINTS: _toleration,
    "NodeAffinity": _label,
    CORDON: _cordon,
    "NodePorts": _port,
}
