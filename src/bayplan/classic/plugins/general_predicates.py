"""GeneralPredicates: resources, host name, ports and node selector in one predicate that reports the reasons of all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.essential_predicates import (
    HostNameSpec,
    HostPortsSpec,
    NodeSelectorSpec,
    compile_host_ports,
    compile_node_selector_spec,
)
from bayplan.classic.plugins.failure_reasons import (
    NODE_SELECTOR_NOT_MATCH,
    POD_NOT_FITS_HOST_PORTS,
    POD_NOT_MATCH_HOST_NAME,
)
from bayplan.classic.plugins.pod_fits_resources import FitSpec, Shortages, compile_fit
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.pod import Pod
from bayplan.plugins.node_affinity import RequiredAffinity
from bayplan.plugins.node_name import NamedNode
from bayplan.plugins.node_ports import FreePorts
from bayplan.state.cluster_state import ClusterState

HOST_NAME = 0x200
PORTS = 0x400
SELECTOR = 0x800
RESOURCES = 0x1FF
"""The bits of a verdict that belong to `Shortages`; each of the other predicates has one bit."""


@dataclass(frozen=True, slots=True)
class GeneralSpec:
    """The specs of the four predicates."""

    key: Hashable
    fit: FitSpec = field(compare=False)
    host_name: HostNameSpec = field(compare=False)
    ports: HostPortsSpec = field(compare=False)
    selector: NodeSelectorSpec = field(compare=False)


class GeneralPredicates(FilterPlugin[GeneralSpec]):
    """Rejects nodes that lack resources, have another name or a used port, or don't match the node selector."""

    name = "GeneralPredicates"
    reads = Reads.NODES | Reads.USAGE | Reads.PORTS
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = classic_arguments(arguments)
        self._shortages = Shortages()

    def compile(self, pod: Pod, cluster: ClusterState) -> GeneralSpec:
        """Return the specs of the four predicates."""
        fit = compile_fit(pod, cluster, self._arguments)
        name = HostNameSpec(pod.spec.node_name)
        ports = compile_host_ports(pod)
        selector = compile_node_selector_spec(pod)
        return GeneralSpec((fit.key, name.key, ports.key, selector.key), fit, name, ports, selector)

    def filter_rule(self, spec: GeneralSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that runs the rules of the four predicates."""
        return General(spec, self._shortages.rule(spec.fit, cluster), cluster)

    def reasons(self, spec: GeneralSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reasons of the four predicates."""
        found = list(self._shortages.reasons(spec.fit, verdict & RESOURCES))
        for flag, reason in (
            (HOST_NAME, POD_NOT_MATCH_HOST_NAME),
            (PORTS, POD_NOT_FITS_HOST_PORTS),
            (SELECTOR, NODE_SELECTOR_NOT_MATCH),
        ):
            if verdict & flag:
                found.append(reason)
        return tuple(found)


class General(FilterRule):
    """Runs the four rules, and combines their verdicts.

    Args:
        spec: the spec of the pod.
        resources_rule: the rule about resources.
        cluster: the state.
    """

    def __init__(self, spec: GeneralSpec, resources_rule: FilterRule, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._resources_rule = resources_rule
        self._rules: list[FilterRule] = []
        self._flags: list[int] = []
        if spec.host_name.key:
            self._rules.append(NamedNode(spec.host_name.key, cluster))
            self._flags.append(HOST_NAME | UNRESOLVABLE_BIT)
        if spec.ports.key:
            self._rules.append(FreePorts(spec.ports.key, cluster))
            self._flags.append(PORTS)
        if spec.selector.required.labels is not None or spec.selector.required.node_selector is not None:
            self._rules.append(RequiredAffinity(spec.selector.required, None, cluster))
            self._flags.append(SELECTOR | UNRESOLVABLE_BIT)

    def bind(self) -> None:
        """Bind the four rules to the current nodes."""
        self._resources_rule.bind()
        for rule in self._rules:
            rule.bind()

    def filter(self, row: int) -> int:
        """Return the combined verdicts of the four rules."""
        verdict = self._resources_rule.filter(row)
        for number in range(len(self._rules)):
            rule = self._rules[number]
            if rule.filter(row):
                verdict |= self._flags[number]
        return verdict
