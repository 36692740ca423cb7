"""NodePorts: on a node, each host port can be used by only one pod, per protocol and address."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import PROCEED, FilterPlugin, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.objects.requests import HostPort, host_ports
from bayplan.plugins.key_spec import KeySpec
from bayplan.state.cluster_state import ClusterState
from bayplan.state.host_ports import collide

REASON = "node(s) didn't have free ports for the requested pod ports"
NO_PRE_FILTER = 'reading "PreFilterNodePorts" from cycleState: not found'
TAKEN = 1
STATE_MISSING = 2 | ERROR_BIT


class NodePorts(PreFilterPlugin[KeySpec[tuple[HostPort, ...]]], FilterPlugin[KeySpec[tuple[HostPort, ...]]]):
    """Rejects nodes on which a requested host port is in use."""

    name = "NodePorts"
    texts = MappingProxyType({TAKEN: REASON, STATE_MISSING: NO_PRE_FILTER})
    reads = Reads.PORTS
    pre_reads = Reads.NOTHING
    compiles_requests = False
    compiles_volumes = False

    def compile(self, pod: Pod, cluster: ClusterState) -> KeySpec[tuple[HostPort, ...]]:
        """Return the host ports, sorted and without duplicates."""
        return KeySpec(tuple(sorted(set(host_ports(pod)))))

    def pre_filter(
        self, spec: KeySpec[tuple[HostPort, ...]], cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return SKIP if the pod requests no host port."""
        return PROCEED if spec.key else SKIP

    def filter_rule(self, spec: KeySpec[tuple[HostPort, ...]], cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the pod's host ports."""
        return FreePorts(spec.key, cluster)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register deleted pods and added nodes; the ports of a pod never change."""
        pod_deleted = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return ((pod_deleted, is_schedulable_after_pod_deleted), (NODE_ADD, None))


class FreePorts(FilterRule):
    """Returns `TAKEN` for nodes on which one of the host ports is in use."""

    def __init__(self, ports: tuple[HostPort, ...], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._ports = ports
        self._host_ports = cluster.host_ports

    def filter(self, row: int) -> int:
        """Compare the pod's host ports with those in use on the node."""
        if self.params is None:
            return STATE_MISSING
        for port in self._ports:
            if self._host_ports.conflict_on(row, port):
                return TAKEN
        return 0


@hint(Pod, old=True)
def is_schedulable_after_pod_deleted(pod: Pod, deleted: Pod, after: Pod | None) -> bool:
    """Queue the pod if the deleted pod had a node and used a host port that the waiting pod requests."""
    if not deleted.spec.node_name and not deleted.status.nominated_node_name:
        return False
    freed = host_ports(deleted)
    return any(collide(wanted, port) for wanted in host_ports(pod) for port in freed)
