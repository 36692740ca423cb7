"""SchedulingGates: a pod with scheduling gates does not enter the queue. Source: KEP-3521."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import SUCCESS, Status, unresolvable
from bayplan.objects.pod import Pod

GATED = "waiting for scheduling gates: "


def gates_message(pod: Pod) -> str:
    """Return the reason for a pod that has scheduling gates."""
    return f"{GATED}[{' '.join(gate.name for gate in pod.spec.scheduling_gates)}]"


class SchedulingGates(PreEnqueuePlugin[None]):
    """Gates pods until their last scheduling gate is removed."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject a pod that has scheduling gates; the reason names them."""
        return unresolvable(gates_message(pod)) if pod.spec.scheduling_gates else SUCCESS

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register the removal of a pod's last gate."""
        gates_eliminated = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return ((gates_eliminated, is_schedulable_after_gates_eliminated),)


@hint(Pod, new=True)
def is_schedulable_after_gates_eliminated(pod: Pod, before: Pod | None, after: Pod) -> bool:
    """Queue the pod if it is the pod whose gates were removed."""
    return after.metadata.uid == pod.metadata.uid
