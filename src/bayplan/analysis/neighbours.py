"""Remedies that concern other pods: those that a pod keeps away from, requires nearby, or is spread with.

Only rules that can be checked against the pods of that time are reported; if the record and this count disagree, there is no
remedy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bayplan.analysis.free_amounts import pods_there
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.units import format_count, format_list
from bayplan.objects.affinity import PodAffinityTerm, TopologySpreadConstraint
from bayplan.objects.meta import LabelSelector
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import (
    Selector,
    SelectorError,
    compile_label_selector,
    compile_required_node_affinity,
    selector_text,
)

NEIGHBOUR_PLUGINS = ("InterPodAffinity", "PodTopologySpread")

ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
AFFINITY = "node(s) didn't match pod affinity rules"
THEIR_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"

SHOWN_PODS = 3


class Neighbours:
    """The pods that existed when a pod was to be scheduled.

    Args:
        source: the run. number: of the decision.
        pod: the pod.
    """

    def __init__(self, source: RunSource, number: int, pod: Pod) -> None:
        self._nodes = source.nodes
        self._pod = pod
        there = [line for line in pods_there(source, number) if line.pod is not None and line.node in source.nodes]
        self._there = [(line.pod, source.nodes[line.node]) for line in there if line.pod is not None]

    def remedy(self, node: Node, reasons: Sequence[str]) -> str:
        """Return what would have to change for a node that was rejected for these reasons; "" if that is unknown."""
        if list(reasons) == [ANTI_AFFINITY]:
            return self._without_rivals(node)
        if list(reasons) == [THEIR_ANTI_AFFINITY]:
            return self._without_hermits(node)
        if list(reasons) == [AFFINITY]:
            return self._with_friend()
        return self._evened_out(node) if list(reasons) == [SPREAD] else ""

    def _without_rivals(self, node: Node) -> str:
        for term in _terms(self._pod, anti=True):
            rivals = [pod for pod in self._near(node, term.topology_key) if _concerns(term, self._pod, pod)]
            if rivals:
                return f"{_named(rivals)} gone (the pod's anti-affinity to {selector_text(term.label_selector)})"
        return ""

    def _without_hermits(self, node: Node) -> str:
        hermits = [
            pod
            for key in {term.topology_key: None for pod, _ in self._there for term in _terms(pod, anti=True)}
            for pod in self._near(node, key)
            if any(term.topology_key == key and _concerns(term, pod, self._pod) for term in _terms(pod, anti=True))
        ]
        if not hermits:
            return ""
        return f"{_named(hermits)} gone (anti-affinity of {'its' if len(hermits) == 1 else 'their'} own to this pod)"

    def _with_friend(self) -> str:
        terms = _terms(self._pod, anti=False)
        if len(terms) != 1:
            return ""
        wanted = selector_text(terms[0].label_selector)
        return f"a pod with {wanted} in the same {terms[0].topology_key} (the pod's affinity)"

    def _evened_out(self, node: Node) -> str:
        for constraint in self._pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable == "DoNotSchedule":
                text = self._fewer(node, constraint)
                if text:
                    return text
        return ""

    def _fewer(self, node: Node, constraint: TopologySpreadConstraint) -> str:
        """Return by how many pods the node's domain exceeds the limit; "" if this constraint is not the obstacle."""
        key, selector = constraint.topology_key, _compiled(constraint.label_selector)
        domain = node.metadata.labels.get(key)
        if selector is None or domain is None or constraint.min_domains or constraint.match_label_keys:
            return ""
        if constraint.node_taints_policy == "Honor":
            return ""
        honors = constraint.node_affinity_policy != "Ignore"
        required = compile_required_node_affinity(self._pod) if honors else None
        counts: Counter[str] = Counter()
        for each in self._nodes.values():
            value = each.metadata.labels.get(key)
            if value is not None and (required is None or required.matches(each.metadata.labels, each.metadata.name)):
                counts[value] += 0
        for pod, where in self._there:
            value = where.metadata.labels.get(key)
            if value is not None and value in counts and pod.metadata.namespace == self._pod.metadata.namespace:
                counts[value] += pod.metadata.deletion_timestamp is None and selector.matches(pod.metadata.labels)
        own = int(selector.matches(self._pod.metadata.labels))
        if domain not in counts:
            return ""
        excess = counts[domain] + own - min(counts.values()) - constraint.max_skew
        if excess <= 0:
            return ""
        fewest = min(counts, key=lambda value: (counts[value], value))
        what = f"{format_count(excess, 'pod')} with {selector_text(constraint.label_selector)} fewer in {key} {domain}"
        return f"{what}, which has {counts[domain]:,} where {fewest} has {counts[fewest]:,} (maxSkew {constraint.max_skew:,})"

    def _near(self, node: Node, key: str) -> list[Pod]:
        """Return the pods in a node's domain."""
        domain = node.metadata.labels.get(key)
        if domain is None:
            return []
        return [pod for pod, where in self._there if where.metadata.labels.get(key) == domain]


def _terms(pod: Pod, *, anti: bool) -> tuple[PodAffinityTerm, ...]:
    """Return the required terms of a pod that can be described by labels and namespace names alone."""
    affinity = pod.spec.affinity
    side = None if affinity is None else affinity.pod_anti_affinity if anti else affinity.pod_affinity
    terms = () if side is None else side.required_during_scheduling_ignored_during_execution or ()
    return tuple(term for term in terms if term.namespace_selector is None)


def _concerns(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Return whether a term of a pod matches another pod."""
    selector = _compiled(term.label_selector)
    namespaces = term.namespaces or (owner.metadata.namespace,)
    return selector is not None and other.metadata.namespace in namespaces and selector.matches(other.metadata.labels)


def _compiled(selector: LabelSelector | None) -> Selector | None:
    try:
        return compile_label_selector(selector)
    except SelectorError:
        return None


def _named(pods: Sequence[Pod]) -> str:
    return format_list([pod.key for pod in pods[:SHOWN_PODS]], more=max(0, len(pods) - SHOWN_PODS))
