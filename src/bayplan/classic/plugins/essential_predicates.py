"""HostName, PodFitsHostPorts and MatchNodeSelector: checks that kubelets repeat before they run a pod."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import msgspec

from bayplan.classic.plugins.failure_reasons import (
    NODE_SELECTOR_NOT_MATCH,
    POD_NOT_FITS_HOST_PORTS,
    POD_NOT_MATCH_HOST_NAME,
)
from bayplan.classic.plugins.label_selectors import selector_from_set
from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.pod import Pod
from bayplan.objects.requests import HostPort, host_ports
from bayplan.objects.selectors import RequiredNodeAffinity, compile_required_node_affinity
from bayplan.plugins.node_name import has_other_name
from bayplan.plugins.node_ports import FreePorts
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matcher import matching_rows
from bayplan.state.views import Rows

MISMATCH = 1 | UNRESOLVABLE_BIT


class HostNameSpec(msgspec.Struct, frozen=True):
    """The node name in the pod's spec, or ""."""

    key: str


class HostPortsSpec(msgspec.Struct, frozen=True):
    """The host ports that the pod requests."""

    key: tuple[HostPort, ...]


@dataclass(frozen=True, slots=True)
class NodeSelectorSpec:
    """A pod's requirements on the labels and the name of its node."""

    key: Hashable
    required: RequiredNodeAffinity = field(compare=False)


def compile_host_ports(pod: Pod) -> HostPortsSpec:
    """Return the host ports that the pod requests, sorted and without duplicates."""
    return HostPortsSpec(tuple(sorted(set(host_ports(pod)))))


def compile_node_selector_spec(pod: Pod) -> NodeSelectorSpec:
    """Compile node selector and required affinity. As upstream, an invalid node selector selects every node."""
    required = compile_required_node_affinity(pod)
    if pod.spec.node_selector:
        required = RequiredNodeAffinity(selector_from_set(pod.spec.node_selector), required.node_selector)
    return NodeSelectorSpec(required.key, required)


class HostName(FilterPlugin[HostNameSpec]):
    """Rejects all nodes except the one in the pod's ``spec.nodeName``."""

    name = "HostName"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> HostNameSpec:
        """Return the node name as the spec."""
        return HostNameSpec(pod.spec.node_name)

    def filter(self, spec: HostNameSpec, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes with other names, if the pod names a node."""
        return rows.verdicts((has_other_name(spec.key, rows), MISMATCH))

    def reasons(self, spec: HostNameSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (POD_NOT_MATCH_HOST_NAME,)


class PodFitsHostPorts(FilterPlugin[HostPortsSpec]):
    """Rejects nodes on which a requested host port is in use."""

    name = "PodFitsHostPorts"
    reads = Reads.PORTS
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> HostPortsSpec:
        """Return the pod's host ports."""
        return compile_host_ports(pod)

    def filter_rule(self, spec: HostPortsSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule of the current plugin NodePorts."""
        return FreePorts(spec.key, cluster)

    def reasons(self, spec: HostPortsSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (POD_NOT_FITS_HOST_PORTS,)


class MatchNodeSelector(FilterPlugin[NodeSelectorSpec]):
    """Rejects nodes that do not match the pod's node selector or required node affinity."""

    name = "MatchNodeSelector"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeSelectorSpec:
        """Compile the selectors."""
        return compile_node_selector_spec(pod)

    def filter(self, spec: NodeSelectorSpec, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes that don't match."""
        return rows.verdicts((~matching_rows(spec.required, rows), MISMATCH))

    def reasons(self, spec: NodeSelectorSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (NODE_SELECTOR_NOT_MATCH,)
