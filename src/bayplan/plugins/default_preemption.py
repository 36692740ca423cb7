"""DefaultPreemption: a pod that fits no node may preempt pods of lower priority.

`bayplan.framework.preemption` searches for victims; this module gates the pod while they are being evicted. Source:
KEP-4832 (asynchronous preemption), https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from bayplan.framework.configuration.plugin_arguments import DefaultPreemptionArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint
from bayplan.framework.plugin import Handle, PostFilterPlugin, PreEnqueuePlugin
from bayplan.framework.preemption.evaluator import Evaluator
from bayplan.framework.status import SUCCESS, Status, unresolvable
from bayplan.objects.pod import Pod

WAITING = "waiting for the preemption for this pod to be finished"
GATED = unresolvable(WAITING)


class DefaultPreemption(PreEnqueuePlugin[None], PostFilterPlugin[None]):
    """Preempts pods of lower priority for a pod that fits no node."""

    name = "DefaultPreemption"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = arguments if isinstance(arguments, DefaultPreemptionArgs) else DefaultPreemptionArgs()
        self.evaluator = Evaluator(handle, given)
        self._asynchronous = handle.feature_gates.enabled("SchedulerAsyncPreemption")
        self._last_victims: dict[str, str] = {}

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        """Return the node for which the pod can preempt others and the victims there, and the status."""
        found, status = self.evaluator.preempt(pod, diagnosis, state)
        if status.reasons:
            status = Status(status.code, (f"preemption: {status.message}",))
        return (self.start(pod, found) if found is not None else None), status

    def start(self, pod: Pod, found: PostFilterResult) -> PostFilterResult:
        """Return the result; gate the pod until its victims are terminating, unless all already are."""
        if not self._asynchronous or not found.victims:
            return found
        for key in reversed(found.victims):
            victim = self.handle.pods.get(key)
            if victim is not None and victim.metadata.deletion_timestamp is None:
                # Of the victims that are not terminating yet, this one is evicted last.
                self._last_victims[_uid_of(pod)] = key
                return found
        # All victims are already terminating: upstream starts no evictions, and clears no nominations, either.
        return replace(found, clears_nominations=False)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Gate a pod whose victims have been chosen, until the last of them is terminating."""
        if not self._last_victims:
            return SUCCESS
        uid = _uid_of(pod)
        last = self._last_victims.get(uid)
        if last is None:
            return SUCCESS
        victim = self.handle.pods.get(last)
        if victim is not None and _is_running(victim):
            return GATED
        del self._last_victims[uid]
        return SUCCESS

    def stop_waiting(self, pod: Pod) -> None:
        """Stop gating a pod whose victims the host could not evict."""
        self._last_victims.pop(_uid_of(pod), None)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register deleted pods, which end the wait in `pre_enqueue`; whether to queue is up to other plugins' hints."""
        if not self._asynchronous:
            return ()
        return ((ClusterEvent(EventResource.POD, ActionType.DELETE), _never_queue),)


def _never_queue(pod: Pod, old: object | None, new: object | None) -> HintAnswer:
    return HintAnswer.SKIP


def _is_running(victim: Pod) -> bool:
    """Return whether a victim is neither terminating nor without a node: those at Permit or PreBind have been rejected."""
    return bool(victim.spec.node_name) and victim.metadata.deletion_timestamp is None


def _uid_of(pod: Pod) -> str:
    return pod.metadata.uid or f"{pod.metadata.namespace}/{pod.metadata.name}"
