"""NodeName: a pod with ``spec.nodeName`` fits only that node."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import msgspec

from bayplan.framework.events import NODE_ADD, ClusterEvent, QueueingHint
from bayplan.framework.plugin import FilterPlugin, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

REASON = "node(s) didn't match the requested node name"
OTHER_NODE = 1 | UNRESOLVABLE_BIT


class NodeNameSpec(msgspec.Struct, frozen=True):
    """The node name in the pod's spec, or "", which is also the spec's key."""

    key: str


class NodeName(FilterPlugin[NodeNameSpec]):
    """Rejects all nodes except the one in the pod's ``spec.nodeName``."""

    name = "NodeName"
    texts = MappingProxyType({OTHER_NODE: REASON})
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    compiles_volumes = False

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeNameSpec:
        """Return the node name as the spec."""
        return NodeNameSpec(pod.spec.node_name)

    def filter_rule(self, spec: NodeNameSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that compares the node's name."""
        return NamedNode(spec.key, cluster)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register added nodes, without a hint: any of them may be the node with that name."""
        return ((NODE_ADD, None),)


class NamedNode(FilterRule):
    """Returns `OTHER_NODE` for all nodes except the named one, if the pod names a node."""

    def __init__(self, name: str, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._name = name
        self._nodes = cluster.nodes
        self._row = -1

    def bind(self) -> None:
        """Look up the row of the named node."""
        self._row = self._nodes.row_of.get(self._name, -1)

    def filter(self, row: int) -> int:
        """Compare the row with that of the named node."""
        return 0 if not self._name or row == self._row else OTHER_NODE
