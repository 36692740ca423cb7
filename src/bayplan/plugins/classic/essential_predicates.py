"""HostName, PodFitsHostPorts and MatchNodeSelector: what kubelets ask too before they run a pod."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import msgspec

from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.objects.pod import Pod
from bayplan.objects.requests import HostPort, host_ports
from bayplan.objects.selectors import RequiredNodeAffinity, compile_required_node_affinity
from bayplan.plugins.classic.failure_reasons import (
    NODE_SELECTOR_NOT_MATCH,
    POD_NOT_FITS_HOST_PORTS,
    POD_NOT_MATCH_HOST_NAME,
    verdict_of,
)
from bayplan.plugins.classic.label_selectors import selector_from_set
from bayplan.state.arrays import Bools, Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matching import required_node_affinity_matches
from bayplan.state.views import Rows

OTHER_NODE = verdict_of(1, POD_NOT_MATCH_HOST_NAME)
PORT_TAKEN = verdict_of(1, POD_NOT_FITS_HOST_PORTS)
NOT_SELECTED = verdict_of(1, NODE_SELECTOR_NOT_MATCH)


class HostNameSpec(msgspec.Struct, frozen=True):
    """The node that the pod names, or the empty text."""

    key: str


class HostPortsSpec(msgspec.Struct, frozen=True):
    """The node ports that the pod wants."""

    key: tuple[HostPort, ...]


@dataclass(frozen=True, slots=True)
class NodeSelectorSpec:
    """What the pod requires of labels and name of its node."""

    key: Hashable
    required: RequiredNodeAffinity = field(compare=False)


def compile_host_ports(pod: Pod) -> HostPortsSpec:
    """Return the node ports that the pod wants, each once and in an order that does not depend on its containers'."""
    return HostPortsSpec(tuple(sorted(set(host_ports(pod)))))


def compile_node_selector_spec(pod: Pod) -> NodeSelectorSpec:
    """Compile node selector and required affinity; a node selector with an invalid label selects every node, as upstream."""
    required = compile_required_node_affinity(pod)
    if pod.spec.node_selector:
        required = RequiredNodeAffinity(selector_from_set(pod.spec.node_selector), required.node_selector)
    return NodeSelectorSpec(required.key, required)


def host_name_differs(spec: HostNameSpec, rows: Rows) -> Bools:
    """Return which nodes are not the one that the pod names."""
    return rows.named((spec.key,)) == False if spec.key else rows.everywhere(False)  # noqa: E712 - elementwise.


def port_taken(spec: HostPortsSpec, rows: Rows) -> Bools:
    """Return on which nodes one of the ports is in use."""
    taken = rows.everywhere(False)
    for port in spec.key:
        taken = taken | rows.host_port_conflicts(port)
    return taken


def not_selected(spec: NodeSelectorSpec, rows: Rows) -> Bools:
    """Return which nodes don't match the pod's node selector and required affinity."""
    matched: Bools = required_node_affinity_matches(spec.required, rows)
    unmatched: Bools = matched == False  # noqa: E712 - elementwise.
    return unmatched


class HostName(FilterPlugin[HostNameSpec]):
    """Rejects all nodes but the one that the pod names."""

    name = "HostName"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> HostNameSpec:
        """Keep the name."""
        return HostNameSpec(pod.spec.node_name)

    def filter(self, spec: HostNameSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `OTHER_NODE` for every node with another name."""
        return rows.verdicts((host_name_differs(spec, rows), OTHER_NODE))

    def reasons(self, spec: HostNameSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (POD_NOT_MATCH_HOST_NAME,)


class PodFitsHostPorts(FilterPlugin[HostPortsSpec]):
    """Rejects nodes where a port that the pod wants is in use."""

    name = "PodFitsHostPorts"
    reads = Reads.PORTS
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> HostPortsSpec:
        """Keep the ports."""
        return compile_host_ports(pod)

    def filter(self, spec: HostPortsSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `PORT_TAKEN` where a port is in use."""
        return rows.verdicts((port_taken(spec, rows), PORT_TAKEN))

    def reasons(self, spec: HostPortsSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (POD_NOT_FITS_HOST_PORTS,)


class MatchNodeSelector(FilterPlugin[NodeSelectorSpec]):
    """Rejects nodes that don't match the pod's node selector or required node affinity."""

    name = "MatchNodeSelector"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeSelectorSpec:
        """Compile the selectors."""
        return compile_node_selector_spec(pod)

    def filter(self, spec: NodeSelectorSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `NOT_SELECTED` where they don't match."""
        return rows.verdicts((not_selected(spec, rows), NOT_SELECTED))

    def reasons(self, spec: NodeSelectorSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (NODE_SELECTOR_NOT_MATCH,)
