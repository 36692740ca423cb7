"""Event handlers of the classic scheduler that differ from those of current releases.

The cases are those of kube-scheduler's event handlers in Kubernetes 1.16.
"""

from __future__ import annotations

from bayplan.classic.queue import ClassicQueue
from bayplan.engine.cluster_events import ClusterEvents
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.events import ActionType, ClusterEvent, EventResource
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.service import Service

NODE_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE).label


class ClassicEvents(ClusterEvents):
    """Applies changes of the cluster to a classic scheduler.

    Args:
        scheduler: the scheduler.
        queue: the scheduling queue.
    """

    def __init__(self, scheduler: Scheduler, queue: ClassicQueue) -> None:
        super().__init__(scheduler)
        self._queue = queue

    def _update_assigned_pod(self, old: Pod, new: Pod, key: str, now_ns: int) -> None:
        # Any update of an assigned pod may help pods with affinity to it.
        super()._update_assigned_pod(old, new, key, now_ns)
        self._queue.assigned_pod_added(new, now_ns)

    def _nomination_ended(self, pod: Pod, now_ns: int) -> None:
        """Do nothing: in this release, the end of a nomination is not an event."""

    def _node(self, old: Node | None, new: Node | None, now_ns: int) -> None:
        known = new is not None and new.metadata.name in self._scheduler.state.nodes.row_of
        none_wait = not self._queue.unschedulable()
        super()._node(old, new, now_ns)
        if known and old is not None and new is not None and (none_wait or scheduling_properties_changed(old, new)):
            self._queue.move_all_to_active_queue(now_ns, NODE_UPDATE)

    def _other(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> None:
        super()._other(old, new, now_ns)
        if isinstance(old, Service) or isinstance(new, Service):
            action = "Add" if old is None else "Delete" if new is None else "Update"
            self._queue.move_all_to_active_queue(now_ns, f"Service{action}")


def scheduling_properties_changed(old: Node, new: Node) -> bool:
    """Return whether a node was uncordoned, or allocatable resources, labels, taints or condition statuses changed."""
    if old.spec.unschedulable and not new.spec.unschedulable:
        return True
    before, after = ({item.type: item.status for item in node.status.conditions} for node in (old, new))
    return (
        old.status.allocatable != new.status.allocatable
        or old.metadata.labels != new.metadata.labels
        or old.spec.taints != new.spec.taints
        or before != after
    )
