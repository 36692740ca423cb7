"""GeneralPredicates: resources, host name, ports and node selector in one predicate that reports the reasons of all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
from bayplan.plugins.node_name import has_other_name
from bayplan.plugins.node_ports import FreePorts
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matcher import matching_rows
from bayplan.state.views import Rows

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
        """Return the rule that combines the four predicates."""
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
    """Combines the verdicts of the four predicates.

    Args:
        spec: the spec of the pod.
        resources_rule: the rule about resources.
        cluster: the state.
    """

    def __init__(self, spec: GeneralSpec, resources_rule: FilterRule, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._spec, self._cluster = spec, cluster
        self._resources_rule = resources_rule
        self._ports_rule = FreePorts(spec.ports.key, cluster)
        # The verdicts of the host name and the node selector, which depend only on the node.
        self._of_nodes: Any = np.zeros(0, dtype=np.uint16)

    def bind(self) -> None:
        """Check names and labels of the current nodes."""
        self._resources_rule.bind()
        spec, rows = self._spec, Rows(self._cluster)
        self._of_nodes = rows.verdicts(
            (has_other_name(spec.host_name.key, rows), HOST_NAME | UNRESOLVABLE_BIT),
            (~matching_rows(spec.selector.required, rows), SELECTOR | UNRESOLVABLE_BIT),
        )

    def filter(self, row: int) -> int:
        """Return the combined verdicts of the four predicates."""
        ports = PORTS if self._ports_rule.filter(row) else 0
        return self._resources_rule.filter(row) | ports | self._of_nodes[row]
