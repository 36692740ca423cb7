"""NodeName: a pod that names its node fits on that node alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.framework.events import NODE_ADD, ClusterEvent, QueueingHint
from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

REASON = "node(s) didn't match the requested node name"
OTHER_NODE = 1 | UNRESOLVABLE_BIT


class NodeNameSpec(msgspec.Struct, frozen=True):
    """The node that the pod names, or the empty text. It is its own key."""

    key: str


class NodeName(FilterPlugin[NodeNameSpec]):
    """Rejects all nodes but the one that the pod names in ``spec.nodeName``."""

    name = "NodeName"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    scalar = True

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeNameSpec:
        """Keep the name."""
        return NodeNameSpec(pod.spec.node_name)

    def filter(self, spec: NodeNameSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `OTHER_NODE` for every node with another name."""
        if not spec.key:
            return rows.codes(rows.fill(0))
        return rows.codes(rows.where(rows.named((spec.key,)), 0, OTHER_NODE))

    def reasons(self, spec: NodeNameSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (REASON,)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register added nodes, without a hint: any of them may be the one."""
        return ((NODE_ADD, None),)
