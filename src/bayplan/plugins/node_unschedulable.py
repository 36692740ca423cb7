"""NodeUnschedulable: rejects cordoned nodes, unless the pod tolerates the taint node.kubernetes.io/unschedulable."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads
from bayplan.framework.status import UNRESOLVABLE_BIT
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import tolerates
from bayplan.plugins.key_spec import KeySpec
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

REASON = "node(s) were unschedulable"
CORDONED = 1 | UNRESOLVABLE_BIT
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(FilterPlugin[KeySpec[bool]]):
    """Rejects nodes with ``spec.unschedulable``."""

    name = "NodeUnschedulable"
    texts = MappingProxyType({CORDONED: REASON})
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._comparison_operators = handle.feature_gates.enabled("TaintTolerationComparisonOperators")

    def compile(self, pod: Pod, cluster: ClusterState) -> KeySpec[bool]:
        """Compile whether the pod tolerates `UNSCHEDULABLE_TAINT`."""
        return KeySpec(self._tolerates_cordon(pod))

    def _tolerates_cordon(self, pod: Pod) -> bool:
        return any(
            tolerates(toleration, UNSCHEDULABLE_TAINT, comparison_operators=self._comparison_operators)
            for toleration in pod.spec.tolerations
        )

    def filter(self, spec: KeySpec[bool], params: Params | None, rows: Rows) -> Codes:
        """Reject cordoned nodes, unless the pod tolerates them."""
        return rows.verdicts((rows.unschedulable() & (not spec.key), CORDONED))

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register nodes added or uncordoned (an update of taints, as upstream), and new tolerations of the pod."""
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            (node, is_schedulable_after_node_change),
            (toleration, self.is_schedulable_after_pod_toleration_change),
        )

    @hint(Pod, new=True)
    def is_schedulable_after_pod_toleration_change(self, pod: Pod, before: Pod | None, after: Pod) -> bool:
        """Queue the pod if it is the changed pod, and its new version tolerates cordoned nodes."""
        return after.metadata.uid == pod.metadata.uid and self._tolerates_cordon(after)


@hint(Node, new=True)
def is_schedulable_after_node_change(pod: Pod, before: Node | None, after: Node) -> bool:
    """Queue the pod if an uncordoned node was added, or a node was uncordoned."""
    return (before is None or before.spec.unschedulable) and not after.spec.unschedulable
