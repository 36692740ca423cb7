"""The nodes that a DaemonSet runs on, and the fields of its pods that pin each pod to its node.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/ and pkg/controller/daemon v1.36.3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from bayplan.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.selectors import REJECTING_EFFECTS, compile_required_node_affinity, find_untolerated_taint
from bayplan.objects.workloads import PodTemplateSpec

_NODE_NAME_FIELD = "metadata.name"

_TOLERATIONS = (
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/pid-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
)
_HOST_NETWORK_TOLERATION = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


class Eligibility(NamedTuple):
    """Whether a node may run a pod of a DaemonSet.

    A pod stays on a node with a taint that only excludes new pods (NoSchedule).

    Attributes:
        should_run: whether a pod should start on the node.
        may_stay: whether a running pod may stay on it.
    """

    should_run: bool
    may_stay: bool


class NodeEligibility:
    """Selects the nodes that a DaemonSet runs on, by node name, node selector, required node affinity and taints.

    Args:
        template: the pod template of the DaemonSet.
    """

    def __init__(self, template: PodTemplateSpec) -> None:
        spec = template.spec
        self._node_name = spec.node_name
        self._affinity = compile_required_node_affinity(Pod(spec=spec))
        self._tolerations = daemon_tolerations(spec)

    def eligibility_of(self, node: Node) -> Eligibility:
        """Return whether a pod should start on a node, and whether a running pod may stay."""
        metadata, taints = node.metadata, node.spec.taints
        if self._node_name not in ("", metadata.name) or not self._affinity.matches(metadata.labels, metadata.name):
            return Eligibility(should_run=False, may_stay=False)
        if not taints or self._find_untolerated(taints, REJECTING_EFFECTS) is None:
            return Eligibility(should_run=True, may_stay=True)
        return Eligibility(should_run=False, may_stay=self._find_untolerated(taints, ("NoExecute",)) is None)

    def _find_untolerated(self, taints: tuple[Taint, ...], effects: tuple[str, ...]) -> Taint | None:
        return find_untolerated_taint(taints, self._tolerations, comparison_operators=False, effects=effects)


def daemon_template(template: PodTemplateSpec) -> PodTemplateSpec:
    """Return the template with the tolerations that all daemon pods have."""
    return replace(template, spec=replace(template.spec, tolerations=daemon_tolerations(template.spec)))


def daemon_tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """Return a spec's tolerations and the tolerations that all daemon pods have.

    A daemon toleration replaces a toleration of the spec that differs from it only in the time limit.
    """
    tolerations = list(spec.tolerations)
    added = (*_TOLERATIONS, _HOST_NETWORK_TOLERATION) if spec.host_network else _TOLERATIONS
    for toleration in added:
        matching = [index for index, present in enumerate(tolerations) if _is_same_but_time(present, toleration)]
        for index in matching:
            tolerations[index] = toleration
        if not matching:
            tolerations.append(toleration)
    return tuple(tolerations)


def _is_same_but_time(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value) == (other.key, other.effect, other.operator, other.value)


def pinned_spec(spec: PodSpec, node_name: str) -> PodSpec:
    """Return the spec of the pod for one node: its required node affinity is replaced by that node's name."""
    selector = _node_name_selector(node_name)
    affinity = spec.affinity
    if affinity is None:
        affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector))
    elif affinity.node_affinity is None:
        node_affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
        affinity = replace(affinity, node_affinity=node_affinity)
    else:
        node_affinity = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=selector)
        affinity = replace(affinity, node_affinity=node_affinity)
    return replace(spec, affinity=affinity)


@lru_cache(maxsize=65536)
def _node_name_selector(node_name: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=_NODE_NAME_FIELD, operator="In", values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def target_node(pod: Pod) -> str:
    """Return the name of the node that a daemon pod is on or was created for; "" if neither is known."""
    spec = pod.spec
    if spec.node_name:
        return spec.node_name
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is not None:
        for term in required.node_selector_terms:
            for field in term.match_fields:
                if field.key == _NODE_NAME_FIELD and field.operator == "In" and field.values and len(field.values) == 1:
                    return field.values[0]
    return ""
