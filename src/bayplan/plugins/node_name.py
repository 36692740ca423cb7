"""NodeName: a pod with ``spec.nodeName`` fits only that node."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from bayplan.framework.events import NODE_ADD, ClusterEvent, QueueingHint
from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.pod import Pod
from bayplan.plugins.key_spec import KeySpec
from bayplan.state.arrays import Bools, Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

REASON = "node(s) didn't match the requested node name"
OTHER_NODE = 1 | UNRESOLVABLE_BIT


class NodeName(FilterPlugin[KeySpec[str]]):
    """Rejects all nodes except the one in the pod's ``spec.nodeName``."""

    name = "NodeName"
    texts = MappingProxyType({OTHER_NODE: REASON})
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    compiles_volumes = False

    def compile(self, pod: Pod, cluster: ClusterState) -> KeySpec[str]:
        """Return the node name as the spec."""
        return KeySpec(pod.spec.node_name)

    def filter(self, spec: KeySpec[str], params: Params | None, rows: Rows) -> Codes:
        """Reject nodes with other names, if the pod names a node."""
        return rows.verdicts((has_other_name(spec.key, rows), OTHER_NODE))

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register added nodes, without a hint: any of them may be the node with that name."""
        return ((NODE_ADD, None),)


def has_other_name(name: str, rows: Rows) -> Bools:
    """Return which nodes are not the named one; none if the name is ""."""
    return (rows.row_numbers() != rows.state.nodes.row_of.get(name, -1)) & (name != "")
