"""SchedulingGates: a pod with scheduling gates does not enter the queue. Source: KEP-3521."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import SUCCESS, Status, unresolvable
from bayplan.objects.pod import Pod


class SchedulingGates(PreEnqueuePlugin[None]):
    """Keeps pods out of the queue until their last gate is removed."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject a pod that has gates; the reason names them."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register the removal of a pod's last gate."""
        gates_gone = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return ((gates_gone, is_schedulable_after_gates_are_gone),)


@hint(Pod, new=True)
def is_schedulable_after_gates_are_gone(pod: Pod, before: Pod | None, after: Pod) -> bool:
    """Queue the pod if the removed gates were its own."""
    return after.metadata.uid == pod.metadata.uid
