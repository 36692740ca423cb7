"""Which events may help a pod that PodTopologySpread rejected."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint, objects_of
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import SelectorError
from bayplan.plugins.spread_constraints import HARD, SpreadConstraint, SpreadConstraints, match_any


class PodTopologySpreadHints:
    """The events of PodTopologySpread and their hints."""

    def __init__(self, constraints: SpreadConstraints) -> None:
        self._constraints = constraints

    def events(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Return the events with their hints."""
        pod_actions = (
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        )
        node_actions = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            (ClusterEvent(EventResource.POD, pod_actions), self.is_schedulable_after_pod_change),
            (ClusterEvent(EventResource.NODE, node_actions), self.is_schedulable_after_node_change),
        )

    def is_schedulable_after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer | bool:
        """Queue the pod if the number of pods that it is spread with changed."""
        objects = objects_of(Pod, old, new)
        if objects is None:
            return HintAnswer.ERROR
        before, after = objects
        if any(other is not None and not _is_involved(other, pod) for other in objects):
            return False
        try:
            constraints = self._constraints.of(pod, HARD)
        except SelectorError:
            return HintAnswer.ERROR
        if before is not None and after is not None:
            own = pod.metadata.uid == after.metadata.uid
            tolerates_more = before.spec.tolerations != after.spec.tolerations
            if own and tolerates_more and any(item.honors_taints for item in constraints):
                return True
            labels = (before.metadata.labels, after.metadata.labels)
            if labels[0] == labels[1]:
                return False
            return any(item.selector.matches(labels[0]) != item.selector.matches(labels[1]) for item in constraints)
        other = after if after is not None else before
        if other is None:
            return HintAnswer.ERROR
        return match_any(constraints, other.metadata.labels)

    def is_schedulable_after_node_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer | bool:
        """Queue the pod if a node entered, left or changed the domains that it is spread over."""
        objects = objects_of(Node, old, new)
        if objects is None:
            return HintAnswer.ERROR
        before, after = objects
        try:
            constraints = self._constraints.of(pod, HARD)
        except SelectorError:
            return HintAnswer.ERROR
        was = before is not None and _has_all_keys(before, constraints)
        now = after is not None and _has_all_keys(after, constraints)
        if before is None or after is None:
            return now if after is not None else was
        if was != now:
            return True
        keys = [item.topology_key for item in constraints]
        moved = any(before.metadata.labels.get(key) != after.metadata.labels.get(key) for key in keys)
        return now and (moved or before.spec.taints != after.spec.taints)


def _is_involved(other: Pod, pod: Pod) -> bool:
    """Return whether a pod can count: it is the waiting one itself, or has a node (or a nomination) in its namespace."""
    if other.metadata.uid == pod.metadata.uid:
        return True
    if not other.spec.node_name and not other.status.nominated_node_name:
        return False
    return other.metadata.namespace == pod.metadata.namespace


def _has_all_keys(node: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(item.topology_key in node.metadata.labels for item in constraints)
