"""GangScheduling: pods of a group wait for their PodGroup to exist. Alpha, behind a feature gate.

Upstream admits the pods of a gang once the minimum number exists, and binds them together. Both require scheduling a
pod group as a unit, which this version does not support: once the group exists, its pods are scheduled one by one.
Source: KEP-4671.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import PermitPlugin, PreEnqueuePlugin
from bayplan.framework.status import SUCCESS, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodGroup


class GangScheduling(PreEnqueuePlugin[None], PermitPlugin[None]):
    """Gates pods until their PodGroup exists, and registers the events that may complete a gang."""

    name = "GangScheduling"
    partial = True

    def pre_enqueue(self, pod: Pod) -> Status:
        """Gate a pod whose PodGroup does not exist."""
        group = _group_of(pod)
        if group is None or self.handle.cluster.catalog.get(PodGroup, f"{pod.metadata.namespace}/{group}") is not None:
            return SUCCESS
        # The doubled "s" is upstream's.
        return unresolvable(f'waiting for pods\'s pod group "{group}" to appear in scheduling queue')

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        """Allow every pod: waiting for the rest of the gang is not supported yet."""
        return SUCCESS, 0

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register added pods, which may complete the gang, and added pod groups. Updates can't help."""
        return (
            (ClusterEvent(EventResource.POD, ActionType.ADD), is_schedulable_after_pod_added),
            (ClusterEvent(EventResource.POD_GROUP, ActionType.ADD), is_schedulable_after_pod_group_added),
        )


@hint(Pod, new=True)
def is_schedulable_after_pod_added(pod: Pod, before: Pod | None, added: Pod) -> bool:
    """Queue the pod if the added pod belongs to its group."""
    group = _group_of(pod)
    return group is not None and group == _group_of(added) and pod.metadata.namespace == added.metadata.namespace


@hint(PodGroup, new=True)
def is_schedulable_after_pod_group_added(pod: Pod, before: PodGroup | None, added: PodGroup) -> bool:
    """Queue the pod if it belongs to the added PodGroup."""
    return _group_of(pod) == added.metadata.name and pod.metadata.namespace == added.metadata.namespace


def _group_of(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None
