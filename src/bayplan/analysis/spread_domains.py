"""The domains of a hard topology spread constraint: the number of matching pods in each, and which domains admit another pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bayplan.analysis.node_taints import untolerated_taints
from bayplan.analysis.units import format_first, format_list
from bayplan.objects.affinity import TopologySpreadConstraint
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import (
    Requirement,
    SelectorError,
    compile_label_selector,
    compile_required_node_affinity,
    selector_text,
)
from bayplan.plugins.spread_constraints import HARD, HONOR

MAX_DOMAINS = 6
"""Maximum number of domains whose counts are listed one by one."""

SHOWN_DOMAINS = 3


def short_label(label: str) -> str:
    """Return the last part of a label's name: ``zone`` of ``topology.kubernetes.io/zone``."""
    return label.rpartition("/")[2]


@dataclass(frozen=True)
class SpreadDomains:
    """A topology spread constraint with its counts.

    Attributes:
        constraint: the constraint.
        counts: the number of matching pods by domain.
        smallest: the smallest count; 0 if there are fewer domains than `minDomains`; None if there are no domains.
        own: 1 if the waiting pod matches the constraint's selector, else 0.
    """

    constraint: TopologySpreadConstraint
    counts: dict[str, int]
    smallest: int | None
    own: int

    @property
    def noun(self) -> str:
        """Return a short name for a domain: ``zone``, ``hostname``."""
        return short_label(self.constraint.topology_key)

    def rejects(self, node: Node) -> bool:
        """Return whether the constraint rejects a node."""
        domain = node.metadata.labels.get(self.constraint.topology_key)
        return domain is None or not self.admits(domain)

    def domain_of(self, node: Node) -> str:
        """Return the domain of a node; "" if it lacks the label."""
        return node.metadata.labels.get(self.constraint.topology_key, "")

    def admits(self, domain: str) -> bool:
        """Return whether a domain may take the pod."""
        if self.smallest is None:
            return True
        return self.counts.get(domain, 0) + self.own - self.smallest <= self.constraint.max_skew

    def text(self) -> str:
        """Return the counts in words: ``zone a has 3 pods with app=web, b 1 and c 1 (maxSkew 1)``."""
        constraint = self.constraint
        pods = f"pods with {selector_text(constraint.label_selector)}"
        ordered = sorted(self.counts.items(), key=lambda each: (-each[1], each[0]))
        if not ordered:
            shown = f"no {self.noun} has a node that counts for it"
        elif len(ordered) > MAX_DOMAINS:
            groups: dict[int, int] = {}
            for _, count in ordered:
                groups[count] = groups.get(count, 0) + 1
            parts = [f"{number:,} {'has' if number == 1 else 'have'} {count:,}" for count, number in groups.items()]
            listed = format_first(parts, 4)
            shown = f"of {len(ordered):,} {self.noun}s, {listed} {pods}"
        else:
            first, *rest = ordered
            noun = pods if first[1] != 1 else f"pod{pods.removeprefix('pods')}"
            shown = format_list(
                [f"{self._named(first[0])} has {first[1]:,} {noun}", *(f"{domain} {count:,}" for domain, count in rest)]
            )
        limit = f"maxSkew {constraint.max_skew}"
        if constraint.min_domains is not None and constraint.min_domains > len(self.counts):
            limit += f", minDomains {constraint.min_domains} of which there are {len(self.counts):,}"
        return f"{shown} ({limit})"

    def admitting(self, nodes: Iterable[Node]) -> str:
        """Return the domains of these nodes, in words: ``zones b and c``; "" if no node has a domain."""
        found = sorted({self.domain_of(node) for node in nodes} - {""})
        if not found:
            return ""
        listed = format_first(found, SHOWN_DOMAINS)
        return self._named(listed) if len(found) == 1 else self._named(listed, "s")

    def _named(self, listed: str, plural: str = "") -> str:
        """Return the names of domains with a noun, unless the names start with it: ``zone a``, ``zone-a``."""
        return listed if listed.startswith(self.noun) else f"{self.noun}{plural} {listed}"


def spread_domains(pod: Pod, nodes: Sequence[Node], placed: Iterable[tuple[Pod, str]]) -> list[SpreadDomains]:
    """Return the hard constraints of a pod with their counts; [] if a selector can't be compiled.

    Args:
        pod: the waiting pod.
        nodes: all nodes.
        placed: the pods on nodes, each with the name of its node.
    """
    constraints = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == HARD]
    keys = {each.topology_key for each in constraints}
    required = compile_required_node_affinity(pod)
    of_node: dict[str, list[dict[str, str]]] = {}
    for other, name in placed:
        if other.metadata.namespace == pod.metadata.namespace and other.metadata.deletion_timestamp is None:
            of_node.setdefault(name, []).append(other.metadata.labels)
    found = []
    for constraint in constraints:
        try:
            selector = compile_label_selector(constraint.label_selector)
        except SelectorError:
            return []
        labels = pod.metadata.labels
        more = [Requirement(key, "In", (labels[key],)) for key in constraint.match_label_keys if key in labels]
        selector = selector.adding(more) if more else selector
        counts: dict[str, int] = {}
        for node in nodes:
            own = node.metadata.labels
            if not keys <= own.keys():
                continue
            if constraint.node_affinity_policy in (None, HONOR) and not required.matches(own, node.metadata.name):
                continue
            if constraint.node_taints_policy == HONOR and untolerated_taints(pod, node):
                continue
            domain = own[constraint.topology_key]
            matching = sum(selector.matches(each) for each in of_node.get(node.metadata.name, ()))
            counts[domain] = counts.get(domain, 0) + matching
        smallest = min(counts.values(), default=None)
        if smallest is not None and constraint.min_domains is not None and len(counts) < constraint.min_domains:
            smallest = 0
        found.append(SpreadDomains(constraint, counts, smallest, int(selector.matches(labels))))
    return found
