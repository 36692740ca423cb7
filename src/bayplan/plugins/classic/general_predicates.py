"""GeneralPredicates: resources, host name, ports and node selector as one predicate that gives the reasons of all four."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.arguments import classic_arguments
from bayplan.plugins.classic.essential_predicates import (
    HostNameSpec,
    HostPortsSpec,
    NodeSelectorSpec,
    compile_host_ports,
    compile_node_selector_spec,
    host_name_differs,
    not_selected,
    port_taken,
)
from bayplan.plugins.classic.failure_reasons import (
    NODE_SELECTOR_NOT_MATCH,
    POD_NOT_FITS_HOST_PORTS,
    POD_NOT_MATCH_HOST_NAME,
)
from bayplan.plugins.classic.pod_fits_resources import FitSpec, Shortages, compile_fit
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

HOST_NAME = 0x200
PORTS = 0x400
SELECTOR = 0x800
RESOURCES = 0x1FF
"""Bits of a verdict: those of `Shortages`, and one for each of the others."""


@dataclass(frozen=True, slots=True)
class GeneralSpec:
    """The specs of the four predicates."""

    key: Hashable
    fit: FitSpec = field(compare=False)
    host_name: HostNameSpec = field(compare=False)
    ports: HostPortsSpec = field(compare=False)
    selector: NodeSelectorSpec = field(compare=False)


class GeneralPredicates(FilterPlugin[GeneralSpec]):
    """Rejects nodes that lack room, have another name, have a port in use or are not selected."""

    name = "GeneralPredicates"
    reads = Reads.NODES | Reads.USAGE | Reads.PORTS
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = classic_arguments(arguments)
        self._shortages = Shortages()

    def compile(self, pod: Pod, cluster: ClusterState) -> GeneralSpec:
        """Compile all four."""
        fit = compile_fit(pod, cluster, self._arguments)
        name = HostNameSpec(pod.spec.node_name)
        ports = compile_host_ports(pod)
        selector = compile_node_selector_spec(pod)
        return GeneralSpec((fit.key, name.key, ports.key, selector.key), fit, name, ports, selector)

    def filter(self, spec: GeneralSpec, params: Params | None, rows: Rows) -> Codes:
        """Return the union of what the four say."""
        others = rows.verdicts(
            (host_name_differs(spec.host_name, rows), HOST_NAME | UNRESOLVABLE_BIT),
            (port_taken(spec.ports, rows), PORTS),
            (not_selected(spec.selector, rows), SELECTOR | UNRESOLVABLE_BIT),
        )
        return self._shortages.codes(spec.fit, rows) | others

    def reasons(self, spec: GeneralSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reasons of all four."""
        found = list(self._shortages.reasons(spec.fit, verdict & RESOURCES))
        for flag, reason in (
            (HOST_NAME, POD_NOT_MATCH_HOST_NAME),
            (PORTS, POD_NOT_FITS_HOST_PORTS),
            (SELECTOR, NODE_SELECTOR_NOT_MATCH),
        ):
            if verdict & flag:
                found.append(reason)
        return tuple(found)
